#include "edge/readable.h"

#include <fmt/format.h>

#include "edge/seconds.h"
#include "edge/units.h"

namespace trivium::edge {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string size(std::int64_t bytes) { return to_text(Bytes(static_cast<double>(bytes))); }

std::string integer(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t first = digits.starts_with("-") ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string seconds(double value) { return to_text(Seconds(value)); }

std::string duration(double value) {
  if (value >= 2 * kDay) return fmt::format("{:.1f} days", value / kDay);
  if (value >= 2 * kHour) return fmt::format("{:.1f} hours", value / kHour);
  return seconds(value);
}

}  // namespace trivium::edge
