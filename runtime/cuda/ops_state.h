// Mixtures of experts and the optimizer: operands to kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "program/ir/expert_rows.h"
#include "runtime/cuda/kernels/mixture.h"
#include "runtime/cuda/kernels/optimizer.h"
#include "runtime/cuda/operation.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

/// Of samples of which this rank has `tokens` tokens each.
inline Routing routing_of(const program::Op& op, std::int64_t tokens) {
  return {op.experts, op.k, op.sequence, op.m / tokens};
}

inline Listed listed_of(const KernelArguments& a) { return {positions_of(a, a.op->sequence)}; }

inline const Choice* choices_of(const KernelArguments& a, int operand) { return input<Choice>(a, operand); }

/// What one sample's balance counts in the loss of the step.
inline double balance_weight(const KernelArguments& a, const Routing& r) {
  return a.routing->balance_loss * a.values->loss_weight * static_cast<double>(r.sequence * r.experts);
}

inline Sharers sharers_of(const KernelArguments& a) { return {a.context_method, a.context_rank, a.context_ranks}; }

/// The rank's rows, and where there are any those that it sends to other context ranks.
template <class T>
RowsOf<const T> rows_in(const KernelArguments& a, int own, int spilled) {
  return {input<T>(a, own), input<T>(a, spilled), a.op->elements, a.op->n};
}
template <class T>
RowsOf<T> rows_out(const KernelArguments& a, int own, int spilled) {
  return {output<T>(a, own), output<T>(a, spilled), a.op->elements, a.op->n};
}

template <class Launcher>
void route(Launcher& l, const KernelArguments& a) {
  const Routing r = routing_of(*a.op, a.op->sequence);
  const program::ExpertRows rows{a.op->elements, r.samples, a.context_ranks, a.tensor_ranks};
  // One of the ranks that share a sample counts its balance.
  double* loss = a.context_rank == 0 ? output<double>(a, 2) : nullptr;
  const std::int64_t pairs = r.samples * r.experts, tokens = r.samples * r.sequence;
  auto* balance = loss == nullptr
                      ? nullptr
                      : reinterpret_cast<double*>(l.scratch(pairs * static_cast<std::int64_t>(sizeof(double))));
  float* probabilities = output<float>(a, 0);
  auto* choices = output<Choice>(a, 1);
  l.run(Choose{input<float>(a, 0), probabilities, choices, tokens, r.experts, r.top_k},
        blocks_for(tokens, Choose::kTokens), Choose::kThreads);
  const PlaceChoices place{probabilities,
                           choices,
                           balance,
                           r,
                           sharers_of(a),
                           rows.capacity,
                           rows.context_part(),
                           rows.part(),
                           static_cast<std::uint32_t>(a.tensor_rank),
                           static_cast<std::uint32_t>(a.tensor_ranks)};
  l.run(place, pairs, kWarp, place.shared_bytes());
  if (loss != nullptr) {
    l.run(BalanceLoss{balance, loss, pairs, balance_weight(a, r)}, 1, row_threads(pairs), kReduceBytes);
  }
}

template <class Launcher>
void spill(Launcher& l, const KernelArguments& a) {
  const Routing r = routing_of(*a.op, a.op->sequence);
  l.run(Spill{choices_of(a, 0), output<Choice>(a, 0), output<std::int32_t>(a, 1), r, sharers_of(a), a.op->elements}, 1,
        kElementThreads, Spill::shared_bytes(kElementThreads));
}

template <class T, class Launcher>
void move_spilled(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const bool places = op.kind == program::OpKind::kPlaceRows;
  l.run(MoveSpilled<T>{input<T>(a, 0), input<std::int32_t>(a, 1), output<T>(a, 0), op.n, op.parts, places}, op.elements,
        row_threads(op.n));
}

template <class T, class Launcher>
void route_backward(Launcher& l, const KernelArguments& a) {
  const Listed listed = listed_of(a);
  const Routing r = routing_of(*a.op, listed.positions.local);
  const double balance =
      a.tensor_rank == 0 ? balance_weight(a, r) * a.values->loss_scale / static_cast<double>(r.sequence) : 0;
  float* shares = nullptr;
  if (balance != 0) {
    shares = reinterpret_cast<float*>(l.scratch(r.samples * r.experts * static_cast<std::int64_t>(sizeof(float))));
    l.run(BalanceShares{choices_of(a, 1), shares, r, balance}, r.samples * r.experts, kWarp);
  }
  using Kernel = RouteBackward<T>;
  l.run(Kernel{input<float>(a, 0), choices_of(a, 1), input<float>(a, 2), shares, output<float>(a, 0), r, listed},
        blocks_for(r.samples * listed.positions.local, Kernel::kTokens), Kernel::kThreads);
}

