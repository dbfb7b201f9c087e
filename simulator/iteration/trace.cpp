#include "simulator/iteration/trace.h"

#include <algorithm>
#include <limits>

#include "base/seconds.h"
#include "simulator/cost/flops.h"
#include "simulator/memory/crowding.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

using base::kSecondsPerPs;

bool is_ordered(const program::Program& program) {
  return std::none_of(program.roles.begin(), program.roles.end(),
                      [](const program::Role& role) { return role.order.empty(); });
}

/// Takes the spans of one rank after the other.
class BreakdownAccumulator {
 public:
  BreakdownAccumulator(const CostedProgram& costed, const SimulationOptions& options, bool in_turns)
      : costed_(costed), keeps_timeline_(options.timeline), of_every_rank_(options.every_rank || in_turns) {
    simulated_.sums.resize(costed.program->roles.size());
    simulated_.sampled.resize(costed.program->roles.size());
  }

  void add(const RankSpans& rank) {
    const program::Program& program = *costed_.program;
    const auto role = static_cast<std::size_t>(program.role_index(rank.rank));
    // Up to the last end of all: what a rank idles after its own is added when that is known.
    std::int64_t end = 0;
    for (const Span& span : rank.spans) end = std::max(end, span.end_ps);
    const Breakdown parts = break_down(program, program.roles[role], rank.spans, costed_.op_ps[role], end);
    const auto ranks = static_cast<long double>(rank.stands_for);
    for (std::size_t p = 0; p < kParts; ++p) simulated_.sums[role][p] += static_cast<long double>(parts[p]) * ranks;
    simulated_.sums[role][static_cast<std::size_t>(Part::kBubble)] -= static_cast<long double>(end) * ranks;
    simulated_.sampled[role] += rank.stands_for;
    if (!keeps_timeline_) return;
    if (!of_every_rank_ && rank.rank != program.representative(program.roles[role])) return;
    for (const Span& span : rank.spans) {
      simulated_.timeline.events.push_back(
          {0, rank.rank, span.task, span.op, span.lane, span.start_ps, span.end_ps, span.begin_ps - span.start_ps});
    }
  }

  SimulationTrace close(const Replay& replayed) {
    const std::int64_t makespan_ps = simulated_.makespan_ps = replayed.makespan_ps;
    simulated_.flows = replayed.flows;
    for (std::size_t role = 0; role < simulated_.sums.size(); ++role) {
      simulated_.sums[role][static_cast<std::size_t>(Part::kBubble)] +=
          static_cast<long double>(makespan_ps) * static_cast<long double>(simulated_.sampled[role]);
    }
    return std::move(simulated_);
  }

 private:
  const CostedProgram& costed_;
  bool keeps_timeline_, of_every_rank_;
  SimulationTrace simulated_;
};

// The representatives; every rank where the timeline shows it, or as many of each role, evenly, as are soon told.
std::vector<bool> ranks_to_sample(const program::Program& program, const ReplayProgram& compiled,
                                  const SimulationOptions& options) {
  const ReplayTopology& topology = compiled.topology;
  std::vector<bool> sampled(static_cast<std::size_t>(topology.actors()), true);
  if (options.every_rank && options.timeline) return sampled;
  double spans = 0;
  for (const std::int32_t role : topology.role) {
    for (const program::Task& task : program.roles[static_cast<std::size_t>(role)].tasks) {
      spans += static_cast<double>(program.body_of(task).ops.size());
    }
  }
  const auto ranks = topology.actors() / static_cast<std::int32_t>(program.roles.size());  // of a role, about
  const auto wanted = std::clamp(static_cast<std::int32_t>(ranks * options.most_spans / spans), 1, ranks);
  std::vector<std::int32_t> seen(program.roles.size(), 0);
  for (std::size_t p = 0; p < sampled.size(); ++p) {
    const std::int64_t at = seen[static_cast<std::size_t>(topology.role[p])]++;
    sampled[p] = at == 0 || at * wanted / ranks != (at - 1) * wanted / ranks;
  }
  return sampled;
}

// Which part of all ranks have the role.
double share_of_ranks(const program::Program& program, const program::Role& role) {
  const auto& kinds = program.replica_kinds;
  const double of_kind = kinds.empty()
                             ? 1
                             : static_cast<double>(std::count(kinds.begin(), kinds.end(), role.replica_kind)) /
                                   static_cast<double>(kinds.size());
  return of_kind / program.mesh.pipeline();
}

// The mean over the ranks sampled of, in whole picoseconds that add up to the iteration: the largest part takes what
// rounding leaves.
Breakdown mean(const Sums& sums, std::int64_t count, std::int64_t iteration_ps) {
  Breakdown parts{};
  std::int64_t left = iteration_ps;
  for (std::size_t p = 0; p < kParts; ++p) {
    left -= parts[p] = static_cast<std::int64_t>(sums[p] / static_cast<long double>(count));
  }
  *std::max_element(parts.begin(), parts.end()) += left;
  return parts;
}

}  // namespace

