// Attention: operands to kernels. Unfused it is products of matrices and a softmax; with flash the fused kernel where
// there is one, else products as well, or the kernels by rows for what those do not do: rings and dropout.
#pragma once

#include <cmath>
#include <type_traits>

#include "program/ir/op_views.h"
#include "runtime/cuda/kernels/attention_rows.h"
#include "runtime/cuda/kernels/context.h"
#include "runtime/cuda/kernels/flash.h"
#include "runtime/cuda/kernels/flash_warpgroup.h"
#include "runtime/cuda/operation.h"
#include "runtime/cuda/ops_attention_products.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

inline constexpr int kRowWarps = 4;  ///< rows of attention a block takes

/// A ring step: keys and values of the rank `k` steps back, as (T, k|v).
inline AttentionShape ring_attention(const KernelArguments& a) {
  const program::Op& op = *a.op;
  AttentionShape s = whole_attention(a);
  s.local = op.sequence / op.parts;
  s.samples = op.m / s.local;
  s.key_at = 0;
  s.value_at = static_cast<std::int64_t>(op.kv_heads) * op.head_dim;
  s.kv_width = 2 * s.value_at;
  s.positions.local = s.local;
  s.positions.rank = a.context_rank;
  s.positions.ranks = op.parts;
  s.source = static_cast<int>((a.context_rank - program::ring_step(op) % op.parts + op.parts) % op.parts);
  return s;
}

template <class Launcher, class Kernel>
void run_warps(Launcher& l, const Kernel& kernel, std::int64_t items) {
  l.run(kernel, blocks_for(items, kRowWarps), kRowWarps * kWarp);
}

template <class T, class Launcher>
float* attention_dots(Launcher& l, const KernelArguments& a, const void* y, const void* dy) {
  const std::int64_t items = a.op->m * a.op->heads;
  auto* dots = reinterpret_cast<float*>(l.scratch(items * static_cast<std::int64_t>(sizeof(float))));
  const auto* from = static_cast<const T*>(y);
  const auto* gradient = static_cast<const T*>(dy);
  if (sizeof(T) == 2 && a.op->head_dim == 64) {
    run_elements(l, AttentionPackDots<T, 8>{from, gradient, dots, items}, items * 8);
  } else if (sizeof(T) == 2 && a.op->head_dim == 128) {
    run_elements(l, AttentionPackDots<T, 16>{from, gradient, dots, items}, items * 16);
  } else {
    run_warps(l, AttentionDots<T>{from, gradient, dots, items, a.op->head_dim}, items);
  }
  return dots;
}

// ---- flash ----

/// Which keys a rank's queries see depends on whose they are: of its own those before, of an earlier rank the first
/// chunk of its two, whole, of a later rank both, but with this rank's second chunk of queries alone
/// (program/ir/context.h).
inline FlashShape flash_shape(const AttentionShape& s) {
  const std::int64_t chunk = s.local / 2;
  const bool earlier = s.source < s.positions.rank;
  FlashShape f{};
  f.local = s.local, f.q_width = s.q_width, f.kv_width = s.kv_width;
  f.key_at = s.key_at, f.value_at = s.value_at;
  f.heads = s.heads, f.kv_heads = s.kv_heads, f.dim = s.dim;
  f.causal = s.source == s.positions.rank;
  f.from = earlier ? 0 : chunk;
  f.keys = earlier ? chunk : s.local;
  f.scale = s.scale, f.dropout = s.dropout;
  return f;
}

template <class T>
struct FlashForwardOperands {
  const T* q;
  const T* kv;
  T* y;
  float* log_sums;
  bool merges;
};

template <class T, int D, bool kDrops, class Launcher>
void fused_attention(Launcher& l, const AttentionShape& s, const FlashForwardOperands<T>& o) {
  const std::int64_t lines = s.samples * s.heads;
  if constexpr (!kDrops) {
    if (l.has_warpgroups()) {
      using Kernel = WarpgroupForward<T, D>;
      return l.run(Kernel{o.q, o.kv, o.y, o.log_sums, o.merges, flash_shape(s), lines}, Kernel::tiles(s.local) * lines,
                   Kernel::kThreads, Kernel::shared_bytes());
    }
  }
  using Kernel = FlashForward<T, D, kDrops>;
  l.run(Kernel{o.q, o.kv, o.y, o.log_sums, o.merges, flash_shape(s), lines}, Kernel::tiles(s.local) * lines,
        kFlashThreads, Kernel::shared_bytes());
}