template <class T, class Launcher>
void dispatch(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  l.zero(a.out[0], op.elements * op.n * static_cast<std::int64_t>(sizeof(T)));
  l.run(Dispatch<T>{input<T>(a, 0), choices_of(a, 1), rows_out<T>(a, 0, 1), op.n, op.k, listed_of(a)}, op.m * op.k,
        row_threads(op.n));
}

template <class T, class Launcher>
void dispatch_backward(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  l.run(
      Combine<T>{rows_in<T>(a, 0, 2), nullptr, choices_of(a, 1), output<T>(a, 0), op.n, op.k, op.experts, listed_of(a)},
      op.m, row_threads(op.n));
}

template <class T, class Launcher>
void combine(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  l.run(Combine<T>{rows_in<T>(a, 0, 3), input<float>(a, 1), choices_of(a, 2), output<T>(a, 0), op.n, op.k, op.experts,
                   listed_of(a)},
        op.m, row_threads(op.n));
}

template <class T, class Launcher>
void combine_backward(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  l.zero(a.out[0], op.elements * op.n * static_cast<std::int64_t>(sizeof(T)));
  l.run(CombineBackward<T>{input<T>(a, 0), rows_in<T>(a, 1, 4), input<float>(a, 2), choices_of(a, 3),
                           rows_out<T>(a, 0, 2), output<float>(a, 1), op.n, op.k, op.experts, listed_of(a)},
        op.m * op.k, row_threads(op.n), kReduceBytes);
}

/// Products of every expert with its rows: (parts, experts, rows / parts) of them, the experts as a batch.
template <class T, class Launcher>
void expert_matmul(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const bool forward = op.kind == program::OpKind::kExpertMatmul,
             wgrad = op.kind == program::OpKind::kExpertMatmulWgrad;
  const std::int64_t rows = op.m / op.parts;
  for (int part = 0; part < op.parts; ++part) {
    const std::int64_t first = static_cast<std::int64_t>(part) * op.experts * rows;
    Gemm g{.m = rows, .n = forward ? op.n : op.k, .k = forward ? op.k : op.n, .type = kTypeOf<T>, .out = kTypeOf<T>};
    g.batch = op.experts;
    if (wgrad) {
      g.m = op.k, g.n = op.n, g.k = rows, g.out = program::DType::kFp32;
      g.a_transposed = true, g.beta = 1;
      g.a = input<T>(a, 0) + first * op.k, g.lda = op.k, g.stride_a = rows * op.k;
      g.b = input<T>(a, 1) + first * op.n, g.ldb = op.n, g.stride_b = rows * op.n;
      g.c = a.out[0], g.ldc = op.n, g.stride_c = op.k * op.n;
    } else {
      g.a = input<T>(a, 0) + first * g.k, g.lda = g.k, g.stride_a = rows * g.k;
      g.b = a.in[1], g.ldb = op.n, g.stride_b = op.k * op.n, g.b_transposed = !forward;
      g.c = output<T>(a, 0) + first * g.n, g.ldc = g.n, g.stride_c = rows * g.n;
    }
    l.gemm(g);
  }
}

// ---- optimizer ----

inline const program::Bucket& bucket_of(const KernelArguments& a) {
  return a.kind->buckets[static_cast<std::size_t>(a.op->bucket)];
}

template <class T>
T* space_of(const KernelArguments& a, program::Space which) {
  return reinterpret_cast<T*>(a.chunk_base[static_cast<std::size_t>(which)]);
}

/// The parameters' elements within run `part` of this rank's shard of the bucket, at most Ranges::kMost at once.
template <class Counts>
std::vector<Ranges> own_ranges(const KernelArguments& a, int part, const Counts& counts) {
  std::vector<Ranges> all;
  const std::int64_t own = bucket_of(a).own_begin(a.shard_rank, part), own_end = own + bucket_of(a).own_run();
  for (const program::Parameter& p : a.kind->parameters) {
    const std::int64_t begin = std::max(own, p.offset);
    const std::int64_t end = std::min(own_end, p.offset + p.local_rows * p.local_columns);
    if (begin >= end || !counts(p)) continue;
    if (all.empty() || all.back().count == Ranges::kMost) all.emplace_back();
    Ranges& ranges = all.back();
    ranges.begin[ranges.count] = begin;
    ranges.end[ranges.count] = end;
    const bool counts_keys = p.key_columns == 0 || a.tensor_rank % p.key_ranks == 0;
    ranges.origin[ranges.count] = p.offset;
    ranges.columns[ranges.count] = counts_keys ? 0 : p.local_columns;
    ranges.counted[ranges.count] = p.local_columns - p.key_columns;
    ranges.decayed[ranges.count++] = p.decayed;
  }
  return all;
}

inline std::int64_t elements_of(const Ranges& ranges) {
  std::int64_t elements = 0;
  for (int i = 0; i < ranges.count; ++i) elements += ranges.end[i] - ranges.begin[i];
  return elements;
}

