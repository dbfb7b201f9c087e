// One step of ring attention, forward and backward (Liu et al. 2023, arXiv 2310.01889). A rank's tokens are an early
// and a late chunk of every sample (program/ir/context.h); so are the keys that have come by. A query chunk sees key
// chunks before its own whole, its own up to the diagonal, later ones not at all; with a window, no more of them than
// that, and in packed documents its own document's alone. With L the log-sum-exp so far and
// L_b, y_b those of the block:  L' = log(exp L + exp L_b),  y' = exp(L - L') y + exp(L_b - L') y_b. Dropout changes
// y_b alone, as it follows the softmax of whole rows.

#include <algorithm>
#include <limits>

#include "program/ir/context.h"
#include "program/ir/op_views.h"
#include "runtime/cpu/variants/attention.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// Query rows [row, row + rows) of a chunk against one chunk of keys.
struct BlockPair {
  Index sample, head;
  Index query_at, key_at;              ///< first local token rows of queries and of the key chunk
  Index row, rows, keys;               ///< row: within the query chunk
  Index query_position, key_position;  ///< of the first ones, within the whole sample
  bool diagonal;
  const AttentionShape* shape;
  Seen seen(Index r) const {
    const Index first = shape->first_key(sample, query_position + r) - key_position;
    return {std::clamp(first, Index{0}, keys), diagonal ? row + r + 1 : keys};
  }
};

struct RingShape {
  AttentionShape attention;  ///< `sequence`: local tokens of a sample
  Index chunk, kv_width;
  Index key(Index h) const { return h * attention.kv_heads / attention.heads * attention.dim; }
  Index value(Index h) const {
    return attention.kv_heads * attention.dim + h * attention.kv_heads / attention.heads * attention.value_dim;
  }
};

[[maybe_unused]] static RingShape ring_shape(const KernelArguments& a) {
  const program::Op& op = *a.op;
  const Index local = op.sequence / op.parts;
  RingShape shape{shape_of(a), local / 2, 0};
  shape.attention.samples = op.m / local, shape.attention.sequence = local;
  shape.kv_width = shape.attention.kv_heads * (shape.attention.dim + shape.attention.value_dim);
  return shape;
}

template <class Visit>
static void for_each_pair(const KernelArguments& a, const RingShape& s, Visit visit) {
  const int ranks = a.op->parts, here = program::ring_place(ranks, a.context_rank, std::max(ranks, a.context_ranks));
  const int source = program::ring_source(here, program::ring_step(*a.op), ranks);
  const auto chunk_of = [&](int rank, Index which) { return which == 0 ? rank : 2 * ranks - 1 - rank; };
  for (Index sample = 0; sample < s.attention.samples; ++sample) {
    for (Index head = 0; head < s.attention.heads; ++head) {
      for (Index q = 0; q < 2; ++q) {
        for (Index row = 0; row < s.chunk; row += kQueryBlock) {
          for (Index k = 0; k < 2; ++k) {
            const Index mine = chunk_of(here, q), theirs = chunk_of(source, k);
            if (theirs > mine) continue;
            const Index rows = std::min(kQueryBlock, s.chunk - row), base = sample * s.attention.sequence;
            const Index keys = theirs == mine ? row + rows : s.chunk;
            const BlockPair pair{sample,      head, base + q * s.chunk + row, base + k * s.chunk, row,
                                 rows,        keys, mine * s.chunk + row,     theirs * s.chunk,   theirs == mine,
                                 &s.attention};
            if (!pair.seen(0).none()) visit(pair);  // the first row sees the earliest keys
          }
        }
      }
    }
  }
}

/// The mask of a pair, in memory of this thread.
[[maybe_unused]] static ScoreMask mask_of(const KernelArguments& a, const BlockPair& b) {
  const ScoreMask mask{scratch<std::uint8_t, 2>(b.rows * b.keys), b.rows, b.keys, b.keys};
  mask.draw(a.dropout, b.sample, b.head, b.query_position, b.key_position, [&](Index r) { return b.seen(r).end; });
  return mask;
}

