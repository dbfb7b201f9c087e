// Kernel names to what they do. Order matters: FlashAttention 3 is built on CUTLASS, and both names stand in it.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::imports {
namespace {

constexpr std::array<std::string_view, 9> kCollectives{
    "nccl", "rccl", "nvshmem", "deep_ep", "multimem_all", "one_shot_all", "two_shot", "userbuffers", "kuserbuffers"};
constexpr std::array<std::string_view, 8> kAttention{"flash_fwd", "flash_bwd", "flashattn", "fmha",
                                                     "mha_fwd",   "mha_bwd",   "_attn_fwd", "_attn_bwd"};
constexpr std::array<std::string_view, 3> kMoreAttention{"sdpa", "pytorch_flash", "softmax_warp"};
constexpr std::array<std::string_view, 14> kProducts{
    "gemm", "cublas",   "cutlass",     "nvjet",     "splitkreduce",  "gemv",         "dot_kernel",
    "s884", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::_scaled_mm"};
constexpr std::array<std::string_view, 4> kOptimizers{"adam", "l2norm", "multi_tensor_apply", "clip_grad"};

constexpr std::array<std::string_view, 9> kNormalizations{
    "layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm", "group_norm", "ln_fwd", "ln_bwd", "gammabeta"};

bool has(const std::string& name, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

KernelClass class_of_kernel(const std::string& name) {
  const std::string small = lower(name);
  if (has(small, kCollectives)) return KernelClass::kCollective;
  if (has(small, kAttention) || has(small, kMoreAttention)) return KernelClass::kAttention;
  if (has(small, kProducts)) return KernelClass::kProduct;
  if (has(small, kOptimizers)) return KernelClass::kOptimizer;
  return KernelClass::kPointwise;
}

bool is_normalization(const std::string& name) {
  const std::string small = lower(name);
  return small == "norm" || has(small, kNormalizations);
}

std::optional<program::OpKind> collective_named(const std::string& name) {
  std::string small = lower(name);
  std::erase(small, '_');
  if (small.find("allreduce") != std::string::npos) return program::OpKind::kAllReduce;
  if (small.find("reducescatter") != std::string::npos) return program::OpKind::kReduceScatter;
  if (small.find("allgather") != std::string::npos) return program::OpKind::kAllGather;
  if (small.find("alltoall") != std::string::npos) return program::OpKind::kAllToAll;
  return std::nullopt;
}

}  // namespace trivium::calibration::imports
