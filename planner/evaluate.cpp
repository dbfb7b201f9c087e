#include "planner/evaluate.h"

#include "simulator/stoppable.h"

namespace trivium::planner {

using program::Infeasible;

std::optional<Infeasible> refusal(const program::Job& job, const hardware::Cluster& cluster, int ranks) {
  const auto verdict = program::check(job, ranks);
  if (const auto* no = std::get_if<Infeasible>(&verdict)) return *no;
  return simulator::unsupported_by(job, cluster);
}

std::variant<std::int64_t, Infeasible> quick_iteration(const program::Job& job, const hardware::Cluster& cluster,
                                                       bool memory) {
  const auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return *no;
  const auto& program = std::get<program::Program>(lowered);
  if (memory) {
    if (auto no = simulator::out_of_memory(simulator::memory_of(program, cluster))) return *no;
  }
  const auto played = simulator::play_makespan(simulator::cost(program, cluster));
  if (!played) return Infeasible{"simulation", played.error().message};
  return played.value();
}

std::variant<simulator::Simulation, Infeasible> quick_simulation(const program::Job& job,
                                                                 const hardware::Cluster& cluster, bool memory) {
  const auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return *no;
  const auto& program = std::get<program::Program>(lowered);
  if (memory) {
    if (auto no = simulator::out_of_memory(simulator::memory_of(program, cluster))) return *no;
  }
  auto simulated = simulator::simulate(program, cluster, {simulator::Granularity::kSegment, false});
  if (!simulated) return Infeasible{"simulation", simulated.error().message};
  return std::move(simulated).value();
}

edge::Result<simulator::Simulation> full_simulation(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop) {
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return edge::Error{edge::ErrorKind::kNoPlan, no->reason};
  const auto ordered = simulator::order(std::get<program::Program>(std::move(lowered)), cluster, stop);
  if (!ordered) return ordered.error();
  return simulator::simulate(ordered.value(), cluster, {simulator::Granularity::kOp, false}, stop);
}

}  // namespace trivium::planner
