#include "gui/model/cluster_totals.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/readable.h"

namespace trivium::gui {
namespace {

constexpr double kPeta = 1e15, kTera = 1e12, kMega = 1e6, kKilo = 1e3;

/// Of a device, dense: of the 16-bit types the faster, else of what it has.
double peak_of(const hardware::Device& device) {
  double halves = 0, any = 0;
  for (const auto& [arithmetic, peak] : device.peak) {
    const bool half = arithmetic == hardware::Arithmetic::kBf16 || arithmetic == hardware::Arithmetic::kFp16;
    (half ? halves : any) = std::max(half ? halves : any, peak.value());
  }
  return halves > 0 ? halves : any;
}

std::string flops_text(double flops) {
  return flops >= kPeta ? fmt::format("{:.4g} PFLOP/s", flops / kPeta) : fmt::format("{:.4g} TFLOP/s", flops / kTera);
}

std::string watts_text(double watts) {
  return watts >= kMega ? fmt::format("{:.3g} MW", watts / kMega) : fmt::format("{:.3g} kW", watts / kKilo);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cluster_totals(const hardware::Cluster& cluster) {
  double flops = 0, memory = 0, host = 0, watts = 0, network = 0, price = 0;
  bool is_priced = true, has_power = true;
  for (const hardware::NodeGroup& group : cluster.groups) {
    const hardware::Node& node = group.node;
    const double devices = static_cast<double>(group.count) * node.devices;
    flops += devices * peak_of(node.device);
    memory += devices * static_cast<double>(node.device.memory.value());
    host += group.count * static_cast<double>(node.host_memory.value());
    network += static_cast<double>(group.count) * node.adapters * node.network.bandwidth.value();
    watts += devices * node.device.full_power().value() + group.count * node.overhead_power.value();
    price += group.count * node.price.value();
    has_power = has_power && node.device.peak_power.value() > 0;
    is_priced = is_priced && node.price.value() > 0;
  }
  std::vector<std::pair<std::string, std::string>> totals{
      {"nodes", base::integer(cluster.nodes())},
      {"devices", base::integer(cluster.devices())},
      {"peak, 16 bits", flops_text(flops)},
      {"memory of devices", base::size(static_cast<std::int64_t>(memory))}};
  const auto add = [&](bool known, const char* name, const std::string& value) {
    if (known) totals.emplace_back(name, value);
  };
  add(host > 0, "memory of hosts", base::size(static_cast<std::int64_t>(host)));
  add(network > 0, "all adapters", fmt::format("{:.4g} TB/s", network / kTera));
  add(has_power, "power at full load", watts_text(watts));
  add(is_priced, "price", base::dollars(price) + " an hour");
  return totals;
}

}  // namespace trivium::gui
