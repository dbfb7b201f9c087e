// One plan against its own run: the iteration, every op kind, every rank, memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calibration/replay.h"
#include "calibration/run_events.h"
#include "calibration/statistics.h"
#include "calibration/validate.h"
#include "edge/error.h"
#include "simulator/engine/costed_program.h"

namespace trivium::calibration {
namespace {

using ByStep = std::map<int, double>;  // seconds of one step

constexpr double kSecondsPerPs = 1e-12;

double measured_iteration(const program::RunRecord& record) {
  if (record.steps.empty()) {
    throw edge::Failure(edge::ErrorKind::kInput, "run record: it has no steps; nothing was measured");
  }
  std::vector<double> seconds;
  for (const program::StepRecord& step : record.steps) seconds.push_back(step.seconds);
  if (seconds.size() > 1) seconds.erase(seconds.begin());  // warms caches
  return median(std::move(seconds));
}

/// The cluster without waiting for late hosts, which measured events tell apart from the work.
hardware::Cluster punctual(hardware::Cluster cluster) {
  for (hardware::NodeGroup& group : cluster.groups) group.node.collective_skew = edge::Seconds(0);
  return cluster;
}

struct Work {
  std::map<std::string, double> by_kind;  ///< over all ranks
  std::map<int, double> by_rank;
};

/// Seconds of one step, transfers left out (see is_transfer).
Work predicted_work(const program::Program& program, const hardware::Cluster& cluster) {
  const simulator::CostedProgram costed = simulator::cost(program, punctual(cluster));
  Work work;
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    const program::Role& role = program.role_of(rank);
    const auto& times = costed.op_ps[static_cast<std::size_t>(role.stage)];
    for (const program::Task& task : role.tasks) {
      const program::Body& body = program.body_of(task);
      for (std::size_t i = 0; i < body.ops.size(); ++i) {
        if (is_transfer(body.ops[i])) continue;
        const double seconds = static_cast<double>(times[static_cast<std::size_t>(task.body)][i]) * kSecondsPerPs;
        work.by_kind[std::string(name_of(body.ops[i].kind))] += seconds;
        work.by_rank[rank] += seconds;
      }
    }
  }
  return work;
}

std::vector<Pair> pairs_of(const ByStep& measured, double predicted) {
  std::vector<Pair> pairs;
  for (const auto& [step, seconds] : measured) {
    if (seconds > 0) pairs.push_back({seconds, predicted});
  }
  return pairs;
}

std::vector<ValidationGroup> groups_of(const program::RunRecord& record, const program::Program& plan,
                                       const hardware::Cluster& cluster, bool same_program) {
  const program::Program recorded = program_of(record);
  std::map<std::string, ByStep> kinds;
  std::map<int, ByStep> ranks;
  for (const OpEvent& event : op_events(recorded, record)) {
    if (is_transfer(*event.op)) continue;
    kinds[std::string(name_of(event.op->kind))][event.step] += event.seconds;
    ranks[event.rank][event.step] += event.seconds;
  }
  const Work predicted = predicted_work(plan, cluster);
  std::vector<ValidationGroup> groups;
  for (const auto& [kind, by_step] : kinds) {
    const auto found = predicted.by_kind.find(kind);
    if (found == predicted.by_kind.end()) continue;  // only in the other Program
    groups.push_back(group_of("op", kind, pairs_of(by_step, found->second)));
  }
  if (!same_program) return groups;
  for (const auto& [rank, by_step] : ranks) {
    groups.push_back(group_of("rank", std::to_string(rank), pairs_of(by_step, predicted.by_rank.at(rank))));
  }
  return groups;
}

/// Arenas alone: what the profile reserves besides is not in a run's record.
double arena_bytes(const simulator::Simulation& simulation) {
  std::int64_t most = 0;
  for (const auto& stage : simulation.stages) most = std::max(most, stage.memory.total() - stage.memory.reserved);
  return static_cast<double>(most);
}

}  // namespace

Validation validate_run(const program::PlanFile& plan, const program::RunRecord& record,
                        const hardware::Cluster& cluster) {
  Validation result;
  ValidationRow row;
  row.case_name = fmt::format("{}, {}", plan.job.model.name, program::summary(plan.job.plan));
  row.source = fmt::format("{} run", record.backend);
  row.hardware = cluster.name;
  row.tier = std::string("A");
  row.measured_iteration_s = measured_iteration(record);
  if (!record.peak_memory_bytes.empty()) {
    row.measured_peak_bytes = static_cast<double>(*std::ranges::max_element(record.peak_memory_bytes));
  }
  auto replayed = replay(plan.job, cluster, simulator::Granularity::kOp);
  if (const auto* no = std::get_if<Unsupported>(&replayed)) {
    row.unsupported = no->reason;
    result.rows.push_back(std::move(row));
    return result;
  }
  const auto& [program, simulation] = std::get<Replayed>(replayed);
  // Hashes hold the order, which depends on the profile that ordered; what the events name does not.
  const bool same_program =
      program::hash_of(program) == record.program_hash ||
      program::hash_of(std::get<program::Program>(program::lower(plan.job))) == program::hash_of(program_of(record));
  if (!same_program) row.source += " of another Program: ops compared by kind alone";
  row.predicted_iteration_s = simulation.iteration_s;
  row.predicted_peak_bytes = arena_bytes(simulation);
  row.error = row.predicted_iteration_s / row.measured_iteration_s - 1;
  result.rows.push_back(std::move(row));
  if (!record.timeline.events.empty()) result.groups = groups_of(record, program, cluster, same_program);
  return result;
}

}  // namespace trivium::calibration