template <class T>
static void attention_block(const KernelArguments& a) {
  const RingShape s = ring_shape(a);
  const Index dim = s.attention.dim, values = s.attention.value_dim, heads = s.attention.heads;
  const Index width = s.attention.width(), out_width = heads * values;
  const T scale = static_cast<T>(program::score_scale_of(*a.op));
  T* y = output<T>(a, 0);
  T* log_sum = output<T>(a, 1);
  if (program::ring_step(*a.op) == 0) {
    Row<T>(y, a.op->m * out_width).setZero();
    const Sinks<T> sinks = sinks_of<T>(a, 2);  // as a block of keys without values that came before all others
    for (Index i = 0; i < a.op->m * heads; ++i) log_sum[i] = sinks(i % heads);
  }
  const Eigen::OuterStride<> in_stride(width), kv_stride(s.kv_width), out_stride(out_width);
  for_each_pair(a, s, [&](const BlockPair& b) {
    const T* kv = input<T>(a, 1) + b.key_at * s.kv_width;
    const ConstStridedMatrix<T> q(input<T>(a, 0) + b.query_at * width + s.attention.query(b.head), b.rows, dim,
                                  in_stride);
    const ConstStridedMatrix<T> k(kv + s.key(b.head), b.keys, dim, kv_stride);
    const ConstStridedMatrix<T> v(kv + s.value(b.head), b.keys, values, kv_stride);
    Matrix<T> p(scratch<T, 0>(b.rows * b.keys), b.rows, b.keys);
    p.noalias() = q * k.transpose();
    const T left = cap_scores(*a.op, p.data(), b.rows, b.keys, b.keys, scale);
    DenseMatrix<T> block(b.rows, values);
    DenseRow<T> sums(b.rows);
    for (Index r = 0; r < b.rows; ++r) {
      T* row = p.data() + r * b.keys;
      if (b.seen(r).none()) {
        Row<T>(row, b.keys).setZero();
      } else {
        sums(r) = softmax(row, b.seen(r), b.keys, left, -std::numeric_limits<T>::infinity());
      }
    }
    if (a.dropout.drops()) mask_of(a, b).drop(a.dropout, p.data(), p.data());
    block.noalias() = p * v;
    StridedMatrix<T> total(y + b.query_at * out_width + b.head * values, b.rows, values, out_stride);
    for (Index r = 0; r < b.rows && !b.seen(r).none(); ++r) {  // later rows see no earlier keys
      T& before = log_sum[(b.query_at + r) * heads + b.head];
      const T most = std::max(before, sums(r));
      const T after = most + std::log(std::exp(before - most) + std::exp(sums(r) - most));
      total.row(r) = total.row(r) * std::exp(before - after) + block.row(r) * std::exp(sums(r) - after);
      before = after;
    }
  });
}

/// Of all queries, once in a ring: see attention_backward.cpp.
template <class T>
static void sinks_backward(const KernelArguments& a, Index dim) {
  const Sinks<T> sinks = sinks_of<T>(a, 5);
  const Index heads = a.op->heads;
  T* gradient = output<T>(a, 2);  // of frozen ones none
  if (!sinks.any() || gradient == nullptr || program::ring_step(*a.op) != 0) return;
  DenseRow<T> sums = DenseRow<T>::Zero(heads);
  for (Index i = 0; i < a.op->m * heads; ++i) {
    const T d = (ConstRow<T>(input<T>(a, 1) + i * dim, dim) * ConstRow<T>(input<T>(a, 3) + i * dim, dim)).sum();
    sums(i % heads) -= d * std::exp(sinks(i % heads) - input<T>(a, 2)[i]);
  }
  Row<T>(gradient + first_head(a), heads) += sums;
}

