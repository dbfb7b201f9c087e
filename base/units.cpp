#include "base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "base/quote.h"
#include "base/seconds.h"

namespace trivium::base {
namespace {

struct Unit {
  std::string_view name;
  double factor;  // base units in one of these
};

constexpr Unit kTimeUnits[] = {{"ps", 1e-12}, {"ns", 1e-9},     {"us", 1e-6}, {"ms", 1e-3},
                               {"s", 1},      {"min", kMinute}, {"h", kHour}, {"d", kDay}};
constexpr Unit kByteUnits[] = {{"B", 1},      {"kB", 1e3},   {"MB", 1e6},   {"GB", 1e9},  {"TB", 1e12},
                               {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", kTiB}};
constexpr Unit kBandwidthUnits[] = {{"B/s", 1},        {"kB/s", 1e3},     {"MB/s", 1e6},     {"GB/s", 1e9},
                                    {"TB/s", 1e12},    {"KiB/s", kKiB},   {"MiB/s", kMiB},   {"GiB/s", kGiB},
                                    {"TiB/s", kTiB},   {"b/s", 1.0 / 8},  {"kb/s", 1e3 / 8}, {"Mb/s", 1e6 / 8},
                                    {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8}};
constexpr Unit kWorkUnits[] = {{"FLOP", 1},    {"kFLOP", 1e3},  {"MFLOP", 1e6},
                               {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}};
constexpr Unit kWorkRateUnits[] = {{"FLOP/s", 1},    {"kFLOP/s", 1e3},  {"MFLOP/s", 1e6},
                                   {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr Unit kPowerUnits[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
constexpr Unit kPriceUnits[] = {{"$/h", 1}};

// Units in which people read a result: binary for memory, decimal for links.
constexpr Unit kReadableBytes[] = {{"B", 1}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", kTiB}};
constexpr Unit kReadableBandwidths[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};

// Largest believable value of each dimension in base units: beyond it the text is a slip, and arithmetic on 64-bit
// integers (bytes) would no longer be safe.
constexpr double kMostSeconds = 1e10;  // three centuries
constexpr double kMostBytes = 1e18;    // below 2^63
constexpr double kMostBandwidth = 1e18;
constexpr double kMostWork = 1e36;
constexpr double kMostWorkRate = 1e24;
constexpr double kMostWatts = 1e12;
constexpr double kMostPrice = 1e9;

struct Dimension {
  std::string_view what;  // for messages
  std::span<const Unit> units;
  double most;
  std::string_view example;
};

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

Error cannot_read(std::string_view text, const Dimension& dimension) {
  return {ErrorKind::kInput, fmt::format("cannot read {} as {}; write a number and a unit such as \"{}\" (units: {})",
                                         quote(text), dimension.what, dimension.example, names_of(dimension.units))};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Result<double> parse(std::string_view original, const Dimension& dimension) {
  const std::string_view text = trimmed(original);
  if (text.starts_with('-')) {
    return Error{ErrorKind::kInput,
                 fmt::format("{} is negative; {} must be zero or more", quote(text), dimension.what)};
  }
  // from_chars would also take "inf" and "nan", so a digit is asked for first.
  const bool starts_as_number = !text.empty() && ((text[0] >= '0' && text[0] <= '9') || text[0] == '.');
  if (!starts_as_number) return cannot_read(original, dimension);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument) return cannot_read(original, dimension);
  std::string_view unit_name = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit_name == "µs" || unit_name == "μs") unit_name = "us";  // the sign of micro, and the Greek letter
  for (const Unit& unit : dimension.units) {
    if (unit.name != unit_name) continue;
    const double value = number * unit.factor;
    if (error == std::errc::result_out_of_range || !(value <= dimension.most)) {
      return Error{ErrorKind::kInput, fmt::format("{} is out of range; {} must be from 0 to {:g} {}", quote(text),
                                                  dimension.what, dimension.most / unit.factor, unit.name)};
    }
    return value;
  }
  return cannot_read(original, dimension);
}

template <class T>
Result<T> parse_as(std::string_view text, const Dimension& dimension) {
  const Result<double> value = parse(text, dimension);
  if (!value) return value.error();
  return T(value.value());
}

/// `value` rounded to three significant digits.
double rounded(double value) {
  if (value == 0) return 0;
  const double step = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / step) * step;
}

std::string three_digits(double value) {
  const double shown = rounded(value);
  if (shown >= 100 || shown == 0) return fmt::format("{:.0f}", value);
  if (shown >= 10) return fmt::format("{:.1f}", value);
  if (shown >= 1) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

/// The largest unit in which the value, as it will be printed, is one or more; that of 1 where none is. `units` ascend.
const Unit& unit_of(double value, std::span<const Unit> units) {
  const bool measurable = value != 0 && std::isfinite(value);
  const Unit* chosen = &units.front();
  for (const Unit& unit : units) {
    if (measurable ? rounded(std::abs(value) / unit.factor) >= 1 : unit.factor == 1) chosen = &unit;
  }
  return *chosen;
}

std::string show_in(const Unit& unit, double value) {
  if (value < 0) return "-" + show_in(unit, -value);
  const bool measurable = value != 0 && std::isfinite(value);
  return fmt::format("{} {}", measurable ? three_digits(value / unit.factor) : fmt::format("{}", value), unit.name);
}

// Iterations stand beside each other, so those of a minute or two are in seconds as shorter ones are.
const Unit& unit_of_time(double seconds) {
  constexpr double kLeastInMinutes = 10 * kMinute;
  constexpr std::size_t kUpToSeconds = 5;
  const std::span<const Unit> units(kTimeUnits);
  return unit_of(seconds, std::abs(seconds) < kLeastInMinutes ? units.first(kUpToSeconds) : units);
}

std::string show(double value, std::span<const Unit> units) { return show_in(unit_of(value, units), value); }

}  // namespace

Result<Seconds> parse_seconds(std::string_view text) {
  return parse_as<Seconds>(text, {"a time", kTimeUnits, kMostSeconds, "1.5 us"});
}
Result<Bytes> parse_bytes(std::string_view text) {
  return parse_as<Bytes>(text, {"a data size", kByteUnits, kMostBytes, "80 GiB"});
}
Result<Flops> parse_flops(std::string_view text) {
  return parse_as<Flops>(text, {"an amount of work", kWorkUnits, kMostWork, "4.2 TFLOP"});
}
Result<BytesPerSecond> parse_bandwidth(std::string_view text) {
  return parse_as<BytesPerSecond>(text, {"a bandwidth", kBandwidthUnits, kMostBandwidth, "200 Gb/s"});
}
Result<FlopsPerSecond> parse_flop_rate(std::string_view text) {
  return parse_as<FlopsPerSecond>(text, {"a compute rate", kWorkRateUnits, kMostWorkRate, "312 TFLOP/s"});
}
Result<Watts> parse_watts(std::string_view text) {
  return parse_as<Watts>(text, {"a power", kPowerUnits, kMostWatts, "400 W"});
}
Result<DollarsPerHour> parse_price(std::string_view text) {
  return parse_as<DollarsPerHour>(text, {"a price", kPriceUnits, kMostPrice, "2.48 $/h"});
}

std::string to_text(Seconds time) { return to_text(time, time); }
std::string to_text(Seconds time, Seconds beside) { return show_in(unit_of_time(beside.value()), time.value()); }
std::string to_text(Bytes size) {
  const double bytes = size.value();
  if (std::abs(bytes) < kReadableBytes[1].factor && std::floor(bytes) == bytes) return fmt::format("{:.0f} B", bytes);
  return show(bytes, kReadableBytes);
}
std::string to_text(Flops work) { return show(work.value(), kWorkUnits); }
std::string to_text(BytesPerSecond rate) { return show(rate.value(), kReadableBandwidths); }
std::string to_text(FlopsPerSecond rate) { return show(rate.value(), kWorkRateUnits); }
std::string to_text(Watts power) { return show(power.value(), kPowerUnits); }

}  // namespace trivium::base
