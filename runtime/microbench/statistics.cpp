#include "runtime/microbench/statistics.h"

#include <fmt/format.h>

#include <algorithm>

namespace trivium::runtime::microbench {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double spread(const std::vector<double>& values) {
  const double middle = quantile(values, 0.5);
  return middle > 0 ? (quantile(values, 0.9) - quantile(values, 0.1)) / middle : 0;
}

std::string spread_words(double share) { return fmt::format("; spread {:.0f} %", 100 * share); }

double mean_without_interruptions(std::span<const double> seconds) {
  if (seconds.empty()) return 0;
  constexpr double kInterrupted = 4;
  const double most = kInterrupted * quantile({seconds.begin(), seconds.end()}, 0.5);
  double sum = 0;
  for (const double each : seconds) sum += std::min(each, most);
  return sum / static_cast<double>(seconds.size());
}

}  // namespace trivium::runtime::microbench
