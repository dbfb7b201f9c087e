#include "calibration/measurements/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trivium::calibration {
namespace {

/// Rank of every value from 1; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double shared = 0.5 * static_cast<double>(i + 1 + end);  // mean of i + 1 … end
    for (; i < end; ++i) result[order[i]] = shared;
  }
  return result;
}

}  // namespace

double weighted_median(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double total = 0, passed = 0;
  for (const auto& [value, weight] : values) total += weight;
  for (const auto& [value, weight] : values) {
    passed += weight;
    if (passed >= total / 2) return value;
  }
  return values.empty() ? 0 : values.back().first;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

std::optional<double> spearman(std::span<const Pair> pairs) {
  if (pairs.size() < 2) return std::nullopt;
  std::vector<double> measured, predicted;
  for (const Pair& pair : pairs) {
    measured.push_back(pair.measured);
    predicted.push_back(pair.predicted);
  }
  const std::vector<double> a = ranks(measured), b = ranks(predicted);
  const double mean = 0.5 * static_cast<double>(pairs.size() + 1);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

}  // namespace trivium::calibration
