#include "hardware_profiles/quantity_text.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace trivium::hardware {
namespace {

struct Unit {
  const char* name;
  double scale;
};

/// Tries every unit through the parser itself, so that no assumption on how it multiplies can break the round trip. The
/// first unit is the base unit, whose shortest decimal form is exact by construction.
template <class Value, class Parse>
std::string shortest_exact(Value value, std::initializer_list<Unit> units, Parse parse) {
  std::string best = fmt::format("{} {}", value.value(), units.begin()->name);
  for (const Unit& unit : units) {
    std::string text = fmt::format("{} {}", value.value() / unit.scale, unit.name);
    if (text.size() >= best.size()) continue;
    const auto parsed = parse(text);
    if (parsed.ok() && parsed.value() == value) best = std::move(text);
  }
  return best;
}

}  // namespace

std::string exact_text(base::Seconds value) {
  return shortest_exact(value, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}, base::parse_seconds);
}

std::string exact_text(base::Bytes value) {
  return shortest_exact(value,
                        {{"B", 1},
                         {"KiB", base::kKiB},
                         {"MiB", base::kMiB},
                         {"GiB", base::kGiB},
                         {"TiB", base::kTiB},
                         {"MB", 1e6},
                         {"GB", 1e9},
                         {"TB", 1e12}},
                        base::parse_bytes);
}

std::string exact_text(base::BytesPerSecond value) {
  return shortest_exact(value, {{"B/s", 1}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}, base::parse_bandwidth);
}

std::string exact_text(base::FlopsPerSecond value) {
  return shortest_exact(value, {{"FLOP/s", 1}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}},
                        base::parse_flop_rate);
}

std::string exact_text(base::Watts value) { return shortest_exact(value, {{"W", 1}, {"kW", 1e3}}, base::parse_watts); }

std::string exact_text(base::DollarsPerHour value) { return shortest_exact(value, {{"$/h", 1}}, base::parse_price); }

}  // namespace trivium::hardware
