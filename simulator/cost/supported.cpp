#include "simulator/cost/supported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/cost/fp8.h"
#include "simulator/cost/gemm.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

namespace {

program::Infeasible without_fp8(const hardware::Device& device, program::Fp8 recipe) {
  if (device.kind == hardware::DeviceKind::kCpu) {
    return {"fp8", fmt::format("cores emulate fp8 delayed, current, block and mxfp8; {} is priced on GPUs alone",
                               name_of(recipe))};
  }
  if (device.peak.contains(arithmetic_of(recipe))) {
    return {"fp8", fmt::format("the profile of {} has no rates for fp8 {}", device.name, name_of(recipe))};
  }
  return {"fp8", fmt::format("{} has no {} arithmetic", device.name, recipe == program::Fp8::kNvfp4 ? "fp4" : "fp8")};
}

}  // namespace

std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster) {
  if (job.plan.ranks() > cluster.devices() && !shares_cores(job.plan, cluster)) {
    return program::Infeasible{
        "devices", fmt::format("the plan has {} ranks, the cluster {} devices", job.plan.ranks(), cluster.devices())};
  }
  if (auto no = misplaced(job.plan, cluster)) return no;
  int left = job.plan.ranks();  // ranks fill the nodes in order: later nodes may be anything
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    const hardware::NodeGroup& group = cluster.groups[i];
    const std::vector<int>& named = job.plan.stage_nodes;
    const bool used =
        named.empty() ? left > 0 : std::find(named.begin(), named.end(), static_cast<int>(i)) != named.end();
    left -= group.count * group.node.devices;
    if (!used) continue;
    const hardware::Device& device = group.node.device;
    if (!device.peak.contains(arithmetic_on(device, job.plan.precision))) {
      return program::Infeasible{"precision",
                                 fmt::format("{} has no {} arithmetic", device.name, name_of(job.plan.precision))};
    }
    if (job.plan.fp8 != program::Fp8::kNone && !has_fp8(device, job.plan.fp8) &&
        !reads_codes_back(device, job.plan.fp8, *program::find_stack(job.plan.stack))) {
      return without_fp8(device, job.plan.fp8);
    }
    const program::Offload& offload = job.plan.offload;
    const std::array stores{offload.optimizer, offload.gradients, offload.parameters, offload.activations};
    const bool to_disk = std::ranges::find(stores, program::Storage::kDisk) != stores.end();
    if (to_disk && group.node.disk.value() <= 0) {
      return program::Infeasible{"disk", fmt::format("the profile of {} has no disk to offload to", group.node.name)};
    }
    // Cores run either; their profile says which of the two is their default.
    const bool is_core = device.kind == hardware::DeviceKind::kCpu;
    if (job.plan.attention == program::Attention::kFlash && !device.flash_attention && !is_core) {
      return program::Infeasible{"flash-attention", fmt::format("{} has no flash attention kernels", device.name)};
    }
  }
  return std::nullopt;
}

}  // namespace trivium::simulator
