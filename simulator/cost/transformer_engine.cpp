#include "simulator/cost/transformer_engine.h"

#include <algorithm>

#include "models/model.h"

namespace trivium::simulator {
namespace {

using program::Fp8;
using program::Op;
using program::OpKind;

// Bytes per number of what leaves an expert (Megatron-Core, experts.py, TEGroupedMLP._apply_bias), 16-bit rows and fp32
// probabilities. Forward: bias times probability, written in fp32 (4); added to the rows (2 + 4 + 4); experts one
// behind the other (4 + 4); back to 16 bit (4 + 2). Backward: to fp32 (2 + 4); the rows' gradient to 16 bit and joined
// (4 + 2, 2 + 2); times bias and summed for the probability, times probability and summed for the bias (4 + 4 + 4
// each).
constexpr double kOutputBias = 28, kOutputBiasBackward = 40;
constexpr double kOutputBiasKernels = 2, kOutputBiasBackwardKernels = 8;  // an expert

// Bytes per number of what a clamped activation reads (fused_bias_geglu.py): both halves cut and written as one again;
// backward: gradients where nothing was cut, and joined.
constexpr double kCut = 8, kCutBackward = 10;
constexpr double kCutKernels = 3, kCutBackwardKernels = 3;

// Bytes per number of queries and keys (rope_utils.py, which has no fused kernel with an amplitude): halves turned and
// joined (2 + 4), times cosines and sines (4 + 4), added (6), joined with what does not turn (4); backward without the
// last join, with one of gradients.
constexpr double kTurn = 24, kTurnBackward = 22;

// Bytes per number of rows that ranks of the expert group exchanged (token_dispatcher.py, sort_chunks_by_idxs): they
// arrive rank by rank and are multiplied expert by expert.
constexpr double kSorted = 4;

bool is_bias(const Op& op) { return op.kind == OpKind::kExpertBias || op.kind == OpKind::kExpertBiasBackward; }

bool leaves_experts(const Op& op) { return op.elements > 0; }  // program/lower/mixture.cpp

/// Numbers that a clamped activation reads, forward; 0 of another op.
double cut_numbers(const Op& op) {
  const bool activation = op.kind == OpKind::kActivation || op.kind == OpKind::kActivationBackward;
  if (!activation || static_cast<models::Activation>(op.k) != models::Activation::kClampedSwiglu) return 0;
  return 2 * static_cast<double>(op.m) * static_cast<double>(op.n);
}

bool is_tensor_collective(const Op& op, OpKind kind) {
  return op.kind == kind && op.group == program::Group::kTensor && op.layer >= 0;
}

bool reads(const Op& op, int buffer) { return std::ranges::find(op.in, buffer) != op.in.end(); }
bool writes(const Op& op, int buffer) { return std::ranges::find(op.out, buffer) != op.out.end(); }

/// Of the 16 bits a number, what is gathered for the casts of a recipe: codes and scales along rows; of gradients,
/// where scales belong to blocks of either way, along columns, too.
double gathered_share(Fp8 recipe, bool gradient) {
  const double once = recipe == Fp8::kNvfp4 ? 0.5625 / 2 : recipe == Fp8::kMxfp8 ? 1.03125 / 2 : 0.5;
  return once * (gradient && (recipe == Fp8::kNvfp4 || recipe == Fp8::kMxfp8) ? 2 : 1);
}

class Segment {
 public:
  Segment(std::span<const Op> ops, int tensor) : ops_(ops.begin(), ops.end()), tensor_(tensor) {
    for (const Op& op : ops_) {
      if (op.kind == OpKind::kRoute || op.kind == OpKind::kRouteBackward) experts_ = op.experts;
      if (op.kind == OpKind::kAllToAll && op.group == program::Group::kExpert) exchanged_ = true;
      const bool product = op.kind == OpKind::kExpertMatmul || op.kind == OpKind::kExpertMatmulDgrad;
      if (product && op.experts > 1) sorted_rows_ = static_cast<double>(op.m) * op.experts;
    }
  }

  std::optional<std::vector<Op>> executed(double amplitude) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (tensor_ > 1 && is_tensor_collective(ops_[i], OpKind::kAllGather)) gather(i);
      if (tensor_ > 1 && is_tensor_collective(ops_[i], OpKind::kReduceScatter) && ends_routing(i)) leave_out(ops_[i]);
      if (exchanged_ && sorted_rows_ > 0) sort(ops_[i]);
      if (amplitude != 1) turn(ops_[i]);
    }
    if (!changed_) return std::nullopt;
    return std::move(ops_);
  }

