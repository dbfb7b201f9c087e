// Fitting the cost of work to measured times: time = overhead + flops · a + bytes · b + blocks · c, every term at
// least zero.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace trivium::calibration {

constexpr std::size_t kTerms = 4;

/// Overhead in seconds, then seconds per unit of the three sizes.
using Terms = std::array<double, kTerms>;

/// What one shape took.
struct Sample {
  Terms sizes{};       ///< (1, flops, bytes, blocks of queries)
  double seconds = 0;  ///< above zero
  double weight = 1;   ///< importance: its share of the time that is to be predicted
};

struct TermFit {
  Terms terms{};
  Terms spread{};  ///< relative standard deviation of each term after the fit; infinite for a term at zero
  double before = 0, after = 0;  ///< weighted mean |predicted / measured - 1| with the prior's terms and with these
};

double time_of(const Terms& terms, const Terms& sizes);

/// Relative errors, robust (Huber at 10 %), with a prior that has no scale of its own: the proportions of `prior`,
/// scaled by the weighted median of measured over predicted. Terms that the samples do not distinguish keep those
/// proportions. Precondition: samples is not empty; some term of `prior` predicts above zero.
TermFit fit_terms(std::span<const Sample> samples, const Terms& prior);

}  // namespace trivium::calibration
