#include "base/readable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/seconds.h"
#include "base/units.h"

namespace trivium::base {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string size(std::int64_t bytes) { return to_text(Bytes(static_cast<double>(bytes))); }

std::string integer(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t first = digits.starts_with("-") ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string seconds(double value) { return to_text(Seconds(value)); }

std::string seconds_beside(double value, double beside) { return to_text(Seconds(value), Seconds(beside)); }

namespace {

/// With the zeros that say how exact it is: "2.60".
std::string of_three_digits(double value) {
  return fmt::format("{:.{}f}", value, std::max(0, 2 - static_cast<int>(std::floor(std::log10(value)))));
}

}  // namespace

// A price of more digits would say more than is known of it.
std::string dollars(double value) {
  constexpr double kThousand = 1e3, kMillion = 1e6, kBillion = 1e9;
  if (!(value > 0)) return "$0";
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  const double rounded = std::round(value / unit) * unit;
  if (rounded >= kBillion) return "$" + of_three_digits(rounded / kBillion) + "B";
  if (rounded >= kMillion) return "$" + of_three_digits(rounded / kMillion) + "M";
  if (rounded >= kThousand) return "$" + integer(rounded);
  return "$" + of_three_digits(rounded);
}

std::string energy(double joules) {
  constexpr double kJoulesPerWattHour = 3600, kLarge = 10, kThousand = 1e3;
  const double watt_hours = joules / kJoulesPerWattHour, kilowatt_hours = watt_hours / kThousand;
  if (kilowatt_hours >= kLarge * kThousand) return integer(kilowatt_hours / kThousand) + " MWh";
  if (kilowatt_hours >= kLarge) return integer(kilowatt_hours) + " kWh";
  if (kilowatt_hours >= 1) return fmt::format("{:.2g} kWh", kilowatt_hours);
  return fmt::format("{:.2g} Wh", watt_hours);
}

std::string duration(double value) {
  if (value >= 2 * kDay) return fmt::format("{:.1f} days", value / kDay);
  if (value >= 2 * kHour) return fmt::format("{:.1f} hours", value / kHour);
  return seconds(value);
}

}  // namespace trivium::base
