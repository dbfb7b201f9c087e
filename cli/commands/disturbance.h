// Options of `simulate` for what is not nominal: jitter, slow devices and links, and how sure that leaves one.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/predict/simulate.h"
#include "simulator/studies/uncertainty.h"

namespace trivium::cli {

struct DisturbanceOptions {
  std::string jitter;
  std::vector<std::string> slow_devices, slow_links;
  int samples = 50;
  bool every_rank = false;
};

void add_disturbance_options(CLI::App& command, DisturbanceOptions& options);

/// What the options mean. Errors: Failure(kUsage) for text that is no share or no RANK=FACTOR.
simulator::Disturbance disturbance_of(const DisturbanceOptions& options);

/// Whether every rank has to be simulated.
bool simulates_every_rank(const DisturbanceOptions& options);

/// The object `uncertainty` of a `trivium.simulation/1`.
nlohmann::json uncertainty_json(const simulator::Disturbance& disturbance, const simulator::Uncertainty& uncertainty,
                                std::uint64_t seed);

/// The same for people: one line.
std::string uncertainty_line(const simulator::Disturbance& disturbance, const simulator::Uncertainty& uncertainty,
                             std::uint64_t seed);

}  // namespace trivium::cli
