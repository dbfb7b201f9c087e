#include "planner/bound/evaluate.h"

#include "program/schedules/schedule.h"
#include "simulator/cost/supported.h"
#include "simulator/iteration/in_rounds.h"
#include "simulator/prepare.h"
#include "simulator/simulate.h"

namespace trivium::planner {

using program::Infeasible;

namespace {

constexpr const char* kSimulationRule = "simulation";
constexpr std::int64_t kMostListScheduled = 2048;  // micro-batches that are list-scheduled before all of them are

}  // namespace

std::optional<Infeasible> refusal(const program::Job& job, const hardware::Cluster& cluster, int ranks) {
  if (const auto no = program::check(job, ranks)) return *no;
  return simulator::unsupported_by(job, cluster);
}

namespace {

simulator::SimulationOptions sharing(simulator::TopologyCache* topologies) {
  simulator::SimulationOptions options;
  options.topologies = topologies;
  return options;
}

// Why there is no Program to simulate.
Infeasible infeasible(const base::Error& error) {
  return {error.kind == base::ErrorKind::kNoPlan ? error.rule : kSimulationRule, error.message};
}

// The Program that is simulated.
base::Result<simulator::Prepared> prepared_to_rank(const program::Job& job, const hardware::Cluster& cluster,
                                                   bool memory, const std::stop_token& stop) {
  return simulator::prepare(job, cluster, {.fits = memory, .verified = false}, stop);
}

// As many micro-batches as there may be take the memory of as many as can be under way.
std::optional<Infeasible> out_of_memory(const program::Job& job, const hardware::Cluster& cluster,
                                        const simulator::SteadyState& rounds) {
  const auto lowered = program::lower(simulator::with_micro_batches(job, rounds.enough()));
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return *no;
  return simulator::out_of_memory(simulator::memory_of(std::get<program::Program>(lowered), cluster));
}

}  // namespace

std::optional<Infeasible> out_of_memory(const program::Job& job, const hardware::Cluster& cluster) {
  if (const auto rounds = simulator::rounds_to_simulate(job, cluster)) return out_of_memory(job, cluster, *rounds);
  const auto lowered = program::lower(job);
  if (const auto* no = std::get_if<Infeasible>(&lowered)) return *no;
  return simulator::out_of_memory(simulator::memory_of(std::get<program::Program>(lowered), cluster));
}

namespace {

std::optional<std::variant<simulator::Simulation, Infeasible>> in_rounds(const program::Job& job,
                                                                         const hardware::Cluster& cluster, bool memory,
                                                                         const std::stop_token& stop,
                                                                         simulator::TopologyCache* topologies) {
  const auto rounds = simulator::rounds_to_simulate(job, cluster);
  if (!rounds) return std::nullopt;
  if (memory) {
    if (auto no = out_of_memory(job, cluster, *rounds)) return std::move(*no);
  }
  auto counted = simulator::simulate_in_rounds(job, cluster, sharing(topologies), stop);
  if (!counted) return Infeasible{kSimulationRule, counted.error().message};
  if (!counted.value()) return std::nullopt;
  return *std::move(counted).value();
}

}  // namespace

std::variant<std::int64_t, Infeasible> iteration(const program::Job& job, const hardware::Cluster& cluster, bool memory,
                                                 const std::stop_token& stop, simulator::TopologyCache* topologies) {
  if (const auto rounds = simulator::rounds_to_simulate(job, cluster, simulator::kWorthwhileOnce)) {
    if (memory) {
      if (auto no = out_of_memory(job, cluster, *rounds)) return std::move(*no);
    }
    const auto counted = simulator::iteration_in_rounds(job, cluster, sharing(topologies), stop);
    if (stop.stop_requested()) return kStopped;
    if (!counted) return Infeasible{kSimulationRule, counted.error().message};
    if (counted.value()) return *counted.value();
  }
  const auto prepared = prepared_to_rank(job, cluster, memory, stop);
  if (stop.stop_requested()) return kStopped;
  if (!prepared) return infeasible(prepared.error());
  const auto ps = simulator::iteration_ps(prepared.value(), stop, topologies);
  if (stop.stop_requested()) return kStopped;
  if (!ps) return Infeasible{kSimulationRule, ps.error().message};
  return ps.value();
}

std::variant<std::int64_t, Infeasible> quick_bound(const program::Job& job, const hardware::Cluster& cluster,
                                                   bool memory) {
  const bool relaxed = !list_schedule_bounds(job.plan);
  if (const auto rounds = simulator::rounds_to_simulate(job, cluster, simulator::kWorthwhileOnce)) {
    if (memory) {
      if (auto no = out_of_memory(job, cluster, *rounds)) return std::move(*no);
    }
    const auto counted = relaxed ? simulator::relaxed_makespan_in_rounds(job, cluster)
                                 : simulator::list_schedule_makespan_in_rounds(job, cluster);
    if (counted) return *counted;
    if (rounds->micro_batches > kMostListScheduled) return 0;
  }
  const auto prepared = simulator::prepare(job, cluster, {.fits = memory, .ordered = relaxed, .verified = false});
  if (!prepared) return infeasible(prepared.error());
  const auto simulated = relaxed ? simulator::relaxed_makespan(prepared.value().costed())
                                 : simulator::list_schedule_makespan(prepared.value().costed());
  if (!simulated) return Infeasible{kSimulationRule, simulated.error().message};
  return simulated.value();
}

bool list_schedule_bounds(const program::Plan& plan) {
  return !program::traits_of(plan.schedule).splits_backward && !plan.overlap.expert;
}

base::Result<simulator::Simulation> full_simulation(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop, simulator::TopologyCache* topologies) {
  auto counted = simulator::simulate_in_rounds(job, cluster, sharing(topologies), stop);
  if (!counted) return counted.error();
  if (counted.value()) return *std::move(counted).value();
  const auto prepared = simulator::prepare(job, cluster, {.fits = false}, stop);
  if (!prepared) return prepared.error();
  return simulator::simulate(prepared.value(), sharing(topologies), stop);
}

std::variant<simulator::Simulation, Infeasible> simulation_that_fits(const program::Job& job,
                                                                     const hardware::Cluster& cluster, bool memory,
                                                                     const std::stop_token& stop,
                                                                     simulator::TopologyCache* topologies,
                                                                     double most_spans) {
  if (auto counted = in_rounds(job, cluster, memory, stop, topologies)) return *std::move(counted);
  const auto prepared = prepared_to_rank(job, cluster, memory, stop);
  if (!prepared) return infeasible(prepared.error());
  simulator::SimulationOptions options = sharing(topologies);
  options.most_spans = most_spans;
  auto simulated = simulator::simulate(prepared.value(), options, stop);
  if (!simulated) return Infeasible{kSimulationRule, simulated.error().message};
  return std::move(simulated).value();
}

}  // namespace trivium::planner
