#include "simulator/cost/transformer_engine.h"

#include <algorithm>

#include "models/model.h"
#include "simulator/collectives/expert_exchange.h"

namespace trivium::simulator {
namespace {

using program::Fp8;
using program::Op;
using program::OpKind;

// Bytes per number of what leaves an expert (Megatron-Core, experts.py, TEGroupedMLP._apply_bias), 16-bit rows and
// fp32 probabilities. Forward: bias times probability, written in fp32 (4); added to the rows (2 + 4 + 4); experts
// concatenated (4 + 4); back to 16 bit (4 + 2). Backward: to fp32 (2 + 4); the rows' gradient to 16 bit and joined
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

// Streams on which the products of experts run (Transformer Engine, pytorch/cpp_extensions: multi-stream cuBLAS).
constexpr int kStreams = 4;

// Time of PyTorch's kernels named above, over their bytes at the memory's rate: mixed types, broadcasts and sums over
// rows, one expert after the other. Read off gpt-oss in bf16: alone, H100 asks for 2.1, GB200 for 2.0, GB300 for 1.7
// and B200 for 1.3. Captured iterations fuse what they can.
constexpr double kEager = 1.8;

constexpr double kWritten = 2;  // bytes of a 16-bit number, read or written once

bool is_bias(const Op& op) { return op.kind == OpKind::kExpertBias || op.kind == OpKind::kExpertBiasBackward; }

double eager_time(const program::StackTraits& stack) { return launches_experts_apart(stack) ? kEager : 1; }

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

bool is_expert_exchange(const Op& op) {
  return op.kind == OpKind::kAllToAll && op.group == program::Group::kExpert && program::is_half(op.dtype);
}

bool places_latents(const Op& op) { return op.kind == OpKind::kLatentHeads || op.kind == OpKind::kLatentHeadsBackward; }

class Segment {
 public:
  Segment(std::span<const Op> ops, int tensor, const program::StackTraits& stack)
      : ops_(ops.begin(), ops.end()), tensor_(tensor), stack_(stack) {
    for (const Op& op : ops_) {
      if (op.kind == OpKind::kRoute || op.kind == OpKind::kRouteBackward) experts_ = op.experts, choices_ = op.k;
      if (is_expert_exchange(op)) exchanged_ = true;
      if (places_latents(op)) turning_ = static_cast<double>(op.k);
      const bool product = op.kind == OpKind::kExpertMatmul || op.kind == OpKind::kExpertMatmulDgrad;
      if (product) local_experts_ = std::max(1, op.experts), rows_ = static_cast<double>(op.m) * local_experts_;
    }
  }

  std::optional<std::vector<Op>> executed(const Executed& how) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (how.gathers_codes) keep_codes(ops_[i]);
      if (tensor_ > 1 && is_tensor_collective(ops_[i], OpKind::kAllGather)) gather(i);
      if (exchanged_ && rows_ > 0 && sends_once(stack_.expert_dispatch)) send_once(ops_[i]);
      if (!runs_transformer_engine(stack_)) continue;
      if (tensor_ > 1 && is_tensor_collective(ops_[i], OpKind::kReduceScatter) && ends_routing(i)) leave_out(ops_[i]);
      if (exchanged_ && rows_ > 0 && !sends_once(stack_.expert_dispatch)) sort(ops_[i]);
      if (turning_ > 0 && stack_.fuses_latents) {
        assemble(ops_[i]);
      } else if (how.amplitude != 1) {
        turn(ops_[i]);
      }
    }
    if (!changed_) return std::nullopt;
    return std::move(ops_);
  }

 private:
  void sort(Op& op) {
    if (local_experts_ < 2) return;
    if (op.kind != OpKind::kDispatch && op.kind != OpKind::kDispatchBackward && op.kind != OpKind::kCombine &&
        op.kind != OpKind::kCombineBackward) {
      return;
    }
    op.bytes += rows_ * static_cast<double>(op.n) * kSorted;
    changed_ = true;
  }

  // What the Program places before an exchange is placed after it, as many rows; sums of a rank's experts are written
  // for every token that the rank received, and summed over ranks on the way back.
  void send_once(Op& op) {
    if (experts_ <= local_experts_ || choices_ < 1) return;
    const double ranks = TokenRoutes{experts_, choices_}.holders_of_a_token(local_experts_);
    if (is_expert_exchange(op)) {
      op.bytes *= ranks / static_cast<double>(choices_);
      op.experts = static_cast<std::int32_t>(experts_);
      op.k = choices_;
    } else if (op.kind == OpKind::kCombine || op.kind == OpKind::kDispatchBackward) {
      op.bytes += kWritten * rows_ / static_cast<double>(choices_) * (ranks - 1) * static_cast<double>(op.n);
    } else {
      return;
    }
    changed_ = true;
  }