// As attention_backward, the probabilities from the final log-sum-exp; D_i = dy_i . y_i of the whole row.
template <class T>
static void attention_block_backward(const KernelArguments& a) {
  const RingShape s = ring_shape(a);
  const Index dim = s.attention.dim, values = s.attention.value_dim, heads = s.attention.heads;
  const Index width = s.attention.width(), out_width = heads * values;
  const T scale = static_cast<T>(program::score_scale_of(*a.op));
  const T* log_sum = input<T>(a, 2);
  T* dqkv = output<T>(a, 0);
  T* dkv = output<T>(a, 1);
  const Eigen::OuterStride<> in_stride(width), kv_stride(s.kv_width), out_stride(out_width);
  Row<T>(dkv, a.op->m * s.kv_width).setZero();
  if (program::ring_step(*a.op) == 0) StridedMatrix<T>(dqkv, a.op->m, heads * dim, in_stride).setZero();
  sinks_backward<T>(a, values);
  for_each_pair(a, s, [&](const BlockPair& b) {
    const T* kv = input<T>(a, 4) + b.key_at * s.kv_width;
    T* own_dkv = dkv + b.key_at * s.kv_width;
    const Index query_at = b.query_at * width + s.attention.query(b.head),
                out_at = b.query_at * out_width + b.head * values;
    const ConstStridedMatrix<T> q(input<T>(a, 0) + query_at, b.rows, dim, in_stride);
    const ConstStridedMatrix<T> k(kv + s.key(b.head), b.keys, dim, kv_stride),
        v(kv + s.value(b.head), b.keys, values, kv_stride);
    const ConstStridedMatrix<T> y(input<T>(a, 1) + out_at, b.rows, values, out_stride),
        dy(input<T>(a, 3) + out_at, b.rows, values, out_stride);
    Matrix<T> p(scratch<T, 0>(b.rows * b.keys), b.rows, b.keys), ds(scratch<T, 1>(b.rows * b.keys), b.rows, b.keys);
    p.noalias() = q * k.transpose();
    const bool caps = a.op->soft_cap > 0;
    const T left = cap_scores(*a.op, p.data(), b.rows, b.keys, b.keys, scale);
    Matrix<T> capped(scratch<T, 3>(caps ? b.rows * b.keys : 0), caps ? b.rows : 0, b.keys);
    if (caps) capped = p;
    for (Index r = 0; r < b.rows; ++r) {
      const Seen seen = b.seen(r);
      Row<T> row(p.data() + r * b.keys + seen.first, seen.end - seen.first);
      row = (row * left - log_sum[(b.query_at + r) * heads + b.head]).exp();
      only_seen(p.data() + r * b.keys, seen, b.keys);
    }
    StridedMatrix<T> dv(own_dkv + s.value(b.head), b.keys, values, kv_stride);
    ds.noalias() = dy * v.transpose();
    if (a.dropout.drops()) {
      const ScoreMask mask = mask_of(a, b);
      Matrix<T> dropped(scratch<T, 2>(b.rows * b.keys), b.rows, b.keys);
      mask.drop(a.dropout, p.data(), dropped.data());
      dv.noalias() += dropped.transpose() * dy;
      mask.drop(a.dropout, ds.data(), ds.data());
    } else {
      dv.noalias() += p.transpose() * dy;
    }
    for (Index r = 0; r < b.rows; ++r) {
      const T d = dy.row(r).dot(y.row(r));
      Row<T> row(ds.data() + r * b.keys, b.keys);
      row = (row - d) * ConstRow<T>(p.data() + r * b.keys, b.keys) * scale;
      if (caps) uncap_gradients(*a.op, row.data(), capped.data() + r * b.keys, b.keys);
    }
    StridedMatrix<T>(dqkv + query_at, b.rows, dim, in_stride).noalias() += ds * k;
    StridedMatrix<T>(own_dkv + s.key(b.head), b.keys, dim, kv_stride).noalias() += ds.transpose() * q;
  });
}

void add_attention_blocks(KernelTable& table) {
  table.add(program::OpKind::kAttentionBlock, attention_block<float>, attention_block<double>);
  table.add(program::OpKind::kAttentionBlockBackward, attention_block_backward<float>,
            attention_block_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
