#include "simulator/placement/defaults.h"

#include <algorithm>

#include "program/plan/stack.h"

namespace trivium::simulator {
namespace {

bool all_devices_have(const hardware::Cluster& cluster, hardware::Arithmetic arithmetic) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(),
                     [&](const hardware::NodeGroup& group) { return group.node.device.peak.contains(arithmetic); });
}

}  // namespace

bool all_devices_are_cores(const hardware::Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [](const hardware::NodeGroup& group) {
    return group.node.device.kind == hardware::DeviceKind::kCpu;
  });
}

program::DType best_precision(const hardware::Cluster& cluster) {
  const bool has_cpus = std::any_of(cluster.groups.begin(), cluster.groups.end(), [](const hardware::NodeGroup& group) {
    return group.node.device.kind == hardware::DeviceKind::kCpu;
  });
  if (has_cpus) return program::DType::kFp32;
  if (all_devices_have(cluster, hardware::Arithmetic::kBf16)) return program::DType::kBf16;
  return all_devices_have(cluster, hardware::Arithmetic::kFp16) ? program::DType::kFp16 : program::DType::kFp32;
}

bool has_fused_attention(const program::Plan& plan, const hardware::Cluster& cluster) {
  const program::StackTraits* stack = program::find_stack(plan.stack);
  if (stack == nullptr || !stack->fused_attention) return false;
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const hardware::NodeGroup& group) {
    const hardware::Device& device = group.node.device;
    return device.flash_attention && (device.kind == hardware::DeviceKind::kCpu || program::is_half(plan.precision));
  });
}

program::Attention best_attention(const program::Plan& plan, const hardware::Cluster& cluster) {
  const bool is_ring = plan.context > 1 && plan.context_method == program::ContextMethod::kRing;
  const bool fused = has_fused_attention(plan, cluster) || (is_ring && all_devices_are_cores(cluster));
  return fused ? program::Attention::kFlash : program::Attention::kUnfused;
}

}  // namespace trivium::simulator
