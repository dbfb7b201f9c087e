#include "gui/timeline/spans/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace trivium::gui {
namespace {

struct Unit {
  std::int64_t ps;
  std::string_view name;
};
constexpr std::array<Unit, 5> kUnits{
    {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "µs"}, {1'000, "ns"}, {1, "ps"}}};

const Unit& unit_of(std::int64_t ps) {
  for (const Unit& unit : kUnits) {
    if (std::abs(ps) >= unit.ps) return unit;
  }
  return kUnits.back();
}

}  // namespace

std::string time_text(std::int64_t ps) { return precise_time_text(ps, std::numeric_limits<std::int64_t>::max()); }

std::string precise_time_text(std::int64_t ps, std::int64_t resolution_ps) {
  if (ps == 0) return "0 s";
  const Unit& unit = unit_of(ps);
  const double value = static_cast<double>(ps) / static_cast<double>(unit.ps);
  const double size = std::abs(value);
  int decimals = unit.ps == 1 ? 0 : size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  int needed = 0;
  for (std::int64_t one = unit.ps; one > resolution_ps; one /= 10) ++needed;
  decimals = std::max(decimals, needed);
  return fmt::format("{:.{}f} {}", value, decimals, unit.name);
}

std::vector<Tick> ticks(std::int64_t begin_ps, std::int64_t end_ps, std::int64_t least_ps) {
  std::int64_t step = 1;  // 1, 2 or 5 times a power of ten
  constexpr std::int64_t kLargestStep = 1'000'000'000'000'000'000;
  for (int i = 0; step < least_ps && step < kLargestStep; ++i) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  const Unit& shown = unit_of(std::max(std::abs(begin_ps), std::abs(end_ps)));
  int decimals = 0;
  for (std::int64_t one = shown.ps; one > step; one /= 10) ++decimals;
  std::vector<Tick> result;
  std::int64_t at = begin_ps / step * step;
  if (at < begin_ps) at += step;
  for (; at <= end_ps; at += step) {
    result.push_back(
        {at, fmt::format("{:.{}f} {}", static_cast<double>(at) / static_cast<double>(shown.ps), decimals, shown.name)});
    if (end_ps - at < step) break;
  }
  return result;
}

}  // namespace trivium::gui
