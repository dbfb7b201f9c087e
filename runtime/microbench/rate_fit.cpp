#include "runtime/microbench/rate_fit.h"

#include <algorithm>
#include <array>

namespace trivium::runtime::microbench {

// Coordinate descent: with the other terms fixed, the best value of one is a quotient, cut at zero. The problem is
// convex, so this converges to the optimum; sizes are scaled to make the number of rounds small.
hardware::OpRate fit_rate(std::span<const ShapeTime> shapes) {
  constexpr int kRounds = 20000;
  std::vector<std::array<double, 3>> rows;  // share of the measured time that one unit of a term explains
  for (const ShapeTime& s : shapes) rows.push_back({1 / s.seconds, s.flops / s.seconds, s.bytes / s.seconds});
  std::array<double, 3> squares{}, terms{};
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < 3; ++j) squares[j] += row[j] * row[j];
  }
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t j = 0; j < 3; ++j) {
      if (squares[j] <= 0) continue;
      double left = 0;
      for (const auto& row : rows) {
        const double others = row[0] * terms[0] + row[1] * terms[1] + row[2] * terms[2] - row[j] * terms[j];
        left += row[j] * (1 - others);
      }
      terms[j] = std::max(0.0, left / squares[j]);
    }
  }
  hardware::OpRate rate;
  rate.overhead = base::Seconds(terms[0]);
  rate.seconds_per_flop = terms[1];
  rate.seconds_per_byte = terms[2];
  return rate;
}

}  // namespace trivium::runtime::microbench
