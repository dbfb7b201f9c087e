// From op kinds to the functions of ops_*.h, for one launcher. T: type of activations and parameters.
#pragma once

#include "runtime/cuda/ops_attention.h"
#include "runtime/cuda/ops_epilogue.h"
#include "runtime/cuda/ops_rows.h"
#include "runtime/cuda/ops_state.h"
#include "runtime/cuda/ops_wire.h"

namespace trivium::runtime::cuda {

template <class Launcher>
using Operation = void (*)(Launcher&, const KernelArguments&);

template <class T, class Launcher>
Operation<Launcher> row_operation(const program::Op& op) {
  using program::OpKind;
  switch (op.kind) {
    case OpKind::kEmbedding:
      return embedding<T, Launcher>;
    case OpKind::kEmbeddingBackward:
      return embedding_backward<T, Launcher>;
    case OpKind::kPosition:
      return position<T, Launcher>;
    case OpKind::kPositionBackward:
      return position_backward<T, Launcher>;
    case OpKind::kNorm:
      return norm<T, Launcher>;
    case OpKind::kNormBackward:
      return norm_backward<T, Launcher>;
    case OpKind::kMatmul:
      return matmul<T, Launcher>;
    case OpKind::kMatmulDgrad:
      return matmul_dgrad<T, Launcher>;
    case OpKind::kMatmulWgrad:
      return matmul_wgrad<T, Launcher>;
    case OpKind::kRotary:
    case OpKind::kRotaryBackward:
      return rotary<T, Launcher>;
    case OpKind::kBiasResidual:
      return bias_residual<T, Launcher>;
    case OpKind::kBiasResidualBackward:
      return bias_residual_backward<T, Launcher>;
    case OpKind::kActivation:
      return activation<T, Launcher>;
    case OpKind::kActivationBackward:
      return activation_backward<T, Launcher>;
    case OpKind::kLossMax:
      return loss_max<Launcher>;
    case OpKind::kLossSums:
      return loss_sums<Launcher>;
    case OpKind::kLoss:
      return loss<Launcher>;
    case OpKind::kLossBackward:
      return loss_backward<T, Launcher>;
    case OpKind::kAdd:  // gradients of parameters are added too
      return op.dtype == program::DType::kFp32 ? add<float, Launcher> : add<T, Launcher>;
    case OpKind::kFetch:
    case OpKind::kStore:
      return copy<Launcher>;
    default:
      return nullptr;
  }
}

/// A product and the activation that is done with it (epilogues.h).
template <class Launcher>
using PairOperation = void (*)(Launcher&, const KernelArguments& product, const KernelArguments& activation);

template <class T, class Launcher>
PairOperation<Launcher> pair_operation(const program::Op& activation) {
  return activation.kind == program::OpKind::kActivation ? matmul_activation<T, Launcher>
                                                         : matmul_dgrad_activation<T, Launcher>;
}

template <class T, class Launcher>
Operation<Launcher> attention_operation(const program::Op& op) {
  using program::OpKind;
  switch (op.kind) {
    case OpKind::kAttention:
      return attention<T, Launcher>;
    case OpKind::kAttentionBackward:
      return attention_backward<T, Launcher>;
    case OpKind::kAttentionBlock:
      return attention_block<T, Launcher>;
    case OpKind::kAttentionBlockBackward:
      return attention_block_backward<T, Launcher>;
    case OpKind::kSplitKv:
    case OpKind::kJoinKv:
      return move_kv<T, Launcher>;
    case OpKind::kPackHeads:
      return pack_heads<T, Launcher>;
    case OpKind::kUnpackHeads:
      return unpack_heads<T, Launcher>;
    case OpKind::kPackTokens:
    case OpKind::kUnpackTokens:  // logits of routers too
      return op.dtype == program::DType::kFp32 ? reorder_tokens<float, Launcher> : reorder_tokens<T, Launcher>;
    default:
      return nullptr;
  }
}

template <class T, class Launcher>
Operation<Launcher> state_operation(const program::Op& op) {
  using program::OpKind;
  switch (op.kind) {
    case OpKind::kRoute:
      return route<Launcher>;
    case OpKind::kRouteBackward:
      return route_backward<T, Launcher>;
    case OpKind::kSpill:
      return spill<Launcher>;
    case OpKind::kPlaceRows:
    case OpKind::kPickRows:
      return move_spilled<T, Launcher>;
    case OpKind::kDispatch:
      return dispatch<T, Launcher>;
    case OpKind::kDispatchBackward:
      return dispatch_backward<T, Launcher>;
    case OpKind::kCombine:
      return combine<T, Launcher>;
    case OpKind::kCombineBackward:
      return combine_backward<T, Launcher>;
    case OpKind::kExpertMatmul:
    case OpKind::kExpertMatmulDgrad:
    case OpKind::kExpertMatmulWgrad:
      return expert_matmul<T, Launcher>;
    case OpKind::kGradientNorm:
      return gradient_norm<Launcher>;
    case OpKind::kAdamW:
      return adamw<T, Launcher>;
    case OpKind::kCompress:
      return compress<Launcher>;
    case OpKind::kDecompress:
      return decompress<Launcher>;
    case OpKind::kZeroGradients:
      return zero_gradients<Launcher>;
    default:
      return nullptr;
  }
}

}  // namespace trivium::runtime::cuda