template <class T>
struct FlashBackwardOperands {
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dq;
  T* dkv;
  bool adds;  ///< to dq
};

template <class Keys, class Queries, class Launcher, class Operands>
void fused_attention_backward(Launcher& l, const AttentionShape& s, const Operands& o) {
  const FlashShape f = flash_shape(s);
  const std::int64_t key_lines = s.samples * s.kv_heads, lines = s.samples * s.heads;
  l.run(Keys{o.q, o.kv, o.dy, o.log_sums, o.dots, o.dkv, f, key_lines}, f.tiles() * key_lines, kFlashThreads,
        Keys::shared_bytes());
  l.run(Queries{o.q, o.kv, o.dy, o.log_sums, o.dots, o.dq, o.adds, f, lines}, f.tiles() * lines, kFlashThreads,
        Queries::shared_bytes());
}

template <class T, int D, bool kDrops, class Launcher>
void fused_attention_backward(Launcher& l, const AttentionShape& s, const FlashBackwardOperands<T>& o) {
  if constexpr (!kDrops) {
    if (l.has_warpgroups()) {
      return fused_attention_backward<WarpgroupBackwardKeys<T, D>, WarpgroupBackwardQueries<T, D>>(l, s, o);
    }
  }
  fused_attention_backward<FlashBackwardKeys<T, D, kDrops>, FlashBackwardQueries<T, D, kDrops>>(l, s, o);
}

template <class T, class Launcher>
bool has_fused_kernel(const Launcher& l, const KernelArguments& a) {
  return sizeof(T) == 2 && l.has_tiles() && has_fused_dim(a.op->head_dim);
}

/// Calls work(D, whether it drops, as constants) where there is a fused kernel for the op; false where there is none.
template <class T, class Launcher, class Work>
bool with_fused_dim(const Launcher& l, const KernelArguments& a, const Work& work) {
  if constexpr (sizeof(T) == 2) {
    if (!has_fused_kernel<T>(l, a)) return false;
    const auto with_dim = [&](auto drops) {
      a.op->head_dim <= 64 ? work(std::integral_constant<int, 64>(), drops)
                           : work(std::integral_constant<int, 128>(), drops);
    };
    a.dropout.drops() ? with_dim(std::true_type()) : with_dim(std::false_type());
    return true;
  }
  return false;
}

template <class T, class Launcher>
void attention(Launcher& l, const KernelArguments& a) {
  if (!a.op->flash) return unfused_attention<T>(l, a);
  const FlashForwardOperands<T> operands{input<T>(a, 0), input<T>(a, 0), output<T>(a, 0), output<float>(a, 1), false};
  if (with_fused_dim<T>(l, a, [&](auto dim, auto drops) {
        fused_attention<T, decltype(dim)::value, decltype(drops)::value>(l, whole_attention(a), operands);
      })) {
    return;
  }
  if (!a.dropout.drops()) return batched_attention<T>(l, a);
  run_warps(
      l,
      AttentionRow<T>{input<T>(a, 0), input<T>(a, 0), output<T>(a, 0), output<float>(a, 1), whole_attention(a), false},
      a.op->m * a.op->heads);
}

template <class T, class Launcher>
void attention_backward(Launcher& l, const KernelArguments& a) {
  if (!a.op->flash) return unfused_attention_backward<T>(l, a);
  const AttentionShape s = whole_attention(a);
  if (!a.dropout.drops() && !has_fused_kernel<T>(l, a)) return batched_attention_backward<T>(l, a);
  const float* dots = attention_dots<T>(l, a, a.in[1], a.in[3]);
  const T* qkv = input<T>(a, 0);
  T* dqkv = output<T>(a, 0);
  const FlashBackwardOperands<T> operands{qkv, qkv, input<T>(a, 3), input<float>(a, 2), dots, dqkv, dqkv, false};
  if (with_fused_dim<T>(l, a, [&](auto dim, auto drops) {
        fused_attention_backward<T, decltype(dim)::value, decltype(drops)::value>(l, s, operands);
      })) {
    return;
  }
  run_warps(l, AttentionRowDq<T>{qkv, qkv, input<T>(a, 3), input<float>(a, 2), dots, output<T>(a, 0), s, false},
            a.op->m * a.op->heads);
  run_warps(l, AttentionRowDkv<T>{qkv, qkv, input<T>(a, 3), input<float>(a, 2), dots, output<T>(a, 0), s},
            a.op->m * a.op->kv_heads);
}

