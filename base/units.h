// Strong types for the physical quantities of a plan, and their text form ("80 GiB", "312 TFLOP/s", "200 Gb/s").
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/error.h"

namespace trivium::base {

/// A quantity of one dimension, held as a double in its SI base unit. Only like quantities add; products and quotients
/// that mean something are declared below.
template <class Dimension>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base) : base_(base) {}
  constexpr double value() const { return base_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return base_ += other.base_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.base_ + b.base_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.base_ - b.base_); }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.base_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.base_ * f); }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.base_ / f); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.base_ / b.base_; }

 private:
  double base_ = 0;
};

using Seconds = Quantity<struct TimeDimension>;              ///< s
using Bytes = Quantity<struct DataDimension>;                ///< B
using Flops = Quantity<struct WorkDimension>;                ///< floating-point operations
using BytesPerSecond = Quantity<struct BandwidthDimension>;  ///< B/s
using FlopsPerSecond = Quantity<struct WorkRateDimension>;   ///< FLOP/s
using Watts = Quantity<struct PowerDimension>;               ///< W
using Joules = Quantity<struct EnergyDimension>;             ///< J
using DollarsPerHour = Quantity<struct PriceDimension>;      ///< US dollars per hour

constexpr Seconds operator/(Bytes b, BytesPerSecond r) { return Seconds(b.value() / r.value()); }
constexpr Seconds operator/(Flops w, FlopsPerSecond r) { return Seconds(w.value() / r.value()); }
constexpr Bytes operator*(BytesPerSecond r, Seconds t) { return Bytes(r.value() * t.value()); }
constexpr Joules operator*(Watts p, Seconds t) { return Joules(p.value() * t.value()); }

constexpr double kKiB = 1024.0, kMiB = kKiB * 1024, kGiB = kMiB * 1024, kTiB = kGiB * 1024;

/// Text to quantity. Accepted units (a space before the unit is optional):
/// Seconds ps ns us ms s min h d · Bytes B kB MB GB TB KiB MiB GiB TiB · Flops FLOP … PFLOP ·
/// BytesPerSecond B/s … TB/s, KiB/s … TiB/s and bits b/s … Tb/s · FlopsPerSecond FLOP/s … PFLOP/s · Watts mW W kW MW ·
/// DollarsPerHour "$/h". Zero is accepted. Errors: ErrorKind::kInput, naming the text and the units that are accepted;
/// negative, not finite and unbelievably large values are errors too (times up to 1e10 s, sizes up to 1e18 B).
Result<Seconds> parse_seconds(std::string_view text);
Result<Bytes> parse_bytes(std::string_view text);
Result<Flops> parse_flops(std::string_view text);
Result<BytesPerSecond> parse_bandwidth(std::string_view text);
Result<FlopsPerSecond> parse_flop_rate(std::string_view text);
Result<Watts> parse_watts(std::string_view text);
Result<DollarsPerHour> parse_price(std::string_view text);

/// Quantity to text for people, three significant digits: "32.4 s", "61.0 GiB", "25.0 GB/s", "138 TFLOP/s".
std::string to_text(Seconds);
/// In the unit in which `beside` is shown, so that the two can be compared at a glance: "71.3 s" beside "52.0 s".
std::string to_text(Seconds, Seconds beside);
std::string to_text(Bytes);
std::string to_text(Flops);
std::string to_text(BytesPerSecond);
std::string to_text(FlopsPerSecond);
std::string to_text(Watts);

}  // namespace trivium::base
