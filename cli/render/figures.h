// What a simulation says, as JSON and as a report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/seconds.h"
#include "cli/options/options.h"
#include "program/lower/lower.h"
#include "simulator/predict/simulate.h"
#include "simulator/studies/whole_training.h"

namespace trivium::cli {

using base::kSecondsPerPs;

/// The figures every result has: iteration_s, tokens_per_s, mfu and hfu with the peak they are shares of,
/// peak_memory_bytes, and how sure they are. `plan`: that was simulated.
nlohmann::json headline_json(const simulator::Simulation& simulation, const program::Plan& plan);

/// What a training costs, or that it is not known.
std::string price(const std::optional<double>& cost_usd);

/// "An iteration is expected to take 29.3 s (90 % of measurements: 27.1 s to 30.9 s). Simulated: 28.8 s, MFU 55.3 %,
/// 145,476 tokens/s." `plan`: that was simulated.
std::string expected_sentence(const simulator::Simulation& simulation, const program::Plan& plan);

/// Time, price and energy of the whole training in one sentence: "161.5 days (149.8 days to 170.5 days), …".
std::string training_sentence(const program::Job& job, const hardware::Cluster& cluster,
                              const simulator::WholeTraining& whole);

/// Time, energy and price of the whole training, and the source of the price.
std::string training_lines(const program::Job& job, const hardware::Cluster& cluster,
                           const simulator::WholeTraining& whole);
nlohmann::json training_json(const hardware::Cluster& cluster, const simulator::WholeTraining& whole);

/// Seconds of every part of an iteration, by name.
nlohmann::json breakdown_json(const simulator::Simulation& simulation);

/// Schema `trivium.simulation/1`. `hypothetical`: the plan does not fit.
nlohmann::json simulation_json(const JobRequest& request, const program::Program& program,
                               const simulator::Simulation& simulation, bool hypothetical);

/// The model's name, with what else, or what alone, is trained; the name in bold where a terminal reads it.
std::string model_heading(const program::Job& job);
/// The same without bold.
std::string model_words(const program::Job& job);

/// The same for people. `too_big`: why the plan does not fit, where it was simulated all the same.
std::string simulation_report(const JobRequest& request, const simulator::Simulation& simulation,
                              const std::optional<program::Infeasible>& too_big);

}  // namespace trivium::cli
