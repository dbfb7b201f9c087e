#include "runtime/microbench/rate_fit.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace trivium::runtime::microbench {

// Coordinate descent: with the other terms fixed, the best value of one is a quotient, cut at zero. The problem is
// convex, so this converges to the optimum; sizes are scaled to make the number of rounds small.
hardware::OpRate fit_rate(std::span<const ShapeTime> shapes) {
  constexpr int kRounds = 20000;
  constexpr std::size_t kTerms = 4;
  std::vector<std::array<double, kTerms>> rows;  // share of the measured time that one unit of a term explains
  for (const ShapeTime& s : shapes) {
    rows.push_back({1 / s.seconds, s.flops / s.seconds, s.bytes / s.seconds, s.blocks / s.seconds});
  }
  std::array<double, kTerms> squares{}, terms{};
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < kTerms; ++j) squares[j] += row[j] * row[j];
  }
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t j = 0; j < kTerms; ++j) {
      if (squares[j] <= 0) continue;
      double left = 0;
      for (const auto& row : rows) {
        const double all = std::inner_product(row.begin(), row.end(), terms.begin(), 0.0);
        left += row[j] * (1 - (all - row[j] * terms[j]));
      }
      terms[j] = std::max(0.0, left / squares[j]);
    }
  }
  hardware::OpRate rate;
  rate.overhead = base::Seconds(terms[0]);
  rate.seconds_per_flop = terms[1];
  rate.seconds_per_byte = terms[2];
  rate.seconds_per_block = terms[3];
  return rate;
}

}  // namespace trivium::runtime::microbench
