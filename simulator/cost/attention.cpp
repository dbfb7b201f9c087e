#include "simulator/cost/attention.h"

#include <algorithm>

#include "models/model.h"
#include "simulator/cost/gemm.h"

namespace trivium::simulator {
namespace {

constexpr int kAlignedElements = 8;  // 16 bytes of a 16-bit type, what tensor cores load at once

// Softmax of a score takes the same time in narrow heads and wide ones, products of it the less the narrower: on an
// H100 FlashAttention-3 reaches 497 TFLOP/s with heads of 64 where it has 648 with 128, FlashAttention-2 324 and 370,
// cuDNN 413 and 595 (Shah et al. 2024, arXiv 2407.08608, figure 5). Multiprocessors compute as many exponentials on all
// devices; what products leave of the time follows from their rate. At the A100's they hide all of it (LLM Foundry's
// runs with heads of 64 and of 128).
constexpr double kUsualHead = 128;
constexpr double kSoftmaxShare = 0.3, kMostSoftmax = 0.5;                    // of the time with usual heads, on an H100
constexpr double kHidingRate = 312e12 / 108, kSoftmaxRate = 989.4e12 / 132;  // of products, of a multiprocessor

/// How much longer heads narrower than usual take for as many FLOPs.
double softmax_factor(const program::Op& op, const hardware::Device& device, double rate) {
  if (op.head_dim <= 0 || op.head_dim >= kUsualHead || device.multiprocessors < 1) return 1;
  const double products = peak_of(device, op.dtype).value() / device.multiprocessors;
  const double share = kSoftmaxShare * rate * (products - kHidingRate) / (kSoftmaxRate - kHidingRate);
  return 1 + std::clamp(share, 0.0, kMostSoftmax) * (kUsualHead / op.head_dim - 1);
}

// Physics::flash_ramp: short sequences fill too few blocks (240 tokens with the Triton kernels of 2023: LLM Foundry
// runs up to 65,536 tokens). A band and packed documents, is as one of a sequence of twice its keys: what its two edges
// waste of whole blocks is what the diagonal and the end of a short sequence do.
base::Seconds flash_time(const program::Op& op, const hardware::Device& device) {
  const bool block = op.kind == program::OpKind::kAttentionBlock || op.kind == program::OpKind::kAttentionBlockBackward;
  const std::int64_t tokens = std::max(1, block ? op.sequence / op.parts : op.sequence);
  const double keys = op.document_keys > 0 ? op.document_keys / (block ? op.parts : 1)
                                           : models::keys_seen(tokens, op.window, op.chunked);
  const double span = 2 * keys;
  const bool forward = op.kind == program::OpKind::kAttention || op.kind == program::OpKind::kAttentionBlock;
  const double share = forward ? device.physics.flash_forward : device.physics.flash_backward;
  const double rate =
      peak_of(device, op.dtype).value() * device.sustained_scale() * share * span / (span + device.physics.flash_ramp);
  return base::Seconds(op.flops / rate);
}

/// Forward: QK^T (rows, S, k = dim) and PV (rows, dim, k = S). Backward: dP has the first shape, dV, dQ and dK the
/// second.
base::Seconds unfused_time(const program::Op& op, const hardware::Device& device) {
  const double span = std::max(1, op.sequence), tokens = static_cast<double>(op.m), dim = op.head_dim;
  const double samples = std::max(1.0, tokens / span);
  const double rows = tokens / samples, batch = samples * op.heads;
  const GemmRates rates = gemm_rates(device, op.dtype, device.physics.batched_efficiency);
  const base::Seconds scores = gemm_time({rows, span, dim, batch}, rates);
  const base::Seconds values = gemm_time({rows, dim, span, batch}, rates);
  const bool misaligned = program::is_half(op.dtype) && op.head_dim % kAlignedElements != 0;
  const double values_count = op.kind == program::OpKind::kAttention ? 1 : 3;
  return (scores + values_count * values) * (misaligned ? device.physics.unaligned_head : 1.0);
}

}  // namespace

base::Seconds attention_products(const program::Op& op, const hardware::Device& device, double flash_rate) {
  if (!op.flash) return unfused_time(op, device);
  return flash_time(op, device) / flash_rate * softmax_factor(op, device, flash_rate);
}

}  // namespace trivium::simulator
