#include "calibration/foreign/meaning.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace trivium::calibration::foreign {
namespace {

using Row = std::pair<std::string_view, Meaning>;

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

Meaning first_in(const std::string& name, std::span<const Row> rows) {
  const auto found =
      std::ranges::find_if(rows, [&](const Row& row) { return name.find(row.first) != std::string::npos; });
  return found == rows.end() ? Meaning::kUnknown : found->second;
}

// PyTorch's operators by the name behind "aten::", without the last underscore of those that work in place.
const std::map<std::string_view, Meaning>& operators() {
  using enum Meaning;
  static const std::map<std::string_view, Meaning> kOperators = {
      {"mm", kProduct},
      {"addmm", kProduct},
      {"linear", kNoWork},  // what they call does it
      {"matmul", kNoWork},
      {"_scaled_mm", kProduct},
      {"mkldnn_linear", kProduct},
      {"_grouped_mm", kProduct},
      {"bmm", kBatched},
      {"baddbmm", kBatched},
      {"softmax", kSoftmax},
      {"_softmax", kSoftmax},
      {"_safe_softmax", kSoftmax},
      {"_softmax_backward_data", kSoftmax},
      {"masked_fill", kSoftmax},
      {"where", kElementwise},
      {"layer_norm", kNorm},
      {"native_layer_norm", kNorm},
      {"native_layer_norm_backward", kNorm},
      {"rms_norm", kNorm},
      {"_fused_rms_norm", kNorm},
      {"_fused_rms_norm_backward", kNorm},
      {"rsqrt", kNorm},
      {"pow", kNorm},
      {"mean", kNorm},
      {"gelu", kActivation},
      {"gelu_backward", kActivation},
      {"silu", kActivation},
      {"silu_backward", kActivation},
      {"relu", kActivation},
      {"threshold_backward", kActivation},
      {"glu", kActivation},
      {"glu_backward", kActivation},
      {"tanh", kActivation},
      {"sigmoid", kActivation},
      {"cos", kRotary},
      {"sin", kRotary},
      {"polar", kRotary},
      {"view_as_complex", kRotary},
      {"view_as_real", kRotary},
      {"embedding", kEmbedding},
      {"index_select", kEmbedding},
      {"embedding_backward", kEmbedding},
      {"embedding_dense_backward", kEmbedding},
      {"cross_entropy_loss", kLoss},
      {"log_softmax", kLoss},
      {"_log_softmax", kLoss},
      {"_log_softmax_backward_data", kLoss},
      {"nll_loss_nd", kLoss},
      {"nll_loss", kLoss},
      {"nll_loss_forward", kLoss},
      {"nll_loss_backward", kLoss},
      {"nll_loss2d_forward", kLoss},
      {"nll_loss2d_backward", kLoss},
      {"logsumexp", kLoss},
      {"add", kAdd},
      {"sub", kElementwise},
      {"rsub", kElementwise},
      {"mul", kElementwise},
      {"div", kElementwise},
      {"neg", kElementwise},
      {"cat", kElementwise},
      {"stack", kElementwise},
      {"sum", kElementwise},
      {"exp", kElementwise},
      {"triu", kElementwise},
      {"tril", kElementwise},
      {"ones", kElementwise},
      {"arange", kElementwise},
      {"bernoulli", kElementwise},
      {"native_dropout", kElementwise},
      {"native_dropout_backward", kElementwise},
      {"dropout", kElementwise},
      {"copy", kCopy},
      {"contiguous", kCopy},
      {"clone", kCopy},
      {"_to_copy", kCopy},
      {"to", kCopy},
      {"repeat_interleave", kCopy},
      {"slice_backward", kCopy},
      {"select_backward", kCopy},
      {"zeros", kZero},
      {"zero", kZero},
      {"zeros_like", kZero},
      {"new_zeros", kZero},
      {"fill", kZero},
      {"linalg_vector_norm", kGradientNorm},
      {"_foreach_norm", kGradientNorm},
      {"norm", kGradientNorm},
      {"_foreach_mul", kGradientNorm},  // by the factor that clips; inside an optimizer's range it is the optimizer's
      {"_foreach_add", kOptimizer},
      {"_foreach_sub", kOptimizer},
      {"_foreach_div", kOptimizer},
      {"_foreach_sqrt", kOptimizer},
      {"_foreach_lerp", kOptimizer},
      {"_foreach_addcmul", kOptimizer},
      {"_foreach_addcdiv", kOptimizer},
      {"_foreach_zero", kZero},
      {"_fused_adamw", kOptimizer},
      {"_fused_adam", kOptimizer},
      {"lerp", kOptimizer},
      {"addcmul", kOptimizer},
      {"addcdiv", kOptimizer},
      {"sqrt", kOptimizer},
      {"_foreach_copy", kBucketCopy},
      {"split_with_sizes_copy", kBucketCopy},
      {"_chunk_cat", kBucketCopy},
      {"chunk_cat", kBucketCopy},
      {"_fused_adagrad", kOptimizer},
      {"topk", kRouting},
      {"sort", kRouting},
      {"scatter", kRouting},
      {"scatter_add", kRouting},
      {"gather", kRouting},
      {"histc", kRouting},
      {"bincount", kRouting},
      {"cumsum", kRouting},
      // The host's own.
      {"view", kNoWork},
      {"_unsafe_view", kNoWork},
      {"reshape", kNoWork},
      {"_reshape_alias", kNoWork},
      {"flatten", kNoWork},
      {"unflatten", kNoWork},
      {"t", kNoWork},
      {"numpy_t", kNoWork},
      {"transpose", kNoWork},
      {"swapaxes", kNoWork},
      {"permute", kNoWork},
      {"expand", kNoWork},
      {"expand_as", kNoWork},
      {"as_strided", kNoWork},
      {"detach", kNoWork},
      {"alias", kNoWork},
      {"slice", kNoWork},
      {"select", kNoWork},
      {"narrow", kNoWork},
      {"chunk", kNoWork},
      {"split", kNoWork},
      {"split_with_sizes", kNoWork},
      {"unbind", kNoWork},
      {"squeeze", kNoWork},
      {"unsqueeze", kNoWork},
      {"empty", kNoWork},
      {"empty_like", kNoWork},
      {"empty_strided", kNoWork},
      {"new_empty", kNoWork},
      {"new_empty_strided", kNoWork},
      {"resize", kNoWork},
      {"set", kNoWork},
      {"resolve_conj", kNoWork},
      {"resolve_neg", kNoWork},
      {"item", kNoWork},
      {"_local_scalar_dense", kNoWork},
      {"is_nonzero", kNoWork},
      {"lift_fresh", kNoWork},
      {"result_type", kNoWork},
      {"can_cast", kNoWork},
      {"_has_compatible_shallow_copy_type", kNoWork},
      {"record_stream", kNoWork},
      {"randint", kNoWork},
      {"random", kNoWork},
      {"random_", kNoWork},
  };
  return kOperators;
}

// Ranges and operators of other libraries, by what stands in their lower-cased names. The first row that fits.
constexpr std::array<Row, 34> kRanges{{{"optimizer.step", Meaning::kOptimizer},
                                       {"optimizer.zero_grad", Meaning::kZero},
                                       {"clip_grad", Meaning::kGradientNorm},
                                       {"scaled_dot_product", Meaning::kFusedAttention},
                                       {"flash_attn", Meaning::kFusedAttention},
                                       {"flash_attention", Meaning::kFusedAttention},
                                       {"efficient_attention", Meaning::kFusedAttention},
                                       {"fused_attn", Meaning::kFusedAttention},
                                       {"flex_attention", Meaning::kFusedAttention},
                                       {"fsdp::chunk_cat", Meaning::kBucketCopy},
                                       {"fsdp::", Meaning::kBucketCopy},
                                       {"accumulategrad", Meaning::kAccumulate},
                                       {"layernorm", Meaning::kNorm},
                                       {"layer_norm", Meaning::kNorm},
                                       {"rmsnorm", Meaning::kNorm},
                                       {"rms_norm", Meaning::kNorm},
                                       {"powbackward", Meaning::kNorm},
                                       {"meanbackward", Meaning::kNorm},
                                       {"rsqrtbackward", Meaning::kNorm},
                                       {"embeddingbackward", Meaning::kEmbedding},
                                       {"logsoftmaxbackward", Meaning::kLoss},
                                       {"nlllossbackward", Meaning::kLoss},
                                       {"nllloss2dbackward", Meaning::kLoss},
                                       {"crossentropy", Meaning::kLoss},
                                       {"cross_entropy", Meaning::kLoss},
                                       {"softmaxbackward", Meaning::kSoftmax},
                                       {"maskedfillbackward", Meaning::kSoftmax},
                                       {"silubackward", Meaning::kActivation},
                                       {"gelubackward", Meaning::kActivation},
                                       {"swiglu", Meaning::kActivation},
                                       {"bmmbackward", Meaning::kBatched},
                                       {"mmbackward", Meaning::kProduct},
                                       {"linearbackward", Meaning::kProduct},
                                       {"rotary", Meaning::kRotary}}};

// Kernels of GPUs. Attention before products: FlashAttention 3 is built on CUTLASS, and both names stand in it. Norms
// before products: Transformer Engine's hold "cutlass" nowhere, PyTorch's hold "gemm" nowhere; softmax before products.
constexpr std::array<Row, 75> kKernels{{{"nccl", Meaning::kCollective},
                                        {"rccl", Meaning::kCollective},
                                        {"nvshmem", Meaning::kCollective},
                                        {"deep_ep", Meaning::kCollective},
                                        {"multimem_all", Meaning::kCollective},
                                        {"one_shot_all", Meaning::kCollective},
                                        {"two_shot", Meaning::kCollective},
                                        {"userbuffers", Meaning::kCollective},
                                        {"flash_fwd", Meaning::kFusedAttention},
                                        {"flash_bwd", Meaning::kFusedAttention},
                                        {"flashattn", Meaning::kFusedAttention},
                                        {"fmha", Meaning::kFusedAttention},
                                        {"mha_fwd", Meaning::kFusedAttention},
                                        {"mha_bwd", Meaning::kFusedAttention},
                                        {"_attn_fwd", Meaning::kFusedAttention},
                                        {"_attn_bwd", Meaning::kFusedAttention},
                                        {"sdpa", Meaning::kFusedAttention},
                                        {"pytorch_flash", Meaning::kFusedAttention},
                                        {"adam", Meaning::kOptimizer},
                                        {"l2norm", Meaning::kGradientNorm},
                                        {"lpnorm", Meaning::kGradientNorm},
                                        {"multi_tensor_apply_kernel<at::native::(anonymous "
                                         "namespace)::tensorlistmetadata<1>, at::native::(anonymous namespace)::zero",
                                         Meaning::kZero},
                                        {"scalefunctor", Meaning::kGradientNorm},
                                        {"clip_grad", Meaning::kGradientNorm},
                                        {"multi_tensor_apply", Meaning::kOptimizer},
                                        {"layer_norm", Meaning::kNorm},
                                        {"layernorm", Meaning::kNorm},
                                        {"rmsnorm", Meaning::kNorm},
                                        {"rms_norm", Meaning::kNorm},
                                        {"rsqrt", Meaning::kNorm},
                                        {"ln_fwd", Meaning::kNorm},
                                        {"ln_bwd", Meaning::kNorm},
                                        {"gammabeta", Meaning::kNorm},
                                        {"cross_entropy", Meaning::kLoss},
                                        {"nll_loss", Meaning::kLoss},
                                        {"logsoftmax", Meaning::kLoss},
                                        {"log_softmax", Meaning::kLoss},
                                        {"softmax", Meaning::kSoftmax},
                                        {"masked_fill", Meaning::kSoftmax},
                                        {"rope", Meaning::kRotary},
                                        {"rotary", Meaning::kRotary},
                                        {"swiglu", Meaning::kActivation},
                                        {"silu", Meaning::kActivation},
                                        {"gelu", Meaning::kActivation},
                                        {"geglu", Meaning::kActivation},
                                        {"embedding", Meaning::kEmbedding},
                                        {"indexselect", Meaning::kEmbedding},
                                        {"krn_partial", Meaning::kEmbedding},
                                        {"compute_grad_weight", Meaning::kEmbedding},
                                        {"sum_and_scatter", Meaning::kEmbedding},
                                        {"permute_kernel", Meaning::kRouting},
                                        {"topk", Meaning::kRouting},
                                        {"moe_", Meaning::kRouting},
                                        {"radixsort", Meaning::kRouting},
                                        {"bmm", Meaning::kBatched},
                                        {"gemm", Meaning::kProduct},
                                        {"cublas", Meaning::kProduct},
                                        {"cutlass", Meaning::kProduct},
                                        {"nvjet", Meaning::kProduct},
                                        {"splitkreduce", Meaning::kProduct},
                                        {"gemv", Meaning::kProduct},
                                        {"dot_kernel", Meaning::kProduct},
                                        {"s884", Meaning::kProduct},
                                        {"cast_transpose", Meaning::kCopy},
                                        {"amax", Meaning::kElementwise},
                                        {"split_with_sizes_copy", Meaning::kBucketCopy},
                                        {"chunk_cat", Meaning::kBucketCopy},
                                        {"fillfunctor", Meaning::kZero},
                                        {"functor_add", Meaning::kAdd},
                                        {"catarray", Meaning::kElementwise},
                                        {"direct_copy", Meaning::kCopy},
                                        {"triton_", Meaning::kElementwise},
                                        {"elementwise", Meaning::kElementwise},
                                        {"reduce_kernel", Meaning::kElementwise},
                                        {"memcpy", Meaning::kCopy}}};

}  // namespace

Meaning meaning_of_operator(const std::string& name) {
  constexpr std::string_view kAten = "aten::";
  if (name.starts_with("gloo:") || name.starts_with("nccl:")) return Meaning::kCollective;
  if (name.starts_with(kAten)) {
    std::string bare = lower(std::string_view(name).substr(kAten.size()));
    if (bare.ends_with('_')) bare.pop_back();
    const auto found = operators().find(bare);
    if (found != operators().end()) return found->second;
  }
  return first_in(lower(name), kRanges);
}

bool works(const std::string& name) {
  return name.find("::") != std::string::npos && !name.starts_with("autograd::") && !name.starts_with("c10d::") &&
         !name.starts_with("torch::autograd::");
}

Meaning meaning_of_kernel(const std::string& name) { return first_in(lower(name), kKernels); }

bool is_backward(const std::string& name) {
  const std::string small = lower(name);
  return small.find("backward") != std::string::npos || small.find("bwd") != std::string::npos ||
         small.find("bprop") != std::string::npos || small.find("_grad") != std::string::npos;
}

}  // namespace trivium::calibration::foreign
