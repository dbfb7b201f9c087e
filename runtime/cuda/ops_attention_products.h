// Attention as products of matrices and a softmax: unfused, with scores that the plan keeps; or, where flash is asked
// for and has no kernel, in blocks of heads whose scores lie in scratch memory and are made again by the backward.
#pragma once

#include <algorithm>

#include "runtime/cuda/kernels/attention_rows.h"
#include "runtime/cuda/operation.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

/// Without a split of the sequence: keys and values lie in (T, q|k|v) next to the queries.
inline AttentionShape whole_attention(const KernelArguments& a) {
  const program::Op& op = *a.op;
  AttentionShape s{};
  s.samples = op.m / op.sequence, s.local = op.sequence;
  s.heads = op.heads, s.kv_heads = op.kv_heads, s.dim = op.head_dim;
  s.q_width = s.kv_width = static_cast<std::int64_t>(op.heads + 2 * op.kv_heads) * op.head_dim;
  s.key_at = static_cast<std::int64_t>(op.heads) * op.head_dim;
  s.value_at = s.key_at + static_cast<std::int64_t>(op.kv_heads) * op.head_dim;
  s.positions.sequence = s.positions.local = op.sequence;
  s.scale = static_cast<float>(program::score_scale_of(op));
  s.dropout = a.dropout;
  return s;
}

/// Operands of a block of heads. Rows of y and dy are `out_width` apart.
template <class T>
struct HeadOperands {
  const T* qkv;
  std::int64_t out_width;
};

/// First elements of the operands of a batch, which is the key heads: of queries, of keys or values, of y, of scores.
struct HeadBatch {
  std::int64_t q, kv, y, scores;
};

/// Calls visit(batch, member) for every sample and place within the groups of query heads that share a key head.
template <class Visit>
void for_each_head_batch(const AttentionShape& s, std::int64_t out_width, const Visit& visit) {
  const std::int64_t group = s.heads / s.kv_heads, square = s.local * s.local;
  for (std::int64_t sample = 0; sample < s.samples; ++sample) {
    for (std::int64_t member = 0; member < group; ++member) {
      const std::int64_t token = sample * s.local;
      visit(HeadBatch{token * s.q_width + member * s.dim, token * s.kv_width, token * out_width + member * s.dim,
                      (sample * s.heads + member) * square},
            member);
    }
  }
}

template <class T>
Gemm head_product(const AttentionShape& s, std::int64_t m, std::int64_t n, std::int64_t k) {
  Gemm g{.m = m, .n = n, .k = k, .type = kTypeOf<T>, .out = kTypeOf<T>};
  g.batch = s.kv_heads;
  return g;
}

/// scores = scale q k^T
template <class T, class Launcher>
void score_products(Launcher& l, const AttentionShape& s, const HeadOperands<T>& o, T* scores) {
  const std::int64_t S = s.local, group = s.heads / s.kv_heads;
  for_each_head_batch(s, o.out_width, [&](const HeadBatch& at, std::int64_t) {
    Gemm g = head_product<T>(s, S, S, s.dim);
    g.a = o.qkv + at.q, g.lda = s.q_width, g.stride_a = group * s.dim;
    g.b = o.qkv + at.kv + s.key_at, g.ldb = s.kv_width, g.stride_b = s.dim, g.b_transposed = true;
    g.c = scores + at.scores, g.ldc = S, g.stride_c = group * S * S;
    g.alpha = s.scale;
    l.gemm(g);
  });
}

/// y = weights v
template <class T, class Launcher>
void value_products(Launcher& l, const AttentionShape& s, const HeadOperands<T>& o, const T* weights, T* y) {
  const std::int64_t S = s.local, group = s.heads / s.kv_heads;
  for_each_head_batch(s, o.out_width, [&](const HeadBatch& at, std::int64_t) {
    Gemm g = head_product<T>(s, S, s.dim, S);
    g.a = weights + at.scores, g.lda = S, g.stride_a = group * S * S;
    g.b = o.qkv + at.kv + s.value_at, g.ldb = s.kv_width, g.stride_b = s.dim;
    g.c = y + at.y, g.ldc = o.out_width, g.stride_c = group * s.dim;
    l.gemm(g);
  });
}

/// dv = weights^T dy
template <class T, class Launcher>
void value_gradients(Launcher& l, const AttentionShape& s, const HeadOperands<T>& o, const T* weights, const T* dy,
                     T* dqkv) {
  const std::int64_t S = s.local, group = s.heads / s.kv_heads;
  for_each_head_batch(s, o.out_width, [&](const HeadBatch& at, std::int64_t member) {
    Gemm g = head_product<T>(s, S, s.dim, S);
    g.a = weights + at.scores, g.lda = S, g.stride_a = group * S * S, g.a_transposed = true;
    g.b = dy + at.y, g.ldb = o.out_width, g.stride_b = group * s.dim;
    g.c = dqkv + at.kv + s.value_at, g.ldc = s.kv_width, g.stride_c = s.dim;
    g.beta = member > 0 ? 1.0F : 0.0F;
    l.gemm(g);
  });
}

