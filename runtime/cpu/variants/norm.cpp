// Layer normalisation (Ba et al. 2016, arXiv 1607.06450) and RMS normalisation (Zhang, Sennrich 2019, arXiv
// 1910.07467).
//   y = xhat w + b,  xhat = (x - mean) / sigma,  sigma^2 = mean of (x - mean)^2 + eps;  RMS: mean taken as 0 and no b.
// An op has no flag for the kind of norm: it is LayerNorm where there is a bias (in[2] forward, out[2] backward, or
// in[5] where it has no gradient), RMSNorm where there is none.

#include <cmath>

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

template <class T>
static void norm(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n;
  const ConstRow<T> weight(input<T>(a, 1), n);
  const T* bias = input<T>(a, 2);
  T* stats = output<T>(a, 1);
  for (Index r = 0; r < m; ++r) {
    const ConstRow<T> x(input<T>(a, 0) + r * n, n);
    Row<T> y(output<T>(a, 0) + r * n, n);
    const T mean = bias != nullptr ? x.sum() / static_cast<T>(n) : T(0);
    const T variance = (x - mean).square().sum() / static_cast<T>(n);
    const T inverse = T(1) / std::sqrt(variance + static_cast<T>(a.op->epsilon));
    stats[2 * r] = mean;
    stats[2 * r + 1] = inverse;
    if (bias != nullptr) {
      y = (x - mean) * inverse * weight + ConstRow<T>(bias, n);
    } else {
      y = x * inverse * weight;
    }
  }
}

// With g = dy w:  dx = dskip + (g - [LayerNorm] mean(g) - xhat mean(g xhat)) / sigma,  dw += dy xhat,  db += dy.
// A row of x, dy and dskip is read before that row of dx is written, so dx may be any of them.
template <class T>
static void norm_backward(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n;
  const ConstRow<T> weight(input<T>(a, 1), n);
  const T* stats = input<T>(a, 2);
  const T* dskip = input<T>(a, 4);
  T* dweight = output<T>(a, 1);
  T* dbias = output<T>(a, 2);
  const bool centred = dbias != nullptr || input<T>(a, 5) != nullptr;
  Row<T> xhat(scratch<T, 0>(n), n), g(scratch<T, 1>(n), n);
  Row<T> dweight_sum(scratch<T, 2>(n), n), dbias_sum(scratch<T, 3>(n), n);
  dweight_sum.setZero();
  dbias_sum.setZero();
  for (Index r = 0; r < m; ++r) {
    const ConstRow<T> x(input<T>(a, 0) + r * n, n);
    const ConstRow<T> dy(input<T>(a, 3) + r * n, n);
    Row<T> dx(output<T>(a, 0) + r * n, n);
    const T mean = stats[2 * r], inverse = stats[2 * r + 1];
    xhat = (x - mean) * inverse;
    g = dy * weight;
    dweight_sum += dy * xhat;
    if (dbias != nullptr) dbias_sum += dy;
    const T mean_g = centred ? g.sum() / static_cast<T>(n) : T(0);
    const T mean_gx = (g * xhat).sum() / static_cast<T>(n);
    if (dskip != nullptr) {
      dx = ConstRow<T>(dskip + r * n, n) + (g - mean_g - xhat * mean_gx) * inverse;
    } else {
      dx = (g - mean_g - xhat * mean_gx) * inverse;
    }
  }
  if (dweight != nullptr) Row<T>(dweight, n) += dweight_sum;
  if (dbias != nullptr) Row<T>(dbias, n) += dbias_sum;
}

/// A head of (T, q|k|v) that is normalised, with the weight of its kind, if it has one (Llama 4's has none).
struct Head {
  Index at, weight, sigma;  ///< first element, which input or output is its weight, place among the statistics
};

/// Visits every query and key head of every row.
template <class Visit>
static void for_each_head(const program::Op& op, Visit visit) {
  const Index heads = op.heads, all = op.heads + op.kv_heads, width = (all + op.kv_heads) * op.head_dim;
  for (Index r = 0; r < op.m; ++r) {
    for (Index h = 0; h < all; ++h) visit(Head{r * width + h * op.head_dim, h < heads ? 1 : 2, r * all + h});
  }
}

template <class T>
static void head_norm(const KernelArguments& a) {
  const program::Op& op = *a.op;
  const Index dim = op.head_dim, values = op.kv_heads * dim, at = (op.heads + op.kv_heads) * dim;
  for_each_head(op, [&](const Head& head) {
    const ConstRow<T> x(input<T>(a, 0) + head.at, dim);
    const T* weight = input<T>(a, static_cast<std::size_t>(head.weight));
    const T inverse = T(1) / std::sqrt(x.square().sum() / static_cast<T>(dim) + static_cast<T>(op.epsilon));
    output<T>(a, 1)[head.sigma] = inverse;
    Row<T> y(output<T>(a, 0) + head.at, dim);
    y = x * inverse;
    if (weight != nullptr) y *= ConstRow<T>(weight, dim);
  });
  for (Index r = 0; r < op.m; ++r) {
    const Index row = r * (at + values) + at;
    Row<T>(output<T>(a, 0) + row, values) = ConstRow<T>(input<T>(a, 0) + row, values);
  }
}

// As norm_backward, head by head; gradients of values pass.
template <class T>
static void head_norm_backward(const KernelArguments& a) {
  const program::Op& op = *a.op;
  const Index dim = op.head_dim, values = op.kv_heads * dim, at = (op.heads + op.kv_heads) * dim;
  Row<T> xhat(scratch<T, 0>(dim), dim), g(scratch<T, 1>(dim), dim);
  for_each_head(op, [&](const Head& head) {
    const auto which = static_cast<std::size_t>(head.weight);
    const ConstRow<T> x(input<T>(a, 0) + head.at, dim), dy(input<T>(a, 4) + head.at, dim);
    const T inverse = input<T>(a, 3)[head.sigma];
    xhat = x * inverse;
    g = dy;
    if (const T* weight = input<T>(a, which)) {
      g *= ConstRow<T>(weight, dim);
      if (T* dweight = output<T>(a, which)) Row<T>(dweight, dim) += dy * xhat;
    }
    const T mean_gx = (g * xhat).sum() / static_cast<T>(dim);
    Row<T>(output<T>(a, 0) + head.at, dim) = (g - xhat * mean_gx) * inverse;
  });
  if (a.out[0] == a.in[4]) return;
  for (Index r = 0; r < op.m; ++r) {
    const Index row = r * (at + values) + at;
    Row<T>(output<T>(a, 0) + row, values) = ConstRow<T>(input<T>(a, 4) + row, values);
  }
}

void add_norms(KernelTable& table) {
  table.add(program::OpKind::kHeadNorm, head_norm<float>, head_norm<double>);
  table.add(program::OpKind::kHeadNormBackward, head_norm_backward<float>, head_norm_backward<double>);
  table.add(program::OpKind::kNorm, norm<float>, norm<double>);
  table.add(program::OpKind::kNormBackward, norm_backward<float>, norm_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
