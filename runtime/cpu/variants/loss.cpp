// Cross-entropy over a vocabulary that is split over the tensor group (Shoeybi et al. 2019, arXiv 1909.08053, section
// 3): every rank reduces its own columns to a maximum and two sums per token; only those (T) numbers are communicated.
//   loss = sum over tokens of (log sum exp(l - max) - (l_target - max)) * loss_weight * share,
//   dl = (exp(l - max) / sum - [target]) * loss_weight * share * loss_scale.
// A token with a negative label has no target: its loss and gradient are 0.
// With a factor s l is s x of the logits x, and dx = s dl; with a soft cap c too (Gemma 2, arXiv 2408.00118, section 2)
// l is c tanh(s x / c), and dx = s (1 - (l / c)^2) dl. Columns from the true vocabulary on are padding: they take no
// part, and their gradient is 0.

#include <cmath>
#include <limits>

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// Columns of this rank that are not padding.
static Index valid_columns(const KernelArguments& a) {
  const Index left = a.vocabulary - a.tensor_rank * a.op->n;
  return left < 0 ? 0 : left < a.op->n ? left : a.op->n;
}

template <class T>
static T scale_of(const KernelArguments& a) {
  return a.op->score_scale > 0 ? static_cast<T>(a.op->score_scale) : T(1);
}

/// The first columns of a row as the loss reads them, in scratch where they are not as they lie.
template <class T>
static const T* capped(const KernelArguments& a, const T* row, Index valid) {
  const T cap = static_cast<T>(a.op->soft_cap), scale = scale_of<T>(a);
  if (!(cap > T(0)) && scale == T(1)) return row;
  T* capped = scratch<T, 0>(valid);
  if (cap > T(0)) {
    Row<T>(capped, valid) = cap * (ConstRow<T>(row, valid) * (scale / cap)).tanh();
  } else {
    Row<T>(capped, valid) = ConstRow<T>(row, valid) * scale;
  }
  return capped;
}

template <class T>
static void loss_max(const KernelArguments& a) {
  const Index valid = valid_columns(a);
  for (Index r = 0; r < a.op->m; ++r) {
    output<T>(a, 0)[r] = valid > 0 ? ConstRow<T>(capped(a, input<T>(a, 0) + r * a.op->n, valid), valid).maxCoeff()
                                   : std::numeric_limits<T>::lowest();
  }
}

template <class T>
static void loss_sums(const KernelArguments& a) {
  const Index valid = valid_columns(a), n = a.op->n;
  const std::int32_t* labels = input<std::int32_t>(a, 2);
  T* sums = output<T>(a, 0);
  for (Index r = 0; r < a.op->m; ++r) {
    const T highest = input<T>(a, 1)[r];
    const ConstRow<T> row(capped(a, input<T>(a, 0) + r * n, valid), valid);
    const Index target = labels[r] - a.tensor_rank * n;
    sums[2 * r] = valid > 0 ? (row - highest).exp().sum() : T(0);
    sums[2 * r + 1] = target >= 0 && target < valid ? row[target] - highest : T(0);
  }
}

template <class T>
static void loss(const KernelArguments& a) {
  const T* sums = input<T>(a, 1);
  const std::int32_t* labels = input<std::int32_t>(a, 2);
  double total = 0;
  for (Index r = 0; r < a.op->m; ++r) {
    if (labels != nullptr && labels[r] < 0) continue;
    total += std::log(static_cast<double>(sums[2 * r])) - static_cast<double>(sums[2 * r + 1]);
  }
  *output<double>(a, 0) += total * a.values->loss_weight * a.op->loss_share;
}

template <class T>
static void loss_backward(const KernelArguments& a) {
  const Index valid = valid_columns(a), n = a.op->n;
  const std::int32_t* labels = input<std::int32_t>(a, 3);
  const T weight = static_cast<T>(a.values->loss_weight * a.op->loss_share * a.values->loss_scale);
  for (Index r = 0; r < a.op->m; ++r) {
    T* dlogits = output<T>(a, 0) + r * n;
    if (labels[r] < 0) {
      Row<T>(dlogits, n).setZero();
      continue;
    }
    const ConstRow<T> row(capped(a, input<T>(a, 0) + r * n, valid), valid);
    const T highest = input<T>(a, 1)[r], factor = weight / input<T>(a, 2)[2 * r];
    const Index target = labels[r] - a.tensor_rank * n;
    Row<T>(dlogits, valid) = (row - highest).exp() * factor;
    Row<T>(dlogits + valid, n - valid).setZero();
    if (target >= 0 && target < valid) dlogits[target] -= weight;
    if (a.op->soft_cap > 0) Row<T>(dlogits, valid) *= T(1) - (row / static_cast<T>(a.op->soft_cap)).square();
    if (a.op->score_scale > 0) Row<T>(dlogits, valid) *= scale_of<T>(a);
  }
}

void add_losses(KernelTable& table) {
  table.add(program::OpKind::kLossMax, loss_max<float>, loss_max<double>);
  table.add(program::OpKind::kLossSums, loss_sums<float>, loss_sums<double>);
  table.add(program::OpKind::kLoss, loss<float>, loss<double>);
  table.add(program::OpKind::kLossBackward, loss_backward<float>, loss_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