  // Latents: one kernel turns queries in place, another makes keys and values of what the product gave and the part
  // that heads share. Attention reads what they leave, and its gradients are laid out as they are.
  void assemble(Op& op) {
    const double tokens = static_cast<double>(op.m), heads = op.heads, keys = op.head_dim;
    const double values = static_cast<double>(value_dim_of(op));
    if (places_latents(op)) {
      const double read = heads * (keys - turning_ + values) + turning_, written = heads * (keys + values);
      op.bytes = kWritten * tokens * (read + written);
    } else if (op.kind == OpKind::kRotary || op.kind == OpKind::kRotaryBackward) {
      op.bytes = 2 * kWritten * tokens * heads * turning_;
    } else if (op.flash && (op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBackward)) {
      op.bytes = 0;
    } else {
      return;
    }
    changed_ = true;
  }

  // Of a bucket's gather op.k numbers come as codes, one byte each; what was cast in 16 bits, both ways, is transposed.
  // Largest numbers are found where a rank casts its shard.
  void keep_codes(Op& op) {
    if (!program::is_half(op.dtype)) return;
    if (op.kind == OpKind::kAllGather && op.bucket >= 0 && op.k > 0) {
      op.bytes -= (kWritten - 1) * static_cast<double>(op.k);
    } else if (op.kind == OpKind::kQuantize && op.operand == program::Fp8Operand::kWeight) {
      op.bytes = 2 * static_cast<double>(op.m) * static_cast<double>(op.n);
      op.fp8 = Fp8::kDelayed;
    } else {
      return;
    }
    changed_ = true;
  }

  void turn(Op& op) {
    if (op.kind != OpKind::kRotary && op.kind != OpKind::kRotaryBackward) return;
    const double numbers = static_cast<double>(op.m) * (op.heads + op.kv_heads) * op.head_dim;
    op.bytes = numbers * (op.kind == OpKind::kRotary ? kTurn : kTurnBackward) * eager_time(stack_);
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
      if (gathers_casts(readers.front()->fp8)) gather_casts(ops_[at], readers);
      return;
    }
    if (!runs_transformer_engine(stack_)) return;
    const bool routes = std::ranges::all_of(readers, [&](const Op* op) { return routing(*op); });
    if (routes) leave_out(ops_[at]);
  }

  bool gathers_casts(Fp8 recipe) const {
    return runs_transformer_engine(stack_) || (stack_.gathers_scaled_tensors && recipe == Fp8::kCurrent);
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
  const program::StackTraits& stack_;
  std::int64_t experts_ = 0, choices_ = 0;  // of the layer; of a token
  int local_experts_ = 0;
  bool exchanged_ = false;
  double rows_ = 0;     // of all experts of this rank
  double turning_ = 0;  // components of a head, where heads are made of latents
  bool changed_ = false;
};

}  // namespace

int experts_at_once(const program::StackTraits& stack) { return launches_experts_apart(stack) ? kStreams : 0; }

double loose_expert_bytes(const Op& op, const program::StackTraits& stack, double traffic) {
  if (!runs_transformer_engine(stack) || !program::is_half(op.dtype)) return 0;
  if (is_bias(op)) {
    // What products read gets its bias in the product, and its gradient in that of the weights.
    if (!leaves_experts(op)) return -op.bytes * traffic;
    const double numbers = static_cast<double>(op.m) * static_cast<double>(op.n) * std::max(1, op.experts);
    const double bytes = op.kind == OpKind::kExpertBias ? kOutputBias : kOutputBiasBackward;
    return numbers * bytes * eager_time(stack) - op.bytes * traffic;
  }
  return cut_numbers(op) * (op.kind == OpKind::kActivation ? kCut : kCutBackward) * eager_time(stack);
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
                                           const Executed& how) {
  const bool once = sends_once(stack.expert_dispatch);
  if (!runs_transformer_engine(stack) && !stack.gathers_scaled_tensors && !once && !how.gathers_codes) {
    return std::nullopt;
  }
  return Segment(ops, tensor, stack).executed(how);
}

}  // namespace trivium::simulator
