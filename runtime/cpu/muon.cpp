// Muon (Jordan et al. 2024; Liu et al. 2025, arXiv 2502.16982, section 2): a matrix of r rows and c columns moves
// against its momentum, whose singular values are made alike first:
//   M = mu M + g',   O = Newton-Schulz(M),   W -= lr (0.2 sqrt(max(r, c)) O + decay W)
// with g' as AdamW has it (optimizer.cpp). The factor gives an update the size of AdamW's, so both have one learning
// rate (the same, equation 4). Queries, keys and values are matrices of their own, as are gate and value of a gated
// MLP.
#include <algorithm>
#include <cmath>

#include "program/ir/op_views.h"
#include "program/lower/layout.h"
#include "runtime/cpu/clipping.h"
#include "runtime/cpu/optimizer_loops.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cpu {
namespace {

using program::Parameter;

constexpr double kUpdateSize = 0.2;  // root mean square of an update, as AdamW's usually is

/// The parameter that the op steps: the one whose value it writes.
const Parameter& parameter_of(const KernelArguments& a) {
  const int value = a.op->out[a.op->out[1] != program::kNoBuffer ? 1 : 0];
  return *std::ranges::find(a.kind->parameters, value, &Parameter::value);
}

/// One matrix of a parameter: some of the columns of one of its experts, or of all there is.
struct Cut {
  std::int64_t expert = 0, first_column = 0, columns = 0;
};

/// Calls visit(place, row, column) for what one of `ranks` tensor ranks holds of the matrix: an element's place in the
/// rank's part of the parameter, its row and column in the matrix.
template <class Visit>
void for_each_element(const Parameter& p, const Cut& cut, int rank, int ranks, Visit visit) {
  const std::int64_t rows = p.local_rows / std::max<std::int64_t>(1, p.local_experts);
  const std::int64_t above = cut.expert * (p.rows / std::max<std::int64_t>(1, p.experts));
  for (std::int64_t r = cut.expert * rows; r < (cut.expert + 1) * rows; ++r) {
    for (std::int64_t c = 0; c < p.local_columns; ++c) {
      const auto place = program::global_place(p, r, c, rank, ranks, 0);
      const std::int64_t column = place->second - cut.first_column;
      if (column >= 0 && column < cut.columns) visit(r * p.local_columns + c, place->first - above, column);
    }
  }
}

Cut first_cut(const Parameter& p, std::size_t section) {
  if (p.sections.empty()) return {0, 0, p.columns};
  Cut cut{0, 0, p.sections[section]};
  for (std::size_t before = 0; before < section; ++before) cut.first_column += p.sections[before];
  return cut;
}

/// The 16-bit parameter that follows its fp32 copy.
void round_to(const KernelArguments& a, std::int64_t element, float value) {
  const bool bf16 = a.op->dtype == program::DType::kBf16;
  output<std::uint16_t>(a, 1)[element] = bf16 ? reduction::bf16_of_float(value) : reduction::fp16_of_float(value);
}
void round_to(const KernelArguments&, std::int64_t, double) {}  // fp64 parameters have no copy

template <class T>
void muon_momentum(const KernelArguments& a) {
  const Clipping clipping = clipping_of(a);
  if (!clipping.finite()) return;
  const T decay = static_cast<T>(a.optimizer->muon_momentum), clip = static_cast<T>(clipping.factor);
  const T* gradient = input<T>(a, 1);
  T* momentum = output<T>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) momentum[i] = decay * momentum[i] + clip * gradient[i];
}

template <class T>
void muon_step(const KernelArguments& a) {
  if (!clipping_of(a).finite()) return;
  const Parameter& p = parameter_of(a);
  const program::Op& op = *a.op;
  const int ranks = program::is_cut(p) ? a.tensor_ranks : 1, own = program::is_cut(p) ? a.tensor_rank : 0;
  const T* momentum = input<T>(a, 1);
  T *values = output<T>(a, 0), *x = output<T>(a, 2);
  Cut cut = first_cut(p, static_cast<std::size_t>(program::section_of(op)));
  const std::int64_t rows = p.rows / std::max<std::int64_t>(1, p.experts);
  const auto at = [&](std::int64_t row, std::int64_t column) -> T& {  // no more rows than columns
    return rows <= cut.columns ? x[row * op.n + column] : x[column * op.n + row];
  };
  const T rate = static_cast<T>(a.values->learning_rate), size = static_cast<T>(kUpdateSize * std::sqrt(op.n));
  const T decay = static_cast<T>(a.optimizer->weight_decay);
  const auto newton_schulz = optimizer_loops<T>(chosen_variant()).newton_schulz;
  for (; cut.expert < op.experts; ++cut.expert) {
    for (int rank = 0; rank < ranks; ++rank) {
      const T* part = momentum + rank * p.local_rows * p.local_columns;
      for_each_element(p, cut, rank, ranks,
                       [&](std::int64_t i, std::int64_t r, std::int64_t c) { at(r, c) = part[i]; });
    }
    newton_schulz(x, x + op.m * op.n, op.m, op.n, program::iterations_of(op));
    for_each_element(p, cut, own, ranks, [&](std::int64_t i, std::int64_t r, std::int64_t c) {
      values[i] -= rate * (size * at(r, c) + decay * values[i]);
      if (op.out[1] != program::kNoBuffer) round_to(a, i, values[i]);
    });
  }
}

}  // namespace

void add_muon(KernelTable& table) {
  table.add(program::OpKind::kMuonMomentum, muon_momentum<float>, muon_momentum<double>);
  table.add(program::OpKind::kMuonStep, muon_step<float>, muon_step<double>);
  table.add_half(program::OpKind::kMuonStep, muon_step<float>);
}

}  // namespace trivium::runtime::cpu
