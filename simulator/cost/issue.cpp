#include "simulator/cost/issue.h"

#include <algorithm>
#include <cmath>

#include "program/ir/op_kinds.h"
#include "simulator/cost/transformer_engine.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

constexpr double kBackwardIssue = 0.75;  // of a forward kernel's issue time
// Softmax kernel by kernel: to fp32, scale, the causal mask (ones, triangle, view, comparison), fill, softmax, to 16
// bit.
constexpr double kLooseForward = 9, kLooseBackward = 6;

// s of the host for an exchange with the experts beside another pass: Megatron-Core cuts a layer's passes at each into
// nodes with streams, events and a call of autograd of their own (core/pipeline_parallel/combined_1f1b.py). Read off
// Megatron-Bridge's Qwen 3 235B on B200 and B300, whose hosts set the pace.
constexpr double kPairedIssue = 4e-4;

}  // namespace

bool softmax_falls_back(const program::Op& op, const program::StackTraits& stack) {
  const bool attention = op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBackward;
  if (!attention || op.flash || !stack.fused_kernels || !program::is_half(op.dtype)) return false;
  return op.m / std::max(1, op.sequence) * op.heads % stack.fused_softmax_batch != 0;
}

double unfused_softmax_bytes(const program::Op& op, const program::StackTraits& stack) {
  constexpr double kForward = 32, kBackward = 16;  // to fp32 6, scale 8, mask 9, softmax 8, to 16 bit 6, less the fused
  if (!softmax_falls_back(op, stack)) return 0;
  const double scores = static_cast<double>(op.m) * op.sequence * op.heads;
  return scores * (op.kind == OpKind::kAttention ? kForward : kBackward);
}

double kernels_of(const program::Op& op, const program::StackTraits& stack) {
  const program::Launches& launches = program::traits_of(op.kind).launches;
  const double kernels =
      (op.flash ? launches.flash : launches.fused) + (stack.fused_kernels || op.flash ? 0 : launches.unfused_more) +
      (softmax_falls_back(op, stack) ? (op.kind == OpKind::kAttention ? kLooseForward : kLooseBackward) : 0) +
      loose_expert_kernels(op, stack);
  return kernels * (op.pass == program::Pass::kBackward ? kBackwardIssue : 1.0);
}

// Transformer Engine's GroupedLinear: a product an expert, before it the cast of the expert's rows (with scales of the
// step, their largest number too), and the scales of both operands brought into the order that block-scaled products
// read. The weight's gradient reads casts that are there.
double launches_for_experts(const program::Op& op) {
  const bool wgrad = op.kind == OpKind::kExpertMatmulWgrad;
  const bool product = wgrad || op.kind == OpKind::kExpertMatmul || op.kind == OpKind::kExpertMatmulDgrad;
  if (!product || op.experts < 2) return 0;
  const double casts = wgrad || op.fp8 == program::Fp8::kNone ? 0 : op.fp8 == program::Fp8::kCurrent ? 2 : 1;
  const double orders = op.fp8 == program::Fp8::kMxfp8 || op.fp8 == program::Fp8::kNvfp4 ? 2 : 0;
  return op.experts * (1 + casts + orders) * (op.pass == program::Pass::kBackward ? kBackwardIssue : 1.0);
}

base::Seconds pipelined_issue(const program::Mesh& mesh, const program::StackTraits& stack) {
  const bool both = mesh.pipeline() > 1 && mesh.tensor() > 1;
  return base::Seconds(both ? stack.pipelined_issue * mesh.tensor() : 0);
}

base::Seconds issue_cost(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack) {
  const bool paired = op.kind == OpKind::kAllToAll && op.lane == program::Lane::kExpert && program::is_half(op.dtype);
  if (paired && runs_transformer_engine(stack)) {
    return device.kernel_issue * (stack.issue * kernels_of(op, stack)) + base::Seconds(kPairedIssue * stack.issue);
  }
  return device.kernel_issue * (stack.issue * kernels_of(op, stack)) +
         base::Seconds(stack.expert_issue * launches_for_experts(op));
}

base::Seconds combine(base::Seconds device, base::Seconds host, double exponent) {
  const double larger = std::max(device.value(), host.value());
  if (larger <= 0) return base::Seconds(0);
  const double d = std::pow(device.value() / larger, exponent), h = std::pow(host.value() / larger, exponent);
  return base::Seconds(larger * std::pow(d + h, 1 / exponent));
}

}  // namespace trivium::simulator
