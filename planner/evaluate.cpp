#include "planner/evaluate.h"

#include "simulator/stoppable.h"

namespace trivium::planner {

using program::Infeasible;

namespace {

constexpr const char* kSimulationRule = "simulation";

}  // namespace

std::optional<Infeasible> refusal(const program::Job& job, const hardware::Cluster& cluster, int ranks) {
  const auto verdict = program::check(job, ranks);
  if (const auto* no = std::get_if<Infeasible>(&verdict)) return *no;
  return simulator::unsupported_by(job, cluster);
}

namespace {

simulator::SimulationOptions sharing(simulator::Worlds* worlds) {
  simulator::SimulationOptions options;
  options.worlds = worlds;
  return options;
}

// The Program that is simulated, or why there is none.
std::variant<program::Program, Infeasible> ordered(const program::Job& job, const hardware::Cluster& cluster,
                                                   bool memory, const std::stop_token& stop) {
  auto lowered = program::lower(job);
  if (auto* no = std::get_if<Infeasible>(&lowered)) return std::move(*no);
  auto& program = std::get<program::Program>(lowered);
  if (memory) {
    if (auto no = simulator::out_of_memory(simulator::memory_of(program, cluster))) return std::move(*no);
  }
  auto in_order = simulator::order(std::move(program), cluster, stop);
  if (!in_order) return Infeasible{kSimulationRule, in_order.error().message};
  return std::move(in_order).value();
}

}  // namespace

std::variant<std::int64_t, Infeasible> iteration(const program::Job& job, const hardware::Cluster& cluster, bool memory,
                                                 const std::stop_token& stop, simulator::Worlds* worlds) {
  auto program = ordered(job, cluster, memory, stop);
  if (stop.stop_requested()) return kStopped;
  if (auto* no = std::get_if<Infeasible>(&program)) return std::move(*no);
  const auto ps = simulator::iteration_ps(std::get<program::Program>(program), cluster, stop, worlds);
  if (stop.stop_requested()) return kStopped;
  if (!ps) return Infeasible{kSimulationRule, ps.error().message};
  return ps.value();
}

std::variant<std::int64_t, Infeasible> quick_bound(const program::Job& job, const hardware::Cluster& cluster,
                                                   bool memory) {
  const auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return *no;
  const auto& program = std::get<program::Program>(lowered);
  if (memory) {
    if (auto no = simulator::out_of_memory(simulator::memory_of(program, cluster))) return *no;
  }
  const auto played = simulator::play_makespan(simulator::cost(program, cluster));
  if (!played) return Infeasible{kSimulationRule, played.error().message};
  return played.value();
}

edge::Result<simulator::Simulation> full_simulation(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop, simulator::Worlds* worlds) {
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return edge::Error{edge::ErrorKind::kNoPlan, no->reason};
  const auto in_order = simulator::order(std::get<program::Program>(std::move(lowered)), cluster, stop);
  if (!in_order) return in_order.error();
  return simulator::simulate(in_order.value(), cluster, sharing(worlds), stop);
}

std::variant<simulator::Simulation, Infeasible> simulation_that_fits(const program::Job& job,
                                                                     const hardware::Cluster& cluster, bool memory,
                                                                     const std::stop_token& stop,
                                                                     simulator::Worlds* worlds) {
  auto program = ordered(job, cluster, memory, stop);
  if (auto* no = std::get_if<Infeasible>(&program)) return std::move(*no);
  auto simulated = simulator::simulate(std::get<program::Program>(program), cluster, sharing(worlds), stop);
  if (!simulated) return Infeasible{kSimulationRule, simulated.error().message};
  return std::move(simulated).value();
}

}  // namespace trivium::planner
