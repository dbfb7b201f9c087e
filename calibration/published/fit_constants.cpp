// What is fitted to published runs, and what is known of it beforehand.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "calibration/measurements/quantities.h"
#include "calibration/published/published_fit.h"

namespace trivium::calibration {
namespace {

FitConstant of_profile(const hardware::Node& node, const char* what, FitPrior prior, const char* pointer,
                       const char* unit, std::function<void(hardware::Node&, double)> set) {
  prior.name = fmt::format("{} {}", node.name, what);
  return {prior, node.name, "", pointer, unit, std::move(set)};
}

void add_scale(const hardware::Node& node, std::vector<FitConstant>& constants) {
  constants.push_back(of_profile(node, "compute_scale", {"", 1.0, 0.08, 0.6, 1.3}, "/device/compute_scale", "",
                                 [](hardware::Node& n, double v) { n.device.compute_scale = v; }));
}

// A machine: clocks and power differ by some per cent, networks by a quarter; a kernel takes its host 10 us (bare
// launches) to 50 us (many small Python layers on a slow core); how late hosts arrive is known to an order of
// magnitude.
void add_machine(const hardware::Node& node, std::vector<FitConstant>& constants) {
  add_scale(node, constants);
  constants.push_back(
      of_profile(node, "kernel_issue", {"", 22, 0.5, 3, 100}, "/device/kernel_issue", "us",
                 [](hardware::Node& n, double v) { n.device.kernel_issue = base::Seconds(v * kMicro); }));
  constants.push_back(of_profile(node, "collective_skew", {"", 20, 2.0, 1, 5000}, "/collective_skew", "us",
                                 [](hardware::Node& n, double v) { n.collective_skew = base::Seconds(v * kMicro); }));
  if (node.adapters == 0) return;
  constants.push_back(of_profile(node, "network efficiency", {"", 0.75, 0.25, 0.05, 1}, "/network/efficiency", "",
                                 [](hardware::Node& n, double v) { n.network.efficiency = v; }));
}

/// How well each member of Physics is known from micro-measurements, as the sigma of its logarithm.
double sigma_of(std::string_view field) {
  static const std::map<std::string_view, double> kSigma = {
      {"batched_efficiency", 0.15}, {"unaligned_head", 0.3},    {"unaligned_product", 0.2}, {"flash_forward", 0.15},
      {"flash_backward", 0.15},     {"flash_ramp", 0.01},       {"product_ramp", 0.01},     {"issue_exponent", 0.3},
      {"collective_bus", 0.1},      {"collective_latency", 0.3}};
  return kSigma.at(field);
}

/// An efficiency of all devices whose names begin with `family`.
FitConstant of_devices(const std::string& family, const char* name, FitPrior prior, double hardware::Device::*member) {
  prior.name = fmt::format("{} {}", family, name);
  const auto set = [family, member](hardware::Node& n, double v) {
    if (n.device.name.starts_with(family)) n.device.*member = v;
  };
  return {prior, "", family, fmt::format("/{}", name), "", set};
}

}  // namespace

std::vector<FitConstant> fit_constants(const std::vector<hardware::Node>& nodes,
                                       const std::vector<hardware::Node>& micro) {
  std::vector<FitConstant> constants;
  for (const hardware::Node& node : nodes) add_machine(node, constants);
  // What memory-bound kernels reach of a device's memory; of products by family ("a100"), and only where kernels were
  // measured by themselves: from runs alone a machine's scale takes their place.
  std::set<std::string> devices, families;
  for (const hardware::Node& node : nodes) devices.insert(node.device.name);
  for (const std::string& device : devices) {
    constants.push_back(
        of_devices(device, "memory_efficiency", {"", 0.77, 0.08, 0.4, 1}, &hardware::Device::memory_efficiency));
  }
  for (const hardware::Node& node : micro) {
    const auto same = [&](const hardware::Node& other) { return other.name == node.name; };
    if (std::none_of(nodes.begin(), nodes.end(), same)) {
      add_scale(node, constants);
      constants.back().written = false;
    }
    families.insert(node.device.name.substr(0, node.device.name.find('-')));
  }
  for (const std::string& family : families) {
    constants.push_back(
        of_devices(family, "gemm_efficiency", {"", 0.76, 0.05, 0.4, 1}, &hardware::Device::gemm_efficiency));
    constants.push_back(
        of_devices(family, "wgrad_efficiency", {"", 0.94, 0.05, 0.4, 1.1}, &hardware::Device::wgrad_efficiency));
  }
  for (const hardware::PhysicsField& field : hardware::physics_fields()) {
    const double prior = hardware::Physics{}.*field.value;
    constants.push_back({{std::string(field.name), prior, sigma_of(field.name), field.low, field.high},
                         "",
                         "",
                         fmt::format("/physics/{}", field.name),
                         "",
                         [member = field.value](hardware::Node& n, double v) { n.device.physics.*member = v; }});
  }
  return constants;
}

}  // namespace trivium::calibration
