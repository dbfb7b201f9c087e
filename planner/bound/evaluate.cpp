#include "planner/bound/evaluate.h"

#include "simulator/in_rounds.h"
#include "simulator/stoppable.h"

namespace trivium::planner {

using program::Infeasible;

namespace {

constexpr const char* kSimulationRule = "simulation";
constexpr std::int64_t kMostPlayed = 2048;  // micro-batches that are played by segments before all of them are

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

// As many micro-batches as there may be take the memory of as many as can be under way.
std::optional<Infeasible> out_of_memory(const program::Job& job, const hardware::Cluster& cluster,
                                        const simulator::SteadyState& rounds) {
  const auto lowered = program::lower(simulator::with_micro_batches(job, rounds.enough()));
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return *no;
  return simulator::out_of_memory(simulator::memory_of(std::get<program::Program>(lowered), cluster));
}

std::optional<std::variant<simulator::Simulation, Infeasible>> in_rounds(const program::Job& job,
                                                                         const hardware::Cluster& cluster, bool memory,
                                                                         const std::stop_token& stop,
                                                                         simulator::Worlds* worlds) {
  const auto rounds = simulator::rounds_to_play(job, cluster);
  if (!rounds) return std::nullopt;
  if (memory) {
    if (auto no = out_of_memory(job, cluster, *rounds)) return std::move(*no);
  }
  auto counted = simulator::simulate_in_rounds(job, cluster, sharing(worlds), stop);
  if (!counted) return Infeasible{kSimulationRule, counted.error().message};
  if (!counted.value()) return std::nullopt;
  return *std::move(counted).value();
}

}  // namespace

std::variant<std::int64_t, Infeasible> iteration(const program::Job& job, const hardware::Cluster& cluster, bool memory,
                                                 const std::stop_token& stop, simulator::Worlds* worlds) {
  if (simulator::rounds_to_play(job, cluster)) {
    auto counted = simulation_that_fits(job, cluster, memory, stop, worlds);
    if (stop.stop_requested()) return kStopped;
    if (auto* no = std::get_if<Infeasible>(&counted)) return std::move(*no);
    return std::get<simulator::Simulation>(counted).iteration_ps;
  }
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
  if (const auto rounds = simulator::rounds_to_play(job, cluster)) {
    if (memory) {
      if (auto no = out_of_memory(job, cluster, *rounds)) return std::move(*no);
    }
    if (const auto counted = simulator::play_makespan_in_rounds(job, cluster)) return *counted;
    if (rounds->micro_batches > kMostPlayed) return 0;
  }
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

base::Result<simulator::Simulation> full_simulation(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop, simulator::Worlds* worlds) {
  auto counted = simulator::simulate_in_rounds(job, cluster, sharing(worlds), stop);
  if (!counted) return counted.error();
  if (counted.value()) return *std::move(counted).value();
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return base::Error{base::ErrorKind::kNoPlan, no->reason};
  const auto in_order = simulator::order(std::get<program::Program>(std::move(lowered)), cluster, stop);
  if (!in_order) return in_order.error();
  return simulator::simulate(in_order.value(), cluster, sharing(worlds), stop);
}

std::variant<simulator::Simulation, Infeasible> simulation_that_fits(const program::Job& job,
                                                                     const hardware::Cluster& cluster, bool memory,
                                                                     const std::stop_token& stop,
                                                                     simulator::Worlds* worlds) {
  if (auto counted = in_rounds(job, cluster, memory, stop, worlds)) return *std::move(counted);
  auto program = ordered(job, cluster, memory, stop);
  if (auto* no = std::get_if<Infeasible>(&program)) return std::move(*no);
  auto simulated = simulator::simulate(std::get<program::Program>(program), cluster, sharing(worlds), stop);
  if (!simulated) return Infeasible{kSimulationRule, simulated.error().message};
  return std::move(simulated).value();
}

}  // namespace trivium::planner
