#include "simulator/defaults.h"

#include <algorithm>

namespace trivium::simulator {
namespace {

bool all_devices_have(const hardware::Cluster& cluster, hardware::Arithmetic arithmetic) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(),
                     [&](const hardware::NodeGroup& group) { return group.node.device.peak.contains(arithmetic); });
}

}  // namespace

program::DType best_precision(const hardware::Cluster& cluster) {
  const bool has_cpus = std::any_of(cluster.groups.begin(), cluster.groups.end(), [](const hardware::NodeGroup& group) {
    return group.node.device.kind == hardware::DeviceKind::kCpu;
  });
  if (has_cpus) return program::DType::kFp32;
  if (all_devices_have(cluster, hardware::Arithmetic::kBf16)) return program::DType::kBf16;
  return all_devices_have(cluster, hardware::Arithmetic::kFp16) ? program::DType::kFp16 : program::DType::kFp32;
}

}  // namespace trivium::simulator
