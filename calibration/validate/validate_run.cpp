// One plan against its own run: every step, op kind, lane and rank, waiting and memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/cancellation_point.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/run_events.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/validate.h"
#include "simulator/cost/costed_program.h"
#include "simulator/predict/predict.h"

namespace trivium::calibration {
namespace {

/// Time at work of one step, by what it is compared.
struct Work {
  std::map<std::string, double> by_kind, by_lane;  // over all ranks
  std::map<int, double> by_rank;
  std::map<std::pair<std::string, int>, double> by_both;  // kind, rank
  double waiting = 0;                                     // at collectives

  void add(const OpEvent& event) {
    const program::Op& op = *event.op;
    if (is_transfer(op)) return;
    const std::string kind(name_of(op.kind));
    by_kind[kind] += event.seconds;
    by_lane[std::string(name_of(op.lane))] += event.seconds;
    by_rank[event.rank] += event.seconds;
    by_both[{kind, event.rank}] += event.seconds;
    if (program::is_communication(op.kind)) waiting += event.wait;
  }
};

/// The simulated step of every rank: ranks of a stage do what the one that was simulated does, unless all were.
std::vector<program::Event> predicted_events(const program::Program& program, const simulator::Simulation& simulation,
                                             base::CancellationPoint& cancellation) {
  std::map<int, std::vector<program::Event>> simulated;
  for (const program::Event& event : simulation.timeline.events) {
    cancellation.step();
    simulated[event.rank].push_back(event);
  }
  std::vector<program::Event> all;
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    const int like = simulated.contains(rank) ? rank : program.representative(program.role_of(rank));
    for (program::Event event : simulated[like]) {
      cancellation.step();
      event.rank = rank;
      all.push_back(event);
    }
  }
  return all;
}

const program::Op& op_of(const program::Program& program, const program::Event& event) {
  const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
  return program.body_of(task).ops[static_cast<std::size_t>(event.op)];
}

/// Late hosts are part of a collective's predicted time, between cores also of a transfer's; measured, they are
/// waiting.
double late_hosts(const program::Program& program, const hardware::Cluster& cluster, const program::Op& op) {
  if (!program::is_communication(op.kind)) return 0;
  if (is_transfer(op) && cluster.groups.front().node.topology != hardware::Topology::kSharedMemory) return 0;
  const int ranks = is_transfer(op) ? 2 : program.mesh.group_size(op.group);
  double skew = 0;
  for (const hardware::NodeGroup& group : cluster.groups) skew = std::max(skew, group.node.collective_skew.value());
  return ranks > 1 ? skew * std::log2(static_cast<double>(ranks)) : 0;
}

Work predicted_work(const program::Program& program, const hardware::Cluster& cluster,
                    const std::vector<program::Event>& events, base::CancellationPoint& cancellation) {
  Work work;
  for (const program::Event& event : events) {
    cancellation.step();
    const program::Op& op = op_of(program, event);
    const double span = static_cast<double>(event.end_ps - event.start_ps) * kSecondsPerPs,
                 wait = static_cast<double>(event.wait_ps) * kSecondsPerPs,
                 late = std::min(late_hosts(program, cluster, op), span - wait);
    work.add({0, event.rank, &op, span - wait - late, wait + late, true, nullptr});
  }
  return work;
}

template <class Key>
std::vector<Pair> pairs_of(const std::map<int, Work>& steps, std::map<Key, double> Work::*part, const Key& key,
                           double predicted) {
  std::vector<Pair> pairs;
  for (const auto& [step, work] : steps) {
    const auto found = (work.*part).find(key);
    if (found != (work.*part).end() && found->second > 0) pairs.push_back({found->second, predicted});
  }
  return pairs;
}

/// Groups of one kind of key, the largest difference first.
template <class Key>
void add_groups(const char* by, const std::map<int, Work>& steps, const Work& predicted,
                std::map<Key, double> Work::*part, std::vector<ValidationGroup>& groups) {
  std::vector<ValidationGroup> found;
  for (const auto& [key, seconds] : predicted.*part) {
    const std::vector<Pair> pairs = pairs_of(steps, part, key, seconds);
    if (!pairs.empty()) found.push_back(group_of(by, fmt::format("{}", key), pairs));
  }
  std::stable_sort(found.begin(), found.end(), [](const ValidationGroup& a, const ValidationGroup& b) {
    return std::abs(a.predicted - a.measured) > std::abs(b.predicted - b.measured);
  });
  groups.insert(groups.end(), found.begin(), found.end());
}

std::vector<ValidationGroup> step_groups(const program::RunRecord& record, double predicted) {
  std::vector<ValidationGroup> groups;
  for (const program::StepRecord& step : record.steps) {
    if (step.step == 0 && record.steps.size() > 1) continue;  // warms caches
    const Pair pair{step.seconds, predicted};
    groups.push_back(group_of("step", std::to_string(step.step), std::span(&pair, 1)));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const ValidationGroup& a, const ValidationGroup& b) {
    return std::abs(a.bias) > std::abs(b.bias);
  });
  return groups;
}

