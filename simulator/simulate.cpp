#include "simulator/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/seconds.h"
#include "program/lower/layout.h"
#include "simulator/cost/gemm.h"
#include "simulator/placed_cluster.h"
#include "simulator/played.h"

namespace trivium::simulator {
namespace {

using base::kSecondsPerPs;

// Nothing is kept of the play but its end.
base::Result<std::int64_t> makespan(const CostedProgram& costed, const hardware::Cluster& cluster,
                                    const SimulationOptions& options, const std::stop_token& stop) {
  const auto made = cast_for(costed, cluster, options);
  if (!made) return made.error();
  const auto replayed = replay(costed, made.value(), {}, Keep::kNothing, stop);
  if (!replayed) return replayed.error();
  return replayed.value().makespan_ps;
}

}  // namespace

base::Result<std::int64_t> iteration_ps(const program::Program& program, const hardware::Cluster& cluster,
                                        const std::stop_token& stop, Worlds* worlds) {
  if (stop.stop_requested()) return given_up();
  if (const auto no = unsupported_by(program.job, cluster)) return base::Error{base::ErrorKind::kUsage, no->reason};
  SimulationOptions options;
  options.worlds = worlds;
  return makespan(cost(program, cluster), cluster, options, stop);
}

std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster) {
  if (job.plan.ranks() > cluster.devices() && !shares_cores(job.plan, cluster)) {
    return program::Infeasible{
        "devices", fmt::format("the plan has {} ranks, the cluster {} devices", job.plan.ranks(), cluster.devices())};
  }
  if (auto no = misplaced(job.plan, cluster)) return no;
  int left = job.plan.ranks();  // ranks fill the nodes in order: those behind the last are free to be anything
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
    const program::Offload& offload = job.plan.offload;
    const std::array stores{offload.optimizer, offload.gradients, offload.activations};
    const bool to_disk = std::ranges::find(stores, program::Storage::kDisk) != stores.end();
    if (to_disk && group.node.disk.value() <= 0) {
      return program::Infeasible{"disk", fmt::format("the profile of {} has no disk to offload to", group.node.name)};
    }
    if (job.plan.attention == program::Attention::kFlash && !device.flash_attention) {
      return program::Infeasible{"flash-attention", fmt::format("{} has no flash attention kernels", device.name)};
    }
  }
  return std::nullopt;
}

double peak_flops(const program::Plan& plan, const hardware::Cluster& cluster) {
  double sum = 0;
  int devices = 0, left = plan.ranks();
  const PlacedCluster placed(plan, cluster);
  for (const auto& group : placed.get().groups) {
    const hardware::Device& device = group.node.device;
    const auto peak = device.peak.find(arithmetic_on(device, plan.precision));
    const int count = std::min(left, group.count * group.node.devices);  // ranks fill the nodes in order
    left -= count;
    if (peak != device.peak.end()) sum += peak->second.value() * count;
    devices += count;
  }
  return devices > 0 ? sum / devices : 0;
}

IterationFlops iteration_flops(const program::Job& job) {
  const models::FlopsPerToken per_token = models::flops_per_token(job.model, job.training.sequence);
  const double tokens = static_cast<double>(job.training.global_batch) * static_cast<double>(job.training.sequence);
  const std::vector<int> layers = program::chunk_layers(job);
  double extra = 0;  // of the recomputed layers, as a share of all
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto how = job.plan.stage_recompute.empty() ? job.plan.recompute : job.plan.stage_recompute[i];
    const double whole = how == program::Recompute::kFull        ? per_token.hardware_full
                         : how == program::Recompute::kSelective ? per_token.hardware_selective
                                                                 : per_token.model;
    extra += (whole - per_token.model) * layers[i] / static_cast<double>(job.model.layers);
  }
  return {per_token.model * tokens, (per_token.model + extra) * tokens};
}

base::Result<Simulation> simulate(const program::Program& program, const hardware::Cluster& cluster,
                                  const SimulationOptions& options, const std::stop_token& stop) {
  if (stop.stop_requested()) return given_up();
  if (const auto no = unsupported_by(program.job, cluster)) return base::Error{base::ErrorKind::kUsage, no->reason};
  if (auto wrong = unknown_rank(options.disturbance, program.mesh.size())) return *wrong;
  const CostedProgram costed = cost(program, cluster);
  base::Result<Played> outcome = play_it(costed, cluster, options, stop);
  if (!outcome) return outcome.error();
  Played& played = outcome.value();
  const bool shared = played.flows > 0;
  Simulation result = figures_of(program.job, program, cluster, std::move(played));
  const bool undisturbed = options.disturbance.none();
  if (options.unshared && options.shared_links && undisturbed && shared && !program.roles.front().order.empty()) {
    SimulationOptions apart = options;
    apart.shared_links = apart.every_rank = false;
    const auto unshared = makespan(costed, cluster, apart, stop);
    if (!unshared) return unshared.error();
    if (unshared.value() < result.iteration_ps) {
      result.unshared_s = static_cast<double>(unshared.value()) * kSecondsPerPs;
    }
  }
  return result;
}

}  // namespace trivium::simulator