template <class Launcher>
void zero_gradients(Launcher& l, const KernelArguments& a) {
  if (a.out[0] != nullptr) return l.zero(a.out[0], a.op->elements * 4);
  const program::Bucket& bucket = bucket_of(a);
  const bool shard = bucket.gradient_shard >= 0;
  l.zero(reinterpret_cast<std::byte*>(space_of<float>(a, program::Space::kGradient) +
                                      (shard ? bucket.gradient_shard : bucket.begin + bucket.gradient_shift)),
         (shard ? bucket.shard : bucket.elements) * 4);
}

template <class Launcher>
void gradient_norm(Launcher& l, const KernelArguments& a) {
  constexpr std::int64_t kMostBlocks = SquarePartials::kBlocksAtOnce * kMultiprocessors;
  constexpr int kThreads = 256, kShared = SquarePartials::shared_bytes(kThreads);
  const program::Bucket& bucket = bucket_of(a);
  const bool sharded = bucket.shard < bucket.elements;
  if (sharded && a.shard_replica != 0) return;
  if (!sharded && !bucket.expert && a.expert_replica != 0) return;
  const auto counts = [&](const program::Parameter& p) {
    return !p.tied_copy && program::is_first_holder(p, a.tensor_rank);
  };
  auto* partial = reinterpret_cast<Double2*>(l.scratch(kMostBlocks * static_cast<std::int64_t>(sizeof(Double2))));
  for (int part = 0; part < bucket.parts; ++part) {
    const float* gradients = space_of<float>(a, program::Space::kGradient) + bucket.own_gradients(a.shard_rank, part) -
                             bucket.own_begin(a.shard_rank, part);
    for (const Ranges& ranges : own_ranges(a, part, counts)) {
      constexpr int kEach = kThreads * SquarePartials::kAhead * SquarePartials::kPack;
      const auto blocks = std::min(kMostBlocks, blocks_for(elements_of(ranges), kEach));
      l.run(SquarePartials{gradients, partial, ranges}, blocks, kThreads, kShared);
      l.run(SquareTotal{partial, output<double>(a, 0), static_cast<int>(blocks)}, 1, kThreads, kShared);
    }
  }
}

template <class T, class Launcher>
void adamw(Launcher& l, const KernelArguments& a) {
  constexpr std::int64_t kMostBlocks = AdamW<T>::kBlocksAtOnce * kMultiprocessors;
  const program::Optimizer& o = *a.optimizer;
  const program::Bucket& bucket = bucket_of(a);
  const double steps = static_cast<double>(a.values->step + 1 - a.values->skipped_steps);
  AdamWValues v{};
  v.rate = static_cast<float>(a.values->learning_rate);
  v.beta1 = static_cast<float>(o.beta1), v.beta2 = static_cast<float>(o.beta2);
  v.rest1 = static_cast<float>(1 - o.beta1), v.rest2 = static_cast<float>(1 - o.beta2);
  v.correct1 = static_cast<float>(1 / (1 - std::pow(o.beta1, steps)));
  v.correct2 = static_cast<float>(1 / (1 - std::pow(o.beta2, steps)));
  v.epsilon = static_cast<float>(o.epsilon), v.decay = static_cast<float>(o.weight_decay);
  v.clip_norm = o.clip_norm, v.unscale = 1 / a.values->loss_scale;
  std::byte* kept = space_of<std::byte>(a, program::Space::kOptimizer) + bucket.optimizer_offset;
  auto* state = reinterpret_cast<float*>(a.in[1] != nullptr ? a.in[1] : kept);  // fetched, where offloaded
  AdamW<T> kernel{};
  kernel.norm = input<double>(a, 0);
  kernel.v = v;
  for (int part = 0; part < bucket.parts; ++part) {
    const std::int64_t own = bucket.own_begin(a.shard_rank, part);
    float* moments = state + part * bucket.own_run() - own;
    kernel.parameters = space_of<T>(a, program::Space::kParameter) + bucket.own_parameters(a.shard_rank, part) - own;
    kernel.gradients = space_of<float>(a, program::Space::kGradient) + bucket.own_gradients(a.shard_rank, part) - own;
    kernel.first = moments;
    kernel.second = moments + bucket.shard;
    kernel.master = sizeof(T) == sizeof(float) ? nullptr : moments + 2 * bucket.shard;
    for (const Ranges& ranges : own_ranges(a, part, [](const program::Parameter&) { return true; })) {
      kernel.ranges = ranges;
      l.run(kernel, std::min(kMostBlocks, blocks_for(elements_of(ranges), kElementThreads)), kElementThreads);
    }
  }
}

/// The function for an op kind of this file, for operands of type T; null for another kind.
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
    case OpKind::kZeroGradients:
      return zero_gradients<Launcher>;
    default:
      return nullptr;
  }
}

}  // namespace trivium::runtime::cuda
