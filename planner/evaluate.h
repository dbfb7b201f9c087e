// What a search asks about one plan: may it run, how fast is it, what exactly does it do.
#pragma once

#include <optional>
#include <stop_token>
#include <variant>

#include "planner/search.h"

namespace trivium::planner {

/// Why the plan cannot run on the cluster, memory apart; nothing where it can.
std::optional<program::Infeasible> refusal(const program::Job& job, const hardware::Cluster& cluster, int ranks);

/// Iteration in picoseconds, played by segments and not ordered: what plans are ranked by. `memory`: whether a plan
/// that does not fit is refused.
std::variant<std::int64_t, program::Infeasible> quick_iteration(const program::Job& job,
                                                                const hardware::Cluster& cluster, bool memory);

/// Figures of a plan at the price of ranking it: played by segments and not ordered. `memory`: as above.
std::variant<simulator::Simulation, program::Infeasible> quick_simulation(const program::Job& job,
                                                                          const hardware::Cluster& cluster,
                                                                          bool memory);

/// The figures that simulating the plan by itself gives: ordered, played op by op. Errors: as simulator::simulate;
/// kInterrupted where `stop` asked to give it up.
edge::Result<simulator::Simulation> full_simulation(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop = {});

}  // namespace trivium::planner
