#include "planner/bound/evaluate.h"

#include "program/schedules/schedule.h"
#include "simulator/cost/supported.h"
#include "simulator/predict/in_rounds.h"
#include "simulator/predict/predict.h"

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

}  // namespace

std::optional<Infeasible> out_of_memory(const program::Job& job, const hardware::Cluster& cluster) {
  const auto overflow = simulator::predict_overflow(job, cluster);
  return overflow ? overflow.value() : infeasible(overflow.error());
}

std::variant<std::int64_t, Infeasible> iteration(const program::Job& job, const hardware::Cluster& cluster, bool memory,
                                                 const std::stop_token& stop, simulator::TopologyCache* topologies) {
  const auto ps =
      simulator::predict_iteration_ps(job, cluster, {.fits = memory, .simulation = sharing(topologies)}, stop);
  if (stop.stop_requested()) return kStopped;
  if (!ps) return infeasible(ps.error());
  return ps.value();
}

std::variant<std::int64_t, Infeasible> quick_bound(const program::Job& job, const hardware::Cluster& cluster,
                                                   bool memory) {
  const bool relaxed = !list_schedule_bounds(job.plan);
  if (const auto rounds = simulator::rounds_to_simulate(job, cluster, simulator::kWorthwhileOnce)) {
    const auto counted = relaxed ? simulator::relaxed_makespan_in_rounds(job, cluster, memory)
                                 : simulator::list_schedule_makespan_in_rounds(job, cluster, memory);
    if (!counted) return infeasible(counted.error());
    if (counted.value()) return *counted.value();
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
  auto predicted = simulator::predict(job, cluster, {.fits = false, .simulation = sharing(topologies)}, stop);
  if (!predicted) return predicted.error();
  return std::move(predicted.value().simulation);
}

std::variant<simulator::Simulation, Infeasible> simulation_that_fits(const program::Job& job,
                                                                     const hardware::Cluster& cluster, bool memory,
                                                                     const std::stop_token& stop,
                                                                     simulator::TopologyCache* topologies,
                                                                     double most_spans) {
  simulator::SimulationOptions how = sharing(topologies);
  how.most_spans = most_spans;
  auto predicted = simulator::predict(job, cluster, {.fits = memory, .verified = false, .simulation = how}, stop);
  if (!predicted) return infeasible(predicted.error());
  return std::move(predicted.value().simulation);
}

}  // namespace trivium::planner