// ---- over a split sequence ----

/// The fused kernels draw dropout for rows that follow each other in the sample, which a ring's do not.
template <class T, class Launcher, class Work>
bool with_fused_block(const Launcher& l, const KernelArguments& a, const Work& work) {
  if (a.dropout.drops()) return false;
  return with_fused_dim<T>(l, a, [&](auto dim, auto drops) {
    if constexpr (!decltype(drops)::value) work(dim);
  });
}

template <class T, class Launcher>
void attention_block(Launcher& l, const KernelArguments& a) {
  const FlashForwardOperands<T> operands{input<T>(a, 0), input<T>(a, 1), output<T>(a, 0), output<float>(a, 1),
                                         program::ring_step(*a.op) > 0};
  if (with_fused_block<T>(
          l, a, [&](auto dim) { fused_attention<T, decltype(dim)::value, false>(l, ring_attention(a), operands); })) {
    return;
  }
  run_warps(l,
            AttentionRow<T>{input<T>(a, 0), input<T>(a, 1), output<T>(a, 0), output<float>(a, 1), ring_attention(a),
                            program::ring_step(*a.op) > 0},
            a.op->m * a.op->heads);
}

template <class T, class Launcher>
void attention_block_backward(Launcher& l, const KernelArguments& a) {
  const AttentionShape s = ring_attention(a);
  const float* dots = attention_dots<T>(l, a, a.in[1], a.in[3]);
  const FlashBackwardOperands<T> operands{
      input<T>(a, 0), input<T>(a, 4),  input<T>(a, 3),  input<float>(a, 2),
      dots,           output<T>(a, 0), output<T>(a, 1), program::ring_step(*a.op) > 0};
  if (with_fused_block<T>(
          l, a, [&](auto dim) { fused_attention_backward<T, decltype(dim)::value, false>(l, s, operands); })) {
    return;
  }
  run_warps(l,
            AttentionRowDq<T>{input<T>(a, 0), input<T>(a, 4), input<T>(a, 3), input<float>(a, 2), dots, output<T>(a, 0),
                              s, program::ring_step(*a.op) > 0},
            a.op->m * a.op->heads);
  run_warps(
      l,
      AttentionRowDkv<T>{input<T>(a, 0), input<T>(a, 4), input<T>(a, 3), input<float>(a, 2), dots, output<T>(a, 1), s},
      a.op->m * a.op->kv_heads);
}

template <class T, class Launcher>
void move_kv(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const std::int64_t query = static_cast<std::int64_t>(op.heads) * op.head_dim, whole = query + op.n;
  const bool splits = op.kind == program::OpKind::kSplitKv;
  run_elements(l,
               CopyColumns<T>{input<T>(a, 0), output<T>(a, 0), op.m, op.n, splits ? whole : op.n, splits ? query : 0,
                              splits ? op.n : whole, splits ? 0 : query},
               op.m * op.n);
}

inline HeadParts head_parts(const program::Op& op) {
  const std::int64_t dim = op.head_dim, shared = op.kv_heads / op.parts;
  const std::int64_t part_kv = op.kv_heads == 0 ? 0 : shared > 1 ? shared : 1;
  return {op.m,        op.parts, op.heads * dim, op.kv_heads * dim, op.heads / op.parts * dim, part_kv * dim,
          op.kv_heads, dim};
}

template <class T, class Launcher>
void pack_heads(Launcher& l, const KernelArguments& a) {
  const HeadParts h = head_parts(*a.op);
  run_elements(l, PackHeads<T>{input<T>(a, 0), output<T>(a, 0), h},
               h.parts * h.tokens * (h.part_query + 2 * h.part_key));
}

template <class T, class Launcher>
void unpack_heads(Launcher& l, const KernelArguments& a) {
  const HeadParts h = head_parts(*a.op);
  run_elements(l, UnpackHeads<T>{input<T>(a, 0), output<T>(a, 0), h}, h.tokens * (h.query + 2 * h.key));
}

template <class T, class Launcher>
void reorder_tokens(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  run_elements(
      l,
      ReorderTokens<T>{input<T>(a, 0), output<T>(a, 0), op.n, op.m / op.sequence, op.sequence, op.parts,
                       op.kind == program::OpKind::kPackTokens, a.context_method == program::ContextMethod::kRing},
      op.m * op.n);
}

/// The function for an op kind of this file, for operands of type T; null for another kind.
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

}  // namespace trivium::runtime::cuda
