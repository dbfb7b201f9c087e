#include "simulator/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/layout.h"
#include "simulator/placed_cluster.h"
#include "simulator/replay/replay.h"

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

program::Timeline timeline_of(const std::vector<RankSpans>& ranks) {
  program::Timeline timeline;
  for (const RankSpans& rank : ranks) {
    for (const Span& span : rank.spans) {
      timeline.events.push_back(
          {0, rank.rank, span.task, span.op, span.lane, span.start_ps, span.end_ps, span.begin_ps - span.start_ps});
    }
  }
  return timeline;
}

// An ordered program is replayed; one without an order is played in the order of readiness, one rank for every stage.
edge::Result<Replay> played(const CostedProgram& costed, const hardware::Cluster& cluster,
                            const SimulationOptions& options) {
  const program::Program& program = *costed.program;
  const bool ordered = std::none_of(program.roles.begin(), program.roles.end(),
                                    [](const program::Role& role) { return role.order.empty(); });
  if (ordered) {
    const CastOptions how{options.granularity, options.every_rank ? Ranks::kEvery : Ranks::kFolded, options.every_rank};
    const auto made = cast(costed, cluster, how);
    if (!made) return made.error();
    const Variation variation = variation_of(options.disturbance, made.value().world, options.seed);
    const bool all = options.every_rank && options.timeline;
    return replay(costed, made.value(), variation, all ? Keep::kEverything : Keep::kRepresentatives);
  }
  edge::Result<Play> play_of_stages = play(costed, options.granularity);
  if (!play_of_stages) return play_of_stages.error();
  Replay result;
  result.makespan_ps = play_of_stages.value().makespan_ps;
  for (std::size_t stage = 0; stage < program.roles.size(); ++stage) {
    result.ranks.push_back(
        {representative(program, static_cast<int>(stage)), std::move(play_of_stages.value().stages[stage])});
  }
  return result;
}

const std::vector<Span>& spans_of_stage(const Replay& replay, const program::Program& program, int stage) {
  const int rank = representative(program, stage);
  const auto found = std::find_if(replay.ranks.begin(), replay.ranks.end(),
                                  [&](const RankSpans& spans) { return spans.rank == rank; });
  return found->spans;
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
    const program::Offload& offload = job.plan.offload;
    const bool to_disk = offload.optimizer == program::Storage::kDisk || offload.activations == program::Storage::kDisk;
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
  if (auto wrong = unknown_rank(options.disturbance, program.mesh.size())) return *wrong;
  const CostedProgram costed = cost(program, cluster);
  const edge::Result<Replay> replayed = played(costed, cluster, options);
  if (!replayed) return replayed.error();
  Simulation result;
  result.iteration_ps = replayed.value().makespan_ps;
  result.iteration_s = static_cast<double>(result.iteration_ps) * kSecondsPerPs;
  const std::vector<StageMemory> memory = memory_of(program, cluster);
  for (const program::Role& role : program.roles) {
    const auto stage = static_cast<std::size_t>(role.stage);
    StageResult part;
    part.stage = role.stage;
    part.breakdown = break_down(program, role, spans_of_stage(replayed.value(), program, role.stage),
                                costed.op_ps[stage], result.iteration_ps);
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
  if (options.timeline) result.timeline = timeline_of(replayed.value().ranks);
  return result;
}

}  // namespace trivium::simulator
