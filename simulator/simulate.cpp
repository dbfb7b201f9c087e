#include "simulator/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/layout.h"
#include "simulator/placed_cluster.h"

namespace trivium::simulator {
namespace {

constexpr double kSecondsPerPs = 1e-12;

hardware::Arithmetic arithmetic_of(program::DType type) {
  switch (type) {
    case program::DType::kFp64:
      return hardware::Arithmetic::kFp64;
    case program::DType::kBf16:
      return hardware::Arithmetic::kBf16;
    case program::DType::kFp16:
      return hardware::Arithmetic::kFp16;
    default:
      return hardware::Arithmetic::kFp32;
  }
}

program::Timeline timeline_of(const program::Program& program, const Play& play) {
  program::Timeline timeline;
  for (std::size_t stage = 0; stage < play.stages.size(); ++stage) {
    const int rank = representative(program, static_cast<int>(stage));
    for (const Span& span : play.stages[stage]) {
      timeline.events.push_back(
          {0, rank, span.task, span.op, span.lane, span.start_ps, span.end_ps, span.begin_ps - span.start_ps});
    }
  }
  return timeline;
}

}  // namespace

std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster) {
  if (job.plan.ranks() > cluster.devices()) {
    return program::Infeasible{
        "devices", fmt::format("the plan has {} ranks, the cluster {} devices", job.plan.ranks(), cluster.devices())};
  }
  if (auto no = misplaced(job.plan, cluster)) return no;
  const PlacedCluster placed(job.plan, cluster);
  int left = job.plan.ranks();  // ranks fill the nodes in order: those behind the last are free to be anything
  for (const auto& group : placed.get().groups) {
    if (left <= 0) break;
    left -= group.count * group.node.devices;
    const hardware::Device& device = group.node.device;
    if (!device.peak.contains(arithmetic_of(job.plan.precision))) {
      return program::Infeasible{"precision",
                                 fmt::format("{} has no {} arithmetic", device.name, name_of(job.plan.precision))};
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
    const auto peak = group.node.device.peak.find(arithmetic_of(plan.precision));
    const int count = std::min(left, group.count * group.node.devices);  // ranks fill the nodes in order
    left -= count;
    if (peak != group.node.device.peak.end()) sum += peak->second.value() * count;
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

edge::Result<Simulation> simulate(const program::Program& program, const hardware::Cluster& cluster,
                                  const SimulationOptions& options) {
  if (const auto no = unsupported_by(program.job, cluster)) return edge::Error{edge::ErrorKind::kUsage, no->reason};
  const CostedProgram costed = cost(program, cluster);
  const edge::Result<Play> played = play(costed, options.granularity);
  if (!played) return played.error();
  Simulation result;
  result.iteration_ps = played.value().makespan_ps;
  result.iteration_s = static_cast<double>(result.iteration_ps) * kSecondsPerPs;
  const std::vector<StageMemory> memory = memory_of(program, cluster);
  for (const program::Role& role : program.roles) {
    const auto stage = static_cast<std::size_t>(role.stage);
    StageResult part;
    part.stage = role.stage;
    part.breakdown = break_down(program, role, played.value().stages[stage], costed.op_ps[stage], result.iteration_ps);
    part.memory = memory[stage];
    result.peak_memory_bytes = std::max(result.peak_memory_bytes, part.memory.total());
    for (std::size_t p = 0; p < kParts; ++p) {
      result.breakdown_s[p] +=
          static_cast<double>(part.breakdown[p]) * kSecondsPerPs / static_cast<double>(program.roles.size());
    }
    result.stages.push_back(part);
  }
  const IterationFlops flops = iteration_flops(program.job);
  const double device_seconds = result.iteration_s * program.mesh.size();
  const double peak = peak_flops(program.job.plan, cluster);
  result.model_flops_per_s_per_device = flops.model / device_seconds;
  result.hardware_flops_per_s_per_device = flops.hardware / device_seconds;
  result.mfu = result.model_flops_per_s_per_device / peak;
  result.hfu = result.hardware_flops_per_s_per_device / peak;
  result.tokens_per_s =
      static_cast<double>(program.job.training.global_batch * program.job.training.sequence) / result.iteration_s;
  if (options.timeline) result.timeline = timeline_of(program, played.value());
  return result;
}

}  // namespace trivium::simulator
