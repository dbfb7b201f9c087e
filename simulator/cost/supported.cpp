#include "simulator/cost/supported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hardware_profiles/capabilities.h"
#include "program/plan/stack.h"
#include "simulator/cost/fp8.h"
#include "simulator/cost/gemm.h"
#include "simulator/placement/peer_buffers.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

using hardware::Capability;

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

bool uses_disk(const program::Plan& plan) {
  const program::Offload& offload = plan.offload;
  const std::array stores{offload.optimizer, offload.gradients, offload.parameters, offload.activations};
  return std::ranges::find(stores, program::Storage::kDisk) != stores.end();
}

}  // namespace

bool dispatch_lacks_hardware(const program::Plan& plan, const hardware::Node& node) {
  return plan.expert > 1 && sends_once(program::stack_of(plan).expert_dispatch) &&
         !has(node, Capability::kTokenDispatch);
}

std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster) {
  if (job.plan.ranks() > cluster.devices() && !shares_cores(job.plan, cluster)) {
    return program::Infeasible{
        "devices", fmt::format("the plan has {} ranks, the cluster {} devices", job.plan.ranks(), cluster.devices())};
  }
  if (auto no = misplaced(job.plan, cluster)) return no;
  if (auto no = tensor_overlap_refused(job.plan, cluster)) return no;
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
    if (uses_disk(job.plan) && !has(group.node, Capability::kDisk)) {
      return program::Infeasible{"disk", fmt::format("the profile of {} has no disk to offload to", group.node.name)};
    }
    // Cores run either; their profile says which of the two is their default.
    const bool is_core = device.kind == hardware::DeviceKind::kCpu;
    if (job.plan.attention == program::Attention::kFlash && !has(group.node, Capability::kFlashAttention) && !is_core) {
      return program::Infeasible{"flash-attention", fmt::format("{} has no flash attention kernels", device.name)};
    }
    if (!is_core && dispatch_lacks_hardware(job.plan, group.node)) {
      return program::Infeasible{
          "expert-dispatch",
          fmt::format("experts are reached by {}, which needs {}; {} has not. Give --expert-dispatch all_to_all",
                      name_of(program::stack_of(job.plan).expert_dispatch), rule_of(Capability::kTokenDispatch).needs,
                      group.node.name)};
    }
  }
  return std::nullopt;
}

}  // namespace trivium::simulator
