// Benchmarks of collectives: the affine curve of a node, and what the network reaches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "calibration/fit/fit_parts.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "simulator/collectives/collective_cost.h"
#include "simulator/collectives/node_curve.h"

namespace trivium::calibration {
namespace {

using imports::CollectiveTime;
using program::OpKind;

// Between these two, NCCL goes from its low-latency protocols to the one that fills the links.
constexpr double kTiny = 32 * 1024;            // B: the time of smaller messages is latency
constexpr double kLarge = 64 * 1024 * 1024.0;  // B: larger ones show the bandwidth

/// Bytes that cross the bus: 2 (n-1)/n S of an all-reduce, half of it for its halves and an all-to-all.
double wire_bytes(const CollectiveTime& time) {
  const double n = time.ranks, whole = time.kind == OpKind::kAllReduce ? 2 : 1;
  return whole * (n - 1) / n * time.bytes;
}

double relative_spread(const std::vector<double>& values) {
  const double middle = median(values);
  return middle > 0 ? (quantile(values, 0.75) - quantile(values, 0.25)) / middle : 0;
}

void not_covered(Fit& fit, const std::string& pointer, double kept, const std::string& why) {
  note(fit, {pointer, kept, kept, 0, 0, false, why});
  fit.report.push_back(fmt::format("{}: {}; not extrapolated, kept from the base", pointer, why));
}

/// One group size inside a node.
void fit_group(Fit& fit, int ranks, const std::vector<CollectiveTime>& times, const std::string& from) {
  hardware::Node& node = fit.node;
  const simulator::RingCurve base = simulator::node_curve(node, ranks);
  const std::string bus = fmt::format("/allreduce_bus/{}", ranks), late = fmt::format("/allreduce_latency/{}", ranks);
  std::vector<double> tiny;
  double smallest = times.front().bytes, largest = smallest;
  for (const CollectiveTime& time : times) {
    smallest = std::min(smallest, time.bytes);
    largest = std::max(largest, time.bytes);
    if (time.bytes <= kTiny && time.kind == OpKind::kAllReduce) tiny.push_back(time.seconds);
  }
  double latency = base.latency.value();
  if (tiny.empty()) {
    not_covered(fit, late, latency, fmt::format("no all-reduce of 32 KiB or less (from {:.3g} B)", smallest));
  } else {
    latency = median(tiny);
    note(fit, {late, base.latency.value(), latency, relative_spread(tiny), static_cast<int>(tiny.size()), true, from});
    node.allreduce_latency[ranks] = base::Seconds(latency);
  }
  std::vector<double> rates;
  for (const CollectiveTime& time : times) {
    if (time.bytes >= kLarge && time.seconds > latency) rates.push_back(wire_bytes(time) / (time.seconds - latency));
  }
  if (rates.empty()) {
    not_covered(fit, bus, base.bus.value(), fmt::format("no message of 64 MiB or more (up to {:.3g} B)", largest));
  } else {
    const double rate = median(rates);
    note(fit, {bus, base.bus.value(), rate, relative_spread(rates), static_cast<int>(rates.size()), true, from});
    node.allreduce_bus[ranks] = base::BytesPerSecond(rate);
  }
  const simulator::RingCurve curve = simulator::node_curve(node, ranks);
  std::vector<double> before, after;
  for (const CollectiveTime& time : times) {
    const auto error = [&](const simulator::RingCurve& c) {
      return std::abs((c.latency.value() + wire_bytes(time) / c.bus.value()) / time.seconds - 1);
    };
    before.push_back(error(base));
    after.push_back(error(curve));
  }
  fit.report.push_back(fmt::format(
      "collectives of {} ranks: {} sizes, median error {:.1f} % -> {:.1f} %, worst {:.1f} %", ranks, times.size(),
      kPercent * median(before), kPercent * median(after), kPercent * *std::max_element(after.begin(), after.end())));
}

/// What the cost rule says of a benchmark between nodes that share nothing with a training.
double benchmark_seconds(hardware::Node node, const CollectiveTime& time, double efficiency) {
  node.network.efficiency = efficiency;
  node.collective_skew = base::Seconds(0);
  node.device.physics.collective_bus = node.device.physics.collective_latency = 1;
  simulator::GroupPlacement group;
  group.ranks = time.ranks;
  group.nodes = time.hosts;
  group.ranks_per_node = (time.ranks + time.hosts - 1) / time.hosts;
  return simulator::collective_cost(time.kind, base::Bytes(time.bytes), group, node, {}).value();
}

/// Share of the adapters with which the cost rule gives the measured time; nothing where none in (0.02, 1) does.
std::optional<double> efficiency_of(const hardware::Node& node, const CollectiveTime& time) {
  constexpr double kLeast = 0.02;
  double low = kLeast, high = 1;
  if (benchmark_seconds(node, time, low) < time.seconds || benchmark_seconds(node, time, high) > time.seconds)
    return std::nullopt;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (benchmark_seconds(node, time, middle) > time.seconds ? low : high) = middle;
  }
  return high;
}

void fit_network(Fit& fit, const std::vector<CollectiveTime>& times, const std::string& from) {
  constexpr const char* kPointer = "/network/efficiency";
  if (fit.node.adapters == 0) {
    fit.report.push_back("network: measured over several hosts, but the base has no adapters; nothing learnt of it");
    return;
  }
  std::vector<double> shares;
  double largest = 0;
  for (const CollectiveTime& time : times) {
    largest = std::max(largest, time.bytes);
    if (time.bytes < kLarge || time.kind == OpKind::kSend) continue;
    if (const auto share = efficiency_of(fit.node, time)) shares.push_back(*share);
  }
  const double before = fit.node.network.efficiency;
  if (shares.empty()) {
    return not_covered(fit, kPointer, before,
                       largest < kLarge
                           ? fmt::format("no message of 64 MiB or more over hosts (up to {:.3g} B)", largest)
                           : "faster than all adapters together, or slower than a fiftieth of them");
  }
  const double share = median(shares);
  note(fit, {kPointer, before, share, relative_spread(shares), static_cast<int>(shares.size()), true, from});
  fit.node.network.efficiency = share;
  fit.report.push_back(fmt::format("network efficiency: {:.2f} -> {:.2f} from {} sizes", before, share, shares.size()));
}

/// Hosts of so many ranks where the file does not name them: whole nodes of the base, which is said.
int hosts_of(Fit& fit, int ranks, const std::string& from) {
  const int devices = fit.node.devices, hosts = (ranks + devices - 1) / devices;
  const std::string line =
      fmt::format("{}: hosts of its {} ranks are not named; taken as {} of {} devices", from, ranks, hosts, devices);
  if (std::find(fit.report.begin(), fit.report.end(), line) == fit.report.end()) fit.report.push_back(line);
  return hosts;
}

}  // namespace

void fit_collectives(Fit& fit, std::span<const CollectiveTime> times, const std::string& from) {
  std::map<int, std::vector<CollectiveTime>> inside;  // by ranks
  std::vector<CollectiveTime> between;
  for (CollectiveTime time : times) {
    if (time.hosts == 0) time.hosts = hosts_of(fit, time.ranks, from);
    if (time.hosts > 1) {
      between.push_back(time);
    } else if (time.kind != OpKind::kSend) {  // no ring: a link between two
      inside[time.ranks].push_back(time);
    }
  }
  for (const auto& [ranks, group] : inside) {
    if (ranks > fit.node.devices) {
      throw base::Failure(
          base::ErrorKind::kInput,
          fmt::format("{}: {} ranks on one host, the profile's node has {} devices; give --base a profile "
                      "of that machine",
                      from, ranks, fit.node.devices));
    }
    fit_group(fit, ranks, group, from);
  }
  if (!between.empty()) fit_network(fit, between, from);
}

}  // namespace trivium::calibration
