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

// PyTorch's operators by the name after "aten::", without the trailing underscore of in-place variants.
constexpr Row kOperators[] = {
    {"mm", Meaning::kProduct},
    {"addmm", Meaning::kProduct},
    {"linear", Meaning::kNoWork},  // what they call does it
    {"matmul", Meaning::kNoWork},
    {"_scaled_mm", Meaning::kProduct},
    {"mkldnn_linear", Meaning::kProduct},
    {"_grouped_mm", Meaning::kProduct},
    {"bmm", Meaning::kBatched},
    {"baddbmm", Meaning::kBatched},
    {"softmax", Meaning::kSoftmax},
    {"_softmax", Meaning::kSoftmax},
    {"_safe_softmax", Meaning::kSoftmax},
    {"_softmax_backward_data", Meaning::kSoftmax},
    {"masked_fill", Meaning::kSoftmax},
    {"where", Meaning::kElementwise},
    {"layer_norm", Meaning::kNorm},
    {"native_layer_norm", Meaning::kNorm},
    {"native_layer_norm_backward", Meaning::kNorm},
    {"rms_norm", Meaning::kNorm},
    {"_fused_rms_norm", Meaning::kNorm},
    {"_fused_rms_norm_backward", Meaning::kNorm},
    {"rsqrt", Meaning::kNorm},
    {"pow", Meaning::kNorm},
    {"mean", Meaning::kNorm},
    {"gelu", Meaning::kActivation},
    {"gelu_backward", Meaning::kActivation},
    {"silu", Meaning::kActivation},
    {"silu_backward", Meaning::kActivation},
    {"relu", Meaning::kActivation},
    {"threshold_backward", Meaning::kActivation},
    {"glu", Meaning::kActivation},
    {"glu_backward", Meaning::kActivation},
    {"tanh", Meaning::kActivation},
    {"sigmoid", Meaning::kActivation},
    {"cos", Meaning::kRotary},
    {"sin", Meaning::kRotary},
    {"polar", Meaning::kRotary},
    {"view_as_complex", Meaning::kRotary},
    {"view_as_real", Meaning::kRotary},
    {"embedding", Meaning::kEmbedding},
    {"index_select", Meaning::kEmbedding},
    {"embedding_backward", Meaning::kEmbedding},
    {"embedding_dense_backward", Meaning::kEmbedding},
    {"cross_entropy_loss", Meaning::kLoss},
    {"log_softmax", Meaning::kLoss},
    {"_log_softmax", Meaning::kLoss},
    {"_log_softmax_backward_data", Meaning::kLoss},
    {"nll_loss_nd", Meaning::kLoss},
    {"nll_loss", Meaning::kLoss},
    {"nll_loss_forward", Meaning::kLoss},
    {"nll_loss_backward", Meaning::kLoss},
    {"nll_loss2d_forward", Meaning::kLoss},
    {"nll_loss2d_backward", Meaning::kLoss},
    {"logsumexp", Meaning::kLoss},
    {"add", Meaning::kAdd},
    {"sub", Meaning::kElementwise},
    {"rsub", Meaning::kElementwise},
    {"mul", Meaning::kElementwise},
    {"div", Meaning::kElementwise},
    {"neg", Meaning::kElementwise},
    {"cat", Meaning::kElementwise},
    {"stack", Meaning::kElementwise},
    {"sum", Meaning::kElementwise},
    {"exp", Meaning::kElementwise},
    {"triu", Meaning::kElementwise},
    {"tril", Meaning::kElementwise},
    {"ones", Meaning::kElementwise},
    {"arange", Meaning::kElementwise},
    {"bernoulli", Meaning::kElementwise},
    {"native_dropout", Meaning::kElementwise},
    {"native_dropout_backward", Meaning::kElementwise},
    {"dropout", Meaning::kElementwise},
    {"copy", Meaning::kCopy},
    {"contiguous", Meaning::kCopy},
    {"clone", Meaning::kCopy},
    {"_to_copy", Meaning::kCopy},
    {"to", Meaning::kCopy},
    {"repeat_interleave", Meaning::kCopy},
    {"slice_backward", Meaning::kCopy},
    {"select_backward", Meaning::kCopy},
    {"zeros", Meaning::kZero},
    {"zero", Meaning::kZero},
    {"zeros_like", Meaning::kZero},
    {"new_zeros", Meaning::kZero},
    {"fill", Meaning::kZero},
    {"linalg_vector_norm", Meaning::kGradientNorm},
    {"_foreach_norm", Meaning::kGradientNorm},
    {"norm", Meaning::kGradientNorm},
    {"_foreach_mul",
     Meaning::kGradientNorm},  // by the factor that clips; inside an optimizer's range it is the optimizer's
    {"_foreach_add", Meaning::kOptimizer},
    {"_foreach_sub", Meaning::kOptimizer},
    {"_foreach_div", Meaning::kOptimizer},
    {"_foreach_sqrt", Meaning::kOptimizer},
    {"_foreach_lerp", Meaning::kOptimizer},
    {"_foreach_addcmul", Meaning::kOptimizer},
    {"_foreach_addcdiv", Meaning::kOptimizer},
    {"_foreach_zero", Meaning::kZero},
    {"_fused_adamw", Meaning::kOptimizer},
    {"_fused_adam", Meaning::kOptimizer},
    {"lerp", Meaning::kOptimizer},
    {"addcmul", Meaning::kOptimizer},
    {"addcdiv", Meaning::kOptimizer},
    {"sqrt", Meaning::kOptimizer},
    {"_foreach_copy", Meaning::kBucketCopy},
    {"split_with_sizes_copy", Meaning::kBucketCopy},
    {"_chunk_cat", Meaning::kBucketCopy},
    {"chunk_cat", Meaning::kBucketCopy},
    {"_fused_adagrad", Meaning::kOptimizer},
    {"topk", Meaning::kRouting},
    {"sort", Meaning::kRouting},
    {"scatter", Meaning::kRouting},
    {"scatter_add", Meaning::kRouting},
    {"gather", Meaning::kRouting},
    {"histc", Meaning::kRouting},
    {"bincount", Meaning::kRouting},
    {"cumsum", Meaning::kRouting},
    // The host's own.
    {"view", Meaning::kNoWork},
    {"_unsafe_view", Meaning::kNoWork},
    {"reshape", Meaning::kNoWork},
    {"_reshape_alias", Meaning::kNoWork},
    {"flatten", Meaning::kNoWork},
    {"unflatten", Meaning::kNoWork},
    {"t", Meaning::kNoWork},
    {"numpy_t", Meaning::kNoWork},
    {"transpose", Meaning::kNoWork},
    {"swapaxes", Meaning::kNoWork},
    {"permute", Meaning::kNoWork},
    {"expand", Meaning::kNoWork},
    {"expand_as", Meaning::kNoWork},
    {"as_strided", Meaning::kNoWork},
    {"detach", Meaning::kNoWork},
    {"alias", Meaning::kNoWork},
    {"slice", Meaning::kNoWork},
    {"select", Meaning::kNoWork},
    {"narrow", Meaning::kNoWork},
    {"chunk", Meaning::kNoWork},
    {"split", Meaning::kNoWork},
    {"split_with_sizes", Meaning::kNoWork},
    {"unbind", Meaning::kNoWork},
    {"squeeze", Meaning::kNoWork},
    {"unsqueeze", Meaning::kNoWork},
    {"empty", Meaning::kNoWork},
    {"empty_like", Meaning::kNoWork},
    {"empty_strided", Meaning::kNoWork},
    {"new_empty", Meaning::kNoWork},
    {"new_empty_strided", Meaning::kNoWork},
    {"resize", Meaning::kNoWork},
    {"set", Meaning::kNoWork},
    {"resolve_conj", Meaning::kNoWork},
    {"resolve_neg", Meaning::kNoWork},
    {"item", Meaning::kNoWork},
    {"_local_scalar_dense", Meaning::kNoWork},
    {"is_nonzero", Meaning::kNoWork},
    {"lift_fresh", Meaning::kNoWork},
    {"result_type", Meaning::kNoWork},
    {"can_cast", Meaning::kNoWork},
    {"_has_compatible_shallow_copy_type", Meaning::kNoWork},
    {"record_stream", Meaning::kNoWork},
    {"randint", Meaning::kNoWork},
    {"random", Meaning::kNoWork},
    {"random_", Meaning::kNoWork},
};

const std::map<std::string_view, Meaning>& operators() {
  static const std::map<std::string_view, Meaning> kByName(std::begin(kOperators), std::end(kOperators));
  return kByName;
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