/// ds = dy v^T
template <class T, class Launcher>
void weight_gradients(Launcher& l, const AttentionShape& s, const HeadOperands<T>& o, const T* dy, T* ds) {
  const std::int64_t S = s.local, group = s.heads / s.kv_heads;
  for_each_head_batch(s, o.out_width, [&](const HeadBatch& at, std::int64_t) {
    Gemm g = head_product<T>(s, S, S, s.dim);
    g.a = dy + at.y, g.lda = o.out_width, g.stride_a = group * s.dim;
    g.b = o.qkv + at.kv + s.value_at, g.ldb = s.kv_width, g.stride_b = s.dim, g.b_transposed = true;
    g.c = ds + at.scores, g.ldc = S, g.stride_c = group * S * S;
    l.gemm(g);
  });
}

/// dq = scale ds k, dk = scale ds^T q
template <class T, class Launcher>
void score_gradients(Launcher& l, const AttentionShape& s, const HeadOperands<T>& o, const T* ds, T* dqkv) {
  const std::int64_t S = s.local, group = s.heads / s.kv_heads;
  for_each_head_batch(s, o.out_width, [&](const HeadBatch& at, std::int64_t member) {
    Gemm dq = head_product<T>(s, S, s.dim, S);
    dq.a = ds + at.scores, dq.lda = S, dq.stride_a = group * S * S;
    dq.b = o.qkv + at.kv + s.key_at, dq.ldb = s.kv_width, dq.stride_b = s.dim;
    dq.c = dqkv + at.q, dq.ldc = s.q_width, dq.stride_c = group * s.dim;
    dq.alpha = s.scale;
    l.gemm(dq);
    Gemm dk = head_product<T>(s, S, s.dim, S);
    dk.a = ds + at.scores, dk.lda = S, dk.stride_a = group * S * S, dk.a_transposed = true;
    dk.b = o.qkv + at.q, dk.ldb = s.q_width, dk.stride_b = group * s.dim;
    dk.c = dqkv + at.kv + s.key_at, dk.ldc = s.kv_width, dk.stride_c = s.dim;
    dk.alpha = s.scale, dk.beta = member > 0 ? 1.0F : 0.0F;
    l.gemm(dk);
  });
}

// ---- unfused ----

template <class T, class Launcher>
void drop_scores(Launcher& l, const AttentionShape& s, const T* from, T* to, std::byte* mask, bool draws) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(mask);
  const DropScores<T> kernel{from, to, bytes, s.samples, s.heads, s.local, s.dropout, draws};
  run_elements(l, kernel, s.samples * s.heads * s.local * ((s.local + 3) / 4));
}

/// What values are weighted with: the probabilities, or in scratch memory what dropout leaves of them.
template <class T, class Launcher>
const T* dropped_scores(Launcher& l, const AttentionShape& s, const T* probabilities, std::byte* mask, bool draws) {
  if (!s.dropout.drops()) return probabilities;
  const std::int64_t scores = s.samples * s.heads * s.local * s.local;
  T* left = reinterpret_cast<T*>(l.scratch(scores * static_cast<std::int64_t>(sizeof(T))));
  drop_scores<T>(l, s, probabilities, left, mask, draws);
  return left;
}

template <class T, class Launcher>
void unfused_attention(Launcher& l, const KernelArguments& a) {
  const AttentionShape s = whole_attention(a);
  const HeadOperands<T> o{input<T>(a, 0), s.heads * s.dim};
  T* scores = output<T>(a, 1);
  score_products(l, s, o, scores);
  l.run(CausalSoftmax<T>{scores, s.local, nullptr, 0}, s.samples * s.heads * s.local, row_threads(s.local),
        kReduceBytes);
  value_products(l, s, o, dropped_scores<T>(l, s, scores, a.out[2], true), output<T>(a, 0));
}