void add_memory(const program::RunRecord& record, const program::Program& program,
                const simulator::Simulation& simulation, std::vector<ValidationGroup>& groups) {
  const auto ranks = std::min(record.peak_memory_bytes.size(), static_cast<std::size_t>(program.mesh.size()));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto role = static_cast<std::size_t>(program.role_index(static_cast<int>(rank)));
    const simulator::StageMemory& memory = simulation.stages[role].memory;
    const Pair pair{static_cast<double>(record.peak_memory_bytes[rank]),
                    static_cast<double>(memory.total() - memory.reserved)};
    if (pair.measured > 0) groups.push_back(group_of("memory", fmt::format("rank {}", rank), std::span(&pair, 1)));
  }
}

/// What is compared of one run whose Program is the plan's.
class RunComparison {
 public:
  RunComparison(const program::RunRecord& record, const program::Program& plan, const hardware::Cluster& cluster,
                const simulator::Simulation& simulation, const std::stop_token& stop)
      : record_(record),
        recorded_(program_of(record)),
        plan_(plan),
        cancellation_(stop),
        simulated_(predicted_events(plan, simulation, cancellation_)) {
    predicted_ = predicted_work(plan, cluster, simulated_, cancellation_);
    for (const OpEvent& event : op_events(recorded_, record, stop)) {
      cancellation_.step();
      steps_[event.step].add(event);
    }
  }

  void add_to(Validation& result, bool same_program) {
    add_groups("op", steps_, predicted_, &Work::by_kind, result.groups);
    if (!same_program) return;
    add_groups("lane", steps_, predicted_, &Work::by_lane, result.groups);
    add_groups("rank", steps_, predicted_, &Work::by_rank, result.groups);
    std::vector<Pair> waits;
    for (const auto& [step, work] : steps_) {
      if (work.waiting > 0) waits.push_back({work.waiting, predicted_.waiting});
    }
    if (!waits.empty()) result.groups.push_back(group_of("wait", "collectives", waits));
    for (const auto& [key, seconds] : predicted_.by_both) {
      const ValidationGroup mean = group_of("", "", pairs_of(steps_, &Work::by_both, key, seconds));
      if (mean.cases > 0) {
        result.points.push_back({fmt::format("{}, rank {}", key.first, key.second), mean.measured, seconds});
      }
    }
    result.timelines = timelines(result.rows.front().measured_iteration_s);
  }

 private:
  static void add_bar(std::vector<Bar>& bars, const program::Program& program, const program::Event& event) {
    const program::Op& op = op_of(program, event);
    if (is_transfer(op)) return;
    bars.push_back({event.rank, std::string(name_of(op.kind)),
                    static_cast<double>(event.start_ps + event.wait_ps) * kSecondsPerPs,
                    static_cast<double>(event.end_ps) * kSecondsPerPs});
  }

  TimelinePair timelines(double typical) {
    TimelinePair pair;
    double nearest = std::numeric_limits<double>::infinity();
    for (const program::StepRecord& step : record_.steps) {
      const auto id = static_cast<int>(step.step);
      if (!steps_.contains(id) || std::abs(step.seconds - typical) >= nearest) continue;
      nearest = std::abs(step.seconds - typical);
      pair.step = id;
    }
    for (const program::Event& event : simulated_) {
      cancellation_.step();
      add_bar(pair.predicted, plan_, event);
    }
    for (const program::Event& event : record_.timeline.events) {
      cancellation_.step();
      if (event.step == pair.step) add_bar(pair.measured, recorded_, event);
    }
    return pair;
  }

  const program::RunRecord& record_;
  program::Program recorded_;
  const program::Program& plan_;
  base::CancellationPoint cancellation_;
  std::vector<program::Event> simulated_;
  Work predicted_;
  std::map<int, Work> steps_;  // measured
};

/// Arenas alone: what the profile reserves in addition is not in a run's record.
double arena_bytes(const simulator::Simulation& simulation) {
  std::int64_t most = 0;
  for (const auto& stage : simulation.stages) most = std::max(most, stage.memory.total() - stage.memory.reserved);
  return static_cast<double>(most);
}

}  // namespace

Validation validate_run(const program::PlanFile& plan, const program::RunRecord& record,
                        const hardware::Cluster& cluster, const std::stop_token& stop) {
  const base::CancellationPoint cancellation(stop);
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
  const auto predicted = simulator::predict(
      plan.job, cluster, {.fits = false, .simulation = {simulator::Granularity::kOp, /*timeline=*/true}}, stop);
  cancellation.look();
  if (!predicted) {
    row.unsupported = predicted.error().message;
    result.rows.push_back(std::move(row));
    return result;
  }
  const simulator::Simulation& simulation = predicted.value().simulation;
  const program::Program& program = predicted.value().prepared.program();
  // Hashes hold the order, which depends on the profile that ordered; what the events name does not.
  const bool same_program =
      program::hash_of(program) == record.program_hash ||
      program::hash_of(std::get<program::Program>(program::lower(plan.job))) == program::hash_of(program_of(record));
  if (!same_program) row.source += " of another Program: ops compared by kind alone";
  cancellation.look();
  row.predicted_iteration_s = simulation.iteration_s;
  row.predicted_peak_bytes = arena_bytes(simulation);
  row.interval_s = simulation.certainty.iteration_s;
  row.error = row.predicted_iteration_s / row.measured_iteration_s - 1;
  result.rows.push_back(std::move(row));
  result.groups = step_groups(record, simulation.iteration_s);
  if (!record.timeline.events.empty()) {
    RunComparison(record, program, cluster, simulation, stop).add_to(result, same_program);
  }
  if (same_program) add_memory(record, program, simulation, result.groups);
  return result;
}

}  // namespace trivium::calibration
