// Causal attention backward (Dao 2023, arXiv 2307.08691, algorithm 2). With P the probabilities and D_i = dy_i . y_i:
//   dV += P^T dY,  dP = dY V^T,  dS = P o (dP - D),  dQ = scale dS K,  dK += scale dS^T Q.
// Unfused, P was saved; with flash it is computed again from the log-sum-exp. Query heads that share a key head add up.
// A head's sink z has no value, so dz = -sum over i of p_i D_i with p_i = exp(z - L_i), what its softmax leaves of 1.
// With dropout, of mask M: dV += (M o P / (1 - p))^T dY and dP = M o (dY V^T) / (1 - p); D is what it was.

#include "runtime/cpu/variants/attention.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

template <class T>
static void attention_backward(const KernelArguments& a) {
  const AttentionShape s = shape_of(a);
  const bool flash = a.op->flash;
  const Index out_width = s.heads * s.value_dim, width = s.width();
  const T scale = static_cast<T>(program::score_scale_of(*a.op));
  const T* qkv = input<T>(a, 0);
  const T* saved = input<T>(a, 2);
  T* dqkv = output<T>(a, 0);
  Row<T>(dqkv, a.op->m * width).setZero();
  const Sinks<T> sinks = sinks_of<T>(a, 5);
  DenseRow<T> dsinks = DenseRow<T>::Zero(s.heads);
  const Eigen::OuterStride<> in_stride(width), out_stride(out_width), row_stride(s.sequence);
  for_each_query_block(s, [&](Index sample, Index head, Index row, Index rows) {
    const Index from = s.first_key(sample, row), keys = row + rows - from, token = sample * s.sequence;
    const Index query_at = (token + row) * width + s.query(head);
    const Index key_at = (token + from) * width + s.key(head), value_at = (token + from) * width + s.value(head);
    const Index out_at = (token + row) * out_width + head * s.value_dim;
    const ConstStridedMatrix<T> q(qkv + query_at, rows, s.dim, in_stride), k(qkv + key_at, keys, s.dim, in_stride),
        v(qkv + value_at, keys, s.value_dim, in_stride);
    const ConstStridedMatrix<T> y(input<T>(a, 1) + out_at, rows, s.value_dim, out_stride),
        dy(input<T>(a, 3) + out_at, rows, s.value_dim, out_stride);

    const bool caps = a.op->soft_cap > 0;
    T* again = scratch<T, 0>(flash || caps ? kQueryBlock * s.sequence : 1);
    T* capped = scratch<T, 3>(caps ? kQueryBlock * s.sequence : 1);
    T left = scale;
    if (flash || caps) {
      StridedMatrix<T> scores(again, rows, keys, row_stride);
      scores.noalias() = q * k.transpose();
      left = cap_scores(*a.op, again, rows, keys, s.sequence, scale);
      if (caps) StridedMatrix<T>(capped, rows, keys, row_stride) = scores;
      if (flash) add_alibi(a, again, head, row, from, rows, keys, s.sequence, left);
    }
    if (flash) {
      for (Index r = 0; r < rows; ++r) {
        const Seen seen{s.first_key(sample, row + r) - from, row + r + 1 - from};
        Row<T> p(again + r * s.sequence + seen.first, seen.end - seen.first);
        p = (p * left - saved[(token + row + r) * s.heads + head]).exp();
        only_seen(again + r * s.sequence, seen, keys);
      }
    }
    const Index scores_at = ((sample * s.heads + head) * s.sequence + row) * s.sequence + from;
    const T* probabilities = flash ? again : saved + scores_at;
    const T* weights = probabilities;
    const bool drops = a.dropout.drops();
    ScoreMask mask{nullptr, rows, keys, s.sequence};
    if (drops) {
      mask.keep = flash ? scratch<std::uint8_t, 2>(kQueryBlock * s.sequence)
                        : reinterpret_cast<std::uint8_t*>(a.in[4]) + scores_at;
      if (flash) mask.draw(a.dropout, sample, head, row, from, [&](Index r) { return row + r + 1 - from; });
      T* dropped = scratch<T, 2>(kQueryBlock * s.sequence);
      mask.drop(a.dropout, probabilities, dropped);
      weights = dropped;
    }
    const ConstStridedMatrix<T> p(weights, rows, keys, row_stride);
    StridedMatrix<T>(dqkv + value_at, keys, s.value_dim, in_stride).noalias() += p.transpose() * dy;

    T* gradient = scratch<T, 1>(kQueryBlock * s.sequence);
    StridedMatrix<T> ds(gradient, rows, keys, row_stride);
    ds.noalias() = dy * v.transpose();
    if (drops) mask.drop(a.dropout, gradient, gradient);
    for (Index r = 0; r < rows; ++r) {
      const T d = dy.row(r).dot(y.row(r));
      Row<T> row_ds(gradient + r * s.sequence, keys);
      const ConstRow<T> row_p(probabilities + r * s.sequence, keys);
      if (sinks.any()) {
        dsinks(head) -=
            d * (flash ? std::exp(sinks(head) - saved[(token + row + r) * s.heads + head]) : 1 - row_p.sum());
      }
      row_ds = (row_ds - d) * row_p * scale;
      if (caps) uncap_gradients(*a.op, row_ds.data(), capped + r * s.sequence, keys);
    }
    StridedMatrix<T>(dqkv + query_at, rows, s.dim, in_stride).noalias() = ds * k;
    StridedMatrix<T>(dqkv + key_at, keys, s.dim, in_stride).noalias() += ds.transpose() * q;
  });
  T* gradient = output<T>(a, 1);  // of frozen ones none
  if (sinks.any() && gradient != nullptr) Row<T>(gradient + first_head(a), s.heads) += dsinks;
}

void add_attention_backward(KernelTable& table) {
  table.add(program::OpKind::kAttentionBackward, attention_backward<float>, attention_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
