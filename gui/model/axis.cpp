#include "gui/model/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/readable.h"

namespace trivium::gui {

namespace {

constexpr double kCrowding = 0.7;  // of the wanted distance: nearer steps leave no room for labels

}  // namespace

std::vector<double> ticks(double low, double high, int wanted) {
  if (!(low < high) || !std::isfinite(high - low)) return {low};
  const double raw = (high - low) / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < kCrowding * raw) step = factor * power;
  }
  std::vector<double> places;
  for (double i = std::ceil(low / step); i * step <= high + step * 1e-9; ++i) places.push_back(i * step);
  if (places.empty()) places.push_back(low);
  return places;
}

std::string seconds_tick(double value, double most, double step) {
  const auto [unit, name] = most >= 1      ? std::pair(1.0, "s")
                            : most >= 1e-3 ? std::pair(1e-3, "ms")
                                           : std::pair(1e-6, "µs");
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 6);
  return fmt::format("{:.{}f} {}", value / unit, decimals, name);
}

std::string with_micro_sign(std::string words) {
  constexpr std::string_view kMicro = " us";
  for (std::size_t at = words.find(kMicro); at != std::string::npos; at = words.find(kMicro, at + 1)) {
    const std::size_t end = at + kMicro.size();
    const bool is_figure = at > 0 && std::isdigit(static_cast<unsigned char>(words[at - 1])) != 0;
    const bool goes_on = end < words.size() && std::isalnum(static_cast<unsigned char>(words[end])) != 0;
    if (is_figure && !goes_on) words.replace(at, kMicro.size(), " µs");
  }
  return words;
}

std::string as_figures(const std::string& words) {
  constexpr std::size_t kThousand = 4;  // digits
  std::string told;
  for (std::size_t at = 0; at < words.size();) {
    std::size_t end = at;
    while (end < words.size() && std::isdigit(static_cast<unsigned char>(words[end])) != 0) ++end;
    const bool decimals = at > 0 && words[at - 1] == '.';
    const bool grouped = end - at >= kThousand && end - at <= std::numeric_limits<double>::digits10 && !decimals;
    end = std::max(end, at + 1);
    told += grouped ? base::integer(std::stod(words.substr(at, end - at))) : words.substr(at, end - at);
    at = end;
  }
  return with_micro_sign(told);
}

std::string seconds_words(double seconds) { return with_micro_sign(base::seconds(seconds)); }

}  // namespace trivium::gui
