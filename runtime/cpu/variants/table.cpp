// Op kind to kernel, for one instruction set.

#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

using program::DType;
using program::OpKind;

template <class T>
static Kernel find(OpKind kind) {
  switch (kind) {
    case OpKind::kNorm:
      return norm<T>;
    case OpKind::kNormBackward:
      return norm_backward<T>;
    case OpKind::kMatmul:
      return matmul<T>;
    case OpKind::kMatmulDgrad:
      return matmul_dgrad<T>;
    case OpKind::kMatmulWgrad:
      return matmul_wgrad<T>;
    case OpKind::kExpertMatmul:
      return expert_matmul<T>;
    case OpKind::kExpertMatmulDgrad:
      return expert_matmul_dgrad<T>;
    case OpKind::kExpertMatmulWgrad:
      return expert_matmul_wgrad<T>;
    case OpKind::kRotary:
      return rotary<T>;
    case OpKind::kRotaryBackward:
      return rotary_backward<T>;
    case OpKind::kAttention:
      return attention<T>;
    case OpKind::kAttentionBackward:
      return attention_backward<T>;
    case OpKind::kAttentionBlock:
      return attention_block<T>;
    case OpKind::kAttentionBlockBackward:
      return attention_block_backward<T>;
    case OpKind::kBiasResidual:
      return bias_residual<T>;
    case OpKind::kBiasResidualBackward:
      return bias_residual_backward<T>;
    case OpKind::kActivation:
      return activation<T>;
    case OpKind::kActivationBackward:
      return activation_backward<T>;
    case OpKind::kLossMax:
      return loss_max<T>;
    case OpKind::kLossSums:
      return loss_sums<T>;
    case OpKind::kLoss:
      return loss<T>;
    case OpKind::kLossBackward:
      return loss_backward<T>;
    default:
      return nullptr;
  }
}

Kernel find_kernel(OpKind kind, DType type);  // called by dispatch.cpp

Kernel find_kernel(OpKind kind, DType type) { return type == DType::kFp64 ? find<double>(kind) : find<float>(kind); }

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
