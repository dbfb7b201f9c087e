// Causal attention forward: y_i = sum over j <= i of p_ij v_j,  p_ij = exp(scale q_i.k_j - L_i),
// L_i = log of the sum over j <= i of exp(scale q_i.k_j); with a window w both over i - w < j <= i; of packed documents
// over the j of its own. A head's sink z adds exp(z) to the sum. Saved for backward:
// all p, or with flash the L alone (Dao 2023, arXiv 2307.08691, algorithm 1; here a block holds whole rows, so no
// running maximum is needed). Dropout drops p_ij, or scales it, after the softmax; its mask is saved with all p,
// or with flash drawn again.

#include "runtime/cpu/variants/attention.h"

#include <type_traits>

#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// Adds the op's tokens to the keys and values that are kept of a text.
template <class T>
static void keep_keys(const KernelArguments& a, const AttentionShape& s) {
  const KeptKeys& kept = *a.kept;
  for (Index r = 0; r < a.op->m; ++r) {
    const T* row = input<T>(a, 0) + r * s.width();
    const T* values = row + (s.heads + s.kv_heads) * s.dim;
    for (Index h = 0; h < s.kv_heads; ++h) {
      const Index at = h * kept.room + a.past + r;
      std::copy_n(row + (s.heads + h) * s.dim, s.dim, kept.keys + at * s.dim);
      std::copy_n(values + h * s.value_dim, s.value_dim, kept.values + at * s.value_dim);
    }
  }
}

/// Of tokens that go on a text: the query heads of one key head at a time, over all that is kept and seen.
template <class T>
static void attention_behind(const KernelArguments& a, const AttentionShape& s) {
  const KeptKeys& kept = *a.kept;
  const Index group = s.heads / s.kv_heads;
  const T scale = static_cast<T>(program::score_scale_of(*a.op));
  const Sinks<T> sinks = sinks_of<T>(a, 1);
  for (Index r = 0; r < a.op->m; ++r) {
    const Index from = s.first_key(0, a.past + r), keys = a.past + r + 1 - from;
    for (Index h = 0; h < s.kv_heads; ++h) {
      const Index at = h * kept.room + from;
      const ConstMatrix<T> q(input<T>(a, 0) + r * s.width() + s.query(h * group), group, s.dim);
      const ConstMatrix<T> k(kept.keys + at * s.dim, keys, s.dim), v(kept.values + at * s.value_dim, keys, s.value_dim);
      Matrix<T> p(scratch<T, 0>(group * keys), group, keys);
      p.noalias() = q * k.transpose();
      const T left = cap_scores(*a.op, p.data(), group, keys, keys, scale);
      for (Index i = 0; i < group; ++i) {
        add_alibi(a, p.data() + i * keys, h * group + i, a.past + r, from, 1, keys, keys, left);
      }
      for (Index i = 0; i < group; ++i) softmax(p.data() + i * keys, {0, keys}, keys, left, sinks(h * group + i));
      Matrix<T> y(output<T>(a, 0) + (r * s.heads + h * group) * s.value_dim, group, s.value_dim);
      y.noalias() = p * v;
    }
  }
}

template <class T>
static void attention(const KernelArguments& a) {
  const AttentionShape s = shape_of(a);
  if constexpr (std::is_same_v<T, float>) {
    if (a.kept != nullptr) keep_keys<T>(a, s);
    if (a.past > 0) return attention_behind<T>(a, s);
  }
  const bool flash = a.op->flash;
  const Index out_width = s.heads * s.value_dim;
  const T scale = static_cast<T>(program::score_scale_of(*a.op));
  const T* qkv = input<T>(a, 0);
  T* saved = output<T>(a, 1);
  const Sinks<T> sinks = sinks_of<T>(a, 1);
  for_each_query_block(s, [&](Index sample, Index head, Index row, Index rows) {
    const Index from = s.first_key(sample, row), keys = row + rows - from, token = sample * s.sequence;
    const T* base = qkv + token * s.width();
    const T* keys_at = base + from * s.width();
    const ConstStridedMatrix<T> q(base + row * s.width() + s.query(head), rows, s.dim, Eigen::OuterStride<>(s.width()));
    const ConstStridedMatrix<T> k(keys_at + s.key(head), keys, s.dim, Eigen::OuterStride<>(s.width()));
    const ConstStridedMatrix<T> v(keys_at + s.value(head), keys, s.value_dim, Eigen::OuterStride<>(s.width()));
    const Index scores_at = ((sample * s.heads + head) * s.sequence + row) * s.sequence + from;
    T* block = flash ? scratch<T, 0>(kQueryBlock * s.sequence) : saved + scores_at;
    StridedMatrix<T> p(block, rows, keys, Eigen::OuterStride<>(s.sequence));
    p.noalias() = q * k.transpose();
    const T left = cap_scores(*a.op, block, rows, keys, s.sequence, scale);
    add_alibi(a, block, head, row, from, rows, keys, s.sequence, left);
    for (Index r = 0; r < rows; ++r) {
      const Seen seen{s.first_key(sample, row + r) - from, row + r + 1 - from};
      const T log_sum = softmax(block + r * s.sequence, seen, flash ? keys : s.sequence - from, left, sinks(head));
      if (!flash) Row<T>(block + r * s.sequence - from, from).setZero();
      if (flash) saved[(token + row + r) * s.heads + head] = log_sum;
    }
    T* weights = block;
    if (a.dropout.drops()) {
      const ScoreMask mask{
          flash ? scratch<std::uint8_t, 2>(kQueryBlock * s.sequence) : output<std::uint8_t>(a, 2) + scores_at, rows,
          keys, s.sequence};
      mask.draw(a.dropout, sample, head, row, from, [&](Index r) { return row + r + 1 - from; });
      if (!flash) weights = scratch<T, 2>(kQueryBlock * s.sequence);
      mask.drop(a.dropout, block, weights);
    }
    StridedMatrix<T> y(output<T>(a, 0) + (token + row) * out_width + head * s.value_dim, rows, s.value_dim,
                       Eigen::OuterStride<>(out_width));
    y.noalias() = StridedMatrix<T>(weights, rows, keys, Eigen::OuterStride<>(s.sequence)) * v;
  });
}

void add_attention(KernelTable& table) { table.add(program::OpKind::kAttention, attention<float>, attention<double>); }

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