 private:
  void sort(Op& op) {
    if (op.kind != OpKind::kDispatch && op.kind != OpKind::kDispatchBackward && op.kind != OpKind::kCombine &&
        op.kind != OpKind::kCombineBackward) {
      return;
    }
    op.bytes += sorted_rows_ * static_cast<double>(op.n) * kSorted;
    changed_ = true;
  }

  void turn(Op& op) {
    if (op.kind != OpKind::kRotary && op.kind != OpKind::kRotaryBackward) return;
    const double numbers = static_cast<double>(op.m) * (op.heads + op.kv_heads) * op.head_dim;
    op.bytes = numbers * (op.kind == OpKind::kRotary ? kTurn : kTurnBackward);
    changed_ = true;
  }

  void gather(std::size_t at) {
    const int whole = ops_[at].out[0];
    std::vector<Op*> readers;
    for (std::size_t i = at + 1; i < ops_.size(); ++i) {
      if (reads(ops_[i], whole)) readers.push_back(&ops_[i]);
    }
    if (readers.empty()) return;
    if (std::ranges::all_of(readers, [](const Op* op) { return op->kind == OpKind::kQuantize; })) {
      return gather_casts(ops_[at], readers);
    }
    const bool routes = std::ranges::all_of(readers, [&](const Op* op) { return routing(*op); });
    if (routes) leave_out(ops_[at]);
  }

  void gather_casts(Op& gather, const std::vector<Op*>& casts) {
    gather.bytes *= gathered_share(casts.front()->fp8, gather.pass == program::Pass::kBackward);
    for (Op* cast : casts) {
      cast->m = (cast->m + tensor_ - 1) / tensor_;
      cast->bytes /= tensor_;
    }
    changed_ = true;
  }

  void leave_out(Op& collective) {
    collective.elements = 0;
    collective.bytes = 0;
    changed_ = true;
  }

  bool router(const Op& op, OpKind product) const { return op.kind == product && experts_ > 0 && op.n == experts_; }

  /// What reads a mixture's tokens, or their gradients, and no expert of all tokens.
  bool routing(const Op& op) const {
    return router(op, OpKind::kMatmul) || router(op, OpKind::kMatmulWgrad) || op.kind == OpKind::kDispatch ||
           op.kind == OpKind::kCombineBackward;
  }

  /// A sum of parts that only a mixture's tokens have.
  bool ends_routing(std::size_t at) const {
    const int partial = ops_[at].in[0];
    bool routed = false;
    int added = 0;
    for (std::size_t i = 0; i < at; ++i) {
      if (!writes(ops_[i], partial)) continue;
      routed |= ops_[i].kind == OpKind::kCombine || router(ops_[i], OpKind::kMatmulDgrad);
      added += ops_[i].kind == OpKind::kAdd ? 1 : 0;
    }
    const int allowed = ops_[at].pass == program::Pass::kBackward ? 1 : 0;  // gradients by way of router and experts
    return routed && added <= allowed;
  }

  std::vector<Op> ops_;
  int tensor_;
  std::int64_t experts_ = 0;
  bool exchanged_ = false;
  double sorted_rows_ = 0;
  bool changed_ = false;
};

}  // namespace

double loose_expert_bytes(const Op& op, const program::StackTraits& stack, double traffic) {
  if (!runs_transformer_engine(stack) || !program::is_half(op.dtype)) return 0;
  if (is_bias(op)) {
    // What products read gets its bias in the product, and its gradient in that of the weights.
    if (!leaves_experts(op)) return -op.bytes * traffic;
    const double numbers = static_cast<double>(op.m) * static_cast<double>(op.n) * std::max(1, op.experts);
    return numbers * (op.kind == OpKind::kExpertBias ? kOutputBias : kOutputBiasBackward) - op.bytes * traffic;
  }
  return cut_numbers(op) * (op.kind == OpKind::kActivation ? kCut : kCutBackward);
}

double loose_expert_kernels(const Op& op, const program::StackTraits& stack) {
  if (!runs_transformer_engine(stack)) return 0;
  if (is_bias(op) && leaves_experts(op)) {
    return std::max(1, op.experts) * (op.kind == OpKind::kExpertBias ? kOutputBiasKernels : kOutputBiasBackwardKernels);
  }
  if (cut_numbers(op) == 0) return 0;
  return op.kind == OpKind::kActivation ? kCutKernels : kCutBackwardKernels;
}

std::optional<std::vector<Op>> as_executed(std::span<const Op> ops, const program::StackTraits& stack, int tensor,
                                           double amplitude) {
  if (!runs_transformer_engine(stack)) return std::nullopt;
  return Segment(ops, tensor).executed(amplitude);
}

}  // namespace trivium::simulator