template <class T, class Launcher>
void unfused_attention_backward(Launcher& l, const KernelArguments& a) {
  const AttentionShape s = whole_attention(a);
  const HeadOperands<T> o{input<T>(a, 0), s.heads * s.dim};
  const T* p = input<T>(a, 2);
  const T* dy = input<T>(a, 3);
  T* dqkv = output<T>(a, 0);
  value_gradients(l, s, o, dropped_scores<T>(l, s, p, a.in[4], false), dy, dqkv);
  // After these products the same memory is free again.
  const std::int64_t scores = s.samples * s.heads * s.local * s.local;
  T* ds = reinterpret_cast<T*>(l.scratch(scores * static_cast<std::int64_t>(sizeof(T))));
  weight_gradients(l, s, o, dy, ds);
  if (s.dropout.drops()) drop_scores<T>(l, s, ds, ds, a.in[4], false);
  l.run(CausalSoftmaxBackward<T>{p, ds, s.local}, s.samples * s.heads * s.local, row_threads(s.local), kReduceBytes);
  score_gradients(l, s, o, ds, dqkv);
}

// ---- in blocks ----

constexpr std::int64_t kMostScoreBytes = std::int64_t{256} << 20;  ///< of scratch memory that a block of heads takes

/// Calls visit(shape of a block, qkv's and y's offsets of it, its first head) for blocks of a sample's key heads with
/// their query heads, whose `squares` (S, S) of T a head are at most so many bytes, or of one key head.
template <class T, class Visit>
void for_each_head_block(const AttentionShape& s, int squares, std::int64_t most_bytes, const Visit& visit) {
  const std::int64_t group = s.heads / s.kv_heads, width = s.heads * s.dim;
  const std::int64_t each = group * s.local * s.local * squares * static_cast<std::int64_t>(sizeof(T));
  const int most = static_cast<int>(std::clamp<std::int64_t>(most_bytes / each, 1, s.kv_heads));
  for (std::int64_t sample = 0; sample < s.samples; ++sample) {
    for (int first = 0; first < s.kv_heads; first += most) {
      AttentionShape block = s;
      block.samples = 1;
      block.kv_heads = std::min(most, s.kv_heads - first);
      block.heads = block.kv_heads * static_cast<int>(group);
      // Queries and keys lie apart in a row, and a block's begin at other places of either.
      const std::int64_t query = first * group * s.dim, shift = first * s.dim - query;
      block.key_at += shift, block.value_at += shift;
      visit(block, sample * s.local * s.q_width + query, sample * s.local * width + query, sample,
            static_cast<std::int64_t>(first) * group);
    }
  }
}

template <class T, class Launcher>
void block_probabilities(Launcher& l, const AttentionShape& block, const HeadOperands<T>& o, T* p, float* log_sums,
                         std::int64_t heads) {
  score_products(l, block, o, p);
  l.run(CausalSoftmax<T>{p, block.local, log_sums, heads}, block.heads * block.local, row_threads(block.local),
        kReduceBytes);
}

template <class T, class Launcher>
T* room_for_squares(Launcher& l, const AttentionShape& block, int squares) {
  return reinterpret_cast<T*>(
      l.scratch(squares * block.heads * block.local * block.local * static_cast<std::int64_t>(sizeof(T))));
}

template <class T, class Launcher>
void batched_attention(Launcher& l, const KernelArguments& a, std::int64_t most_bytes = kMostScoreBytes) {
  const AttentionShape s = whole_attention(a);
  for_each_head_block<T>(
      s, 1, most_bytes,
      [&](const AttentionShape& block, std::int64_t at, std::int64_t out, std::int64_t sample, std::int64_t head) {
        const HeadOperands<T> o{input<T>(a, 0) + at, s.heads * s.dim};
        T* p = room_for_squares<T>(l, block, 1);
        block_probabilities(l, block, o, p, output<float>(a, 1) + sample * s.local * s.heads + head, s.heads);
        value_products(l, block, o, p, output<T>(a, 0) + out);
      });
}

template <class T, class Launcher>
void batched_attention_backward(Launcher& l, const KernelArguments& a, std::int64_t most_bytes = kMostScoreBytes) {
  const AttentionShape s = whole_attention(a);
  for_each_head_block<T>(
      s, 2, most_bytes,
      [&](const AttentionShape& block, std::int64_t at, std::int64_t out, std::int64_t, std::int64_t) {
        const HeadOperands<T> o{input<T>(a, 0) + at, s.heads * s.dim};
        const T* dy = input<T>(a, 3) + out;
        T* dqkv = output<T>(a, 0) + at;
        T* p = room_for_squares<T>(l, block, 2);
        T* ds = p + block.heads * block.local * block.local;
        block_probabilities(l, block, o, p, nullptr, 0);
        value_gradients(l, block, o, p, dy, dqkv);
        weight_gradients(l, block, o, dy, ds);
        l.run(CausalSoftmaxBackward<T>{p, ds, block.local}, block.heads * block.local, row_threads(block.local),
              kReduceBytes);
        score_gradients(l, block, o, ds, dqkv);
      });
}

}  // namespace trivium::runtime::cuda
