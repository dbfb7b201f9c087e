// What a search asks about one plan: may it run, how fast is it, what exactly does it do.
#pragma once

#include <optional>
#include <stop_token>
#include <variant>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"
#include "simulator/predict/predict.h"

namespace trivium::planner {

/// Why the plan cannot run on the cluster, memory apart; nothing where it can.
std::optional<program::Infeasible> refusal(const program::Job& job, const hardware::Cluster& cluster, int ranks);

/// The iteration that simulator::predict() finds (ps), by which plans are ranked. `memory`: whether a plan that does
/// not fit is refused. kStopped where `stop` was requested. `topologies`: of the cluster, what simulations leave for
/// each other.
inline constexpr std::int64_t kStopped = -1;
std::variant<std::int64_t, program::Infeasible> iteration(const program::Job& job, const hardware::Cluster& cluster,
                                                          bool memory, const std::stop_token& stop = {},
                                                          simulator::TopologyCache* topologies = nullptr);

/// Why the plan does not fit, without simulating it; nothing where it does. `usable` of the devices counts.
std::optional<program::Infeasible> out_of_memory(const program::Job& job, const hardware::Cluster& cluster);

/// A bound on that, several times as quick: the plan by segments, each communication with its links to itself, in the
/// order in which its work becomes ready (ps). The plan is simulated in that very order, where nothing gets shorter: op
/// by op segments take the same, and links that are shared only longer. Where list_schedule_bounds() does not hold,
/// that order again with segments relaxed to what keeps one lane (simulator::relaxed_makespan), whose ops op by op run
/// there one after the other as well. 0 of thousands of micro-batches that do not repeat themselves.
std::variant<std::int64_t, program::Infeasible> quick_bound(const program::Job& job, const hardware::Cluster& cluster,
                                                            bool memory);

/// Whether the makespan by segments is a bound of the plan. It is not where, op by op, kernels of a segment run before
/// the previous segment has ended: weight gradients of split backwards do, and those of experts whose exchanges overlap
/// with another pass, as they start during a tensor collective at the end of the previous segment.
bool list_schedule_bounds(const program::Plan& plan);

/// All figures of the same, of a verified Program. Errors: as simulator::predict().
base::Result<simulator::Simulation> full_simulation(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop = {},
                                                    simulator::TopologyCache* topologies = nullptr);

/// The same of a plan that need not fit: why it does not, where `memory` asks. `most_spans`: of the breakdown.
std::variant<simulator::Simulation, program::Infeasible> simulation_that_fits(
    const program::Job& job, const hardware::Cluster& cluster, bool memory, const std::stop_token& stop = {},
    simulator::TopologyCache* topologies = nullptr, double most_spans = simulator::SimulationOptions::kMostSpans);

}  // namespace trivium::planner
