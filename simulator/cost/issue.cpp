#include "simulator/cost/issue.h"

#include <algorithm>
#include <cmath>

namespace trivium::simulator {
namespace {

using program::OpKind;

constexpr double kBackwardIssue = 0.75;  // of a forward kernel's issue time
// Softmax kernel by kernel: to fp32, scale, the causal mask (ones, triangle, view, comparison), fill, softmax, to 16
// bit.
constexpr double kLooseForward = 9, kLooseBackward = 6;

/// Kernels of an op in the fused PyTorch stacks. Identified by published runs are the sums over a layer: forward
/// 2·2 (norms) + 4·2 (matmuls) + 8 (attention) + 2·2 (residuals) + 2 (activation) = 26, backward
/// 2·4 + 4·2 (dgrad) + 4·4 (wgrad) + 10 + 2·2 + 2 = 48, 2 per tensor collective (4 per layer and pass).
/// Embedding and head sum to about 50: the 2 ms per micro-batch of the first and last stage at 41 us per kernel.
double fused_kernels(const program::Op& op) {
  switch (op.kind) {
    case OpKind::kPlaceRows:
    case OpKind::kPickRows:
    case OpKind::kCompress:
    case OpKind::kDecompress:
    case OpKind::kAdd:
    case OpKind::kZeroGradients:
    case OpKind::kFetch:
    case OpKind::kStore:
    case OpKind::kSend:
    case OpKind::kRecv:
      return 1;
    case OpKind::kNorm:
    case OpKind::kMatmul:
    case OpKind::kMatmulDgrad:
    case OpKind::kExpertMatmul:
    case OpKind::kExpertMatmulDgrad:
    case OpKind::kBiasResidual:
    case OpKind::kBiasResidualBackward:
    case OpKind::kActivation:
    case OpKind::kActivationBackward:
    case OpKind::kSplitKv:  // copies with a permutation
    case OpKind::kJoinKv:
    case OpKind::kPackHeads:
    case OpKind::kUnpackHeads:
    case OpKind::kPackTokens:
    case OpKind::kUnpackTokens:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kAllToAll:
    case OpKind::kRingShift:
      return 2;
    case OpKind::kSpill:
    case OpKind::kDispatch:
    case OpKind::kDispatchBackward:
    case OpKind::kCombine:
    case OpKind::kExpertMatmulWgrad:  // no bias
    case OpKind::kPosition:
    case OpKind::kPositionBackward:
      return 3;
    case OpKind::kNormBackward:
    case OpKind::kLossMax:
    case OpKind::kMatmulWgrad:     // product, accumulation, bias sum, views
    case OpKind::kAttentionBlock:  // flash, and three to merge
    case OpKind::kAttentionBlockBackward:
    case OpKind::kRotary:
    case OpKind::kRotaryBackward:
    case OpKind::kGradientNorm:  // multi-tensor launches of a bucket
    case OpKind::kAdamW:
      return 4;
    case OpKind::kCombineBackward:
      return 5;
    case OpKind::kRouteBackward:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingBackward:
    case OpKind::kLoss:
      return 6;
    case OpKind::kLossBackward:
      return 8;
    case OpKind::kRoute:  // softmax, top-k, one-hot, running counts, fractions
    case OpKind::kLossSums:
      return 12;
    case OpKind::kAttention:
      return op.flash ? 4 : 8;
    case OpKind::kAttentionBackward:
      return op.flash ? 6 : 10;
  }
  return 1;
}

/// Further kernels where bias, mask, dropout and residual are kernels of their own.
double unfused_extra(const program::Op& op) {
  switch (op.kind) {
    case OpKind::kAttention:
    case OpKind::kAttentionBackward:
      return op.flash ? 0 : 3;
    case OpKind::kBiasResidual:
    case OpKind::kActivation:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

bool softmax_falls_back(const program::Op& op, const program::Habits& habits) {
  const bool attention = op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBackward;
  if (!attention || op.flash || !habits.fused_kernels || !program::is_half(op.dtype)) return false;
  return op.m / std::max(1, op.sequence) * op.heads % habits.fused_softmax_batch != 0;
}

double unfused_softmax_bytes(const program::Op& op, const program::Habits& habits) {
  constexpr double kForward = 32, kBackward = 16;  // to fp32 6, scale 8, mask 9, softmax 8, to 16 bit 6, less the fused
  if (!softmax_falls_back(op, habits)) return 0;
  const double scores = static_cast<double>(op.m) * op.sequence * op.heads;
  return scores * (op.kind == OpKind::kAttention ? kForward : kBackward);
}

double kernels_of(const program::Op& op, const program::Habits& habits) {
  const double kernels =
      fused_kernels(op) + (habits.fused_kernels ? 0 : unfused_extra(op)) +
      (softmax_falls_back(op, habits) ? (op.kind == OpKind::kAttention ? kLooseForward : kLooseBackward) : 0);
  return kernels * (op.pass == program::Pass::kBackward ? kBackwardIssue : 1.0);
}

base::Seconds issue_cost(const program::Op& op, const hardware::Device& device, const program::Habits& habits) {
  return device.kernel_issue * kernels_of(op, habits);
}

// The host reads how many rows spill before it posts their exchange.
bool synchronises(const program::Op& op) {
  return op.kind == OpKind::kLossMax || op.kind == OpKind::kLossSums || op.kind == OpKind::kLoss ||
         op.kind == OpKind::kSpill;
}

base::Seconds combine(base::Seconds device, base::Seconds host, double exponent) {
  const double larger = std::max(device.value(), host.value());
  if (larger <= 0) return base::Seconds(0);
  const double d = std::pow(device.value() / larger, exponent), h = std::pow(host.value() / larger, exponent);
  return base::Seconds(larger * std::pow(d + h, 1 / exponent));
}

}  // namespace trivium::simulator
