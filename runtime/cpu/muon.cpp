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
#include "runtime/cpu/own_part.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cpu {
namespace {

using program::Parameter;

constexpr double kUpdateSize = 0.2;  // root mean square of an update, as AdamW's usually is

using program::Space;
using program::StateArrays;

/// Whether ranks share the state: what they step is where the bucket says, not in buffers of the op.
bool is_shared(const KernelArguments& a) { return a.op->out[0] == program::kNoBuffer; }

/// The parameter that the op steps: the one whose value it writes.
const Parameter& parameter_of(const KernelArguments& a) {
  if (is_shared(a)) return a.kind->parameters[static_cast<std::size_t>(program::parameter_of(*a.op))];
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
void round_to(const KernelArguments& a, std::uint16_t* to, float value) {
  const bool bf16 = a.op->dtype == program::DType::kBf16;
  *to = bf16 ? reduction::bf16_of_float(value) : reduction::fp16_of_float(value);
}
void round_to(const KernelArguments&, std::uint16_t*, double) {}  // fp64 parameters have no copy

/// What this rank steps of a parameter, element by element of its part: all, or what lies in the rank's shard.
template <class T>
class OwnValues {
 public:
  OwnValues(const KernelArguments& a, const Parameter& p) : a_(a), p_(p) {}

  bool any(std::int64_t begin, std::int64_t end) const {
    if (!is_shared(a_)) return true;
    for (int part = 0; part < bucket_of(a_).parts; ++part) {
      const Range own = own_run(a_, part);
      if (std::max(own.begin, p_.offset + begin) < std::min(own.end, p_.offset + end)) return true;
    }
    return false;
  }

  /// Calls step(value) for an element of the parameter, if it is this rank's.
  template <class Step>
  void at(std::int64_t i, Step step) const {
    if (!is_shared(a_)) {
      T& value = output<T>(a_, 0)[i];
      step(value);
      if (a_.op->out[1] != program::kNoBuffer) round_to(a_, output<std::uint16_t>(a_, 1) + i, value);
      return;
    }
    const program::Bucket& bucket = bucket_of(a_);
    for (int part = 0; part < bucket.parts; ++part) {
      const Range own = own_run(a_, part);
      const std::int64_t inside = p_.offset + i - own.begin;
      if (inside < 0 || inside >= bucket.own_run()) continue;
      const std::int64_t kept = bucket.own_parameters(a_.shard_rank, part) + inside;
      if (!program::is_half(a_.op->dtype)) return step(space<T>(a_, Space::kParameter)[kept]);
      T& copy = master(bucket)[part * bucket.own_run() + inside];
      step(copy);
      round_to(a_, space<std::uint16_t>(a_, Space::kParameter) + kept, copy);
    }
  }

 private:
  T* master(const program::Bucket& bucket) const {
    const StateArrays arrays{a_.op->dtype, program::Moments::kFp32, false};
    return reinterpret_cast<T*>(a_.chunk_base[static_cast<std::size_t>(Space::kOptimizer)] + bucket.optimizer_offset +
                                arrays.offset(StateArrays::kMaster, bucket.shard));
  }

  const KernelArguments& a_;
  const Parameter& p_;
};

template <class T>
void muon_momentum(const KernelArguments& a) {
  const Clipping clipping = clipping_of(a);
  if (!clipping.finite()) return;
  const T decay = static_cast<T>(a.optimizer->muon_momentum), clip = static_cast<T>(clipping.factor);
  T* momentum = output<T>(a, 0);
  const auto move = [&](T* to, const T* gradient, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = decay * to[i] + clip * gradient[i];
  };
  if (a.op->in[1] != program::kNoBuffer) return move(momentum, input<T>(a, 1), a.op->elements);
  const program::Bucket& bucket = bucket_of(a);
  for (int part = 0; part < bucket.parts; ++part) {
    const Range own = own_run(a, part);
    const T* gradient = space<T>(a, Space::kGradient) + bucket.own_gradients(a.shard_rank, part) - own.begin;
    T* first = momentum + part * bucket.own_run() - own.begin;
    for_each_parameter(a, own, [&](const Parameter&, std::int64_t begin, std::int64_t end) {
      move(first + begin, gradient + begin, end - begin);
    });
  }
}

template <class T>
void muon_step(const KernelArguments& a) {
  if (!clipping_of(a).finite()) return;
  const Parameter& p = parameter_of(a);
  const program::Op& op = *a.op;
  const bool cut_over_ranks = program::is_cut(p);
  const int ranks = cut_over_ranks ? program::cut_ranks(p, a.tensor_ranks) : 1;
  const int own = cut_over_ranks ? program::cut_rank(p, a.tensor_rank) : 0;
  const T* momentum = input<T>(a, 1);
  T* x = output<T>(a, 2);
  const OwnValues<T> values(a, p);
  Cut cut = first_cut(p, static_cast<std::size_t>(program::section_of(op)));
  const std::int64_t rows = p.rows / std::max<std::int64_t>(1, p.experts);
  const auto at = [&](std::int64_t row, std::int64_t column) -> T& {  // no more rows than columns
    return rows <= cut.columns ? x[row * op.n + column] : x[column * op.n + row];
  };
  const T rate = static_cast<T>(a.values->learning_rate), size = static_cast<T>(kUpdateSize * std::sqrt(op.n));
  const T decay = static_cast<T>(a.optimizer->weight_decay);
  const auto newton_schulz = optimizer_loops<T>(chosen_variant()).newton_schulz;
  const std::int64_t count = p.local_rows / std::max<std::int64_t>(1, p.local_experts) * p.local_columns;
  for (; cut.expert < op.experts; ++cut.expert) {
    if (!values.any(cut.expert * count, (cut.expert + 1) * count)) continue;
    for (int rank = 0; rank < ranks; ++rank) {
      const T* part = momentum + rank * p.local_rows * p.local_columns;
      for_each_element(p, cut, rank, ranks,
                       [&](std::int64_t i, std::int64_t r, std::int64_t c) { at(r, c) = part[i]; });
    }
    newton_schulz(x, x + op.m * op.n, op.m, op.n, program::iterations_of(op));
    for_each_element(p, cut, own, ranks, [&](std::int64_t i, std::int64_t r, std::int64_t c) {
      values.at(i, [&](T& value) { value -= rate * (size * at(r, c) + decay * value); });
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