base::Result<ReplayProgram> replay_program_for(const CostedProgram& costed, const SimulationOptions& options) {
  const hardware::Cluster& cluster = costed.placed->given();
  if (shares_cores(*costed.program, cluster)) {
    return compile_replay(costed, {Granularity::kOp, Ranks::kEvery, false, cluster.devices()});
  }
  const Ranks ranks = options.every_rank ? Ranks::kEvery : Ranks::kFolded;
  return compile_replay(costed, {options.granularity, ranks, options.shared_links}, options.topologies);
}

base::Result<SimulationTrace> trace_of(const CostedProgram& costed, const SimulationOptions& options,
                                       const std::stop_token& stop, const Listener& also) {
  const program::Program& program = *costed.program;
  BreakdownAccumulator accumulator(costed, options, shares_cores(program, costed.placed->given()));
  if (is_ordered(program)) {
    const auto made = replay_program_for(costed, options);
    if (!made) return made.error();
    const Variation variation = variation_of(options.disturbance, made.value().topology, options.seed);
    const auto replayed = replay(
        costed, made.value(), variation, ranks_to_sample(program, made.value(), options),
        [&](const RankSpans& rank) {
          accumulator.add(rank);
          if (also) also(rank);
        },
        stop);
    if (!replayed) return replayed.error();
    return accumulator.close(replayed.value());
  }
  base::Result<ListSchedule> schedule_of_stages = list_schedule(costed, options.granularity, stop);
  if (!schedule_of_stages) return schedule_of_stages.error();
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    accumulator.add(
        {program.representative(program.roles[role]), 1, std::move(schedule_of_stages.value().stages[role])});
  }
  Replay all;
  all.makespan_ps = schedule_of_stages.value().makespan_ps;
  return accumulator.close(all);
}

Simulation figures_of(const program::Job& job, const program::Program& program, const std::vector<StageMemory>& memory,
                      const hardware::Cluster& cluster, SimulationTrace trace) {
  Simulation result;
  double room = std::numeric_limits<double>::infinity();
  result.iteration_ps = iteration_of_makespan(trace.makespan_ps, program, memory);
  result.iteration_s = static_cast<double>(result.iteration_ps) * kSecondsPerPs;
  for (std::size_t i = 0; i < program.roles.size(); ++i) {
    const program::Role& role = program.roles[i];
    StageResult part;
    part.stage = role.stage;
    part.breakdown = mean(trace.sums[i], trace.sampled[i], trace.makespan_ps);
    part.breakdown[static_cast<std::size_t>(Part::kOther)] += result.iteration_ps - trace.makespan_ps;
    part.memory = memory[i];
    result.peak_memory_bytes = std::max(result.peak_memory_bytes, part.memory.total());
    room = std::min(room, static_cast<double>(part.memory.capacity) / static_cast<double>(part.memory.total()));
    const double ranks = share_of_ranks(program, role);
    for (std::size_t p = 0; p < kParts; ++p) {
      result.breakdown_s[p] += static_cast<double>(part.breakdown[p]) * kSecondsPerPs * ranks;
    }
    result.stages.push_back(part);
  }
  const IterationFlops flops = iteration_flops(job);
  const double device_seconds = result.iteration_s * std::min(program.mesh.size(), cluster.devices());
  const double peak = peak_flops(job.plan, cluster);
  result.model_flops_per_s_per_device = flops.model / device_seconds;
  result.hardware_flops_per_s_per_device = flops.hardware / device_seconds;
  result.mfu = result.model_flops_per_s_per_device / peak;
  result.hfu = result.hardware_flops_per_s_per_device / peak;
  result.tokens_per_s = static_cast<double>(job.training.global_batch * job.training.sequence) / result.iteration_s;
  result.timeline = std::move(trace.timeline);
  const auto peak_bytes = static_cast<double>(result.peak_memory_bytes);
  const auto share = [&](std::initializer_list<Part> parts) {
    double sum = 0;
    for (const Part part : parts) sum += result.breakdown_s[static_cast<std::size_t>(part)];
    return sum / result.iteration_s;
  };
  const double exposed = share({Part::kExposedTensor, Part::kExposedContext, Part::kExposedExpert, Part::kExposedData,
                                Part::kExposedPipeline, Part::kExposedOffload});
  result.certainty =
      certainty_of(job, cluster, {result.iteration_s, result.mfu, peak_bytes, room, exposed, share({Part::kBubble})});
  return result;
}

}  // namespace trivium::simulator
