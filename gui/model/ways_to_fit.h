// What would make a plan fit that does not: one thing changed at a time.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/evaluation.h"

namespace trivium::gui {

/// A job that differs little and fits.
struct WayToFit {
  std::string words;  ///< "without recompute=none: recompute=full", "on 12 nodes"
  Scenario scenario;
  double iteration_s = 0;
  std::int64_t peak_bytes = 0;
};

/// One field of the plan left open, one value that no search opens, the next batch, more devices
/// (planner/advice/relax.h) with the rest of the plan as it is; replicas follow the devices. The fastest first, more
/// nodes last; at most `most`. None where `stop` came first. Precondition: the evaluation runs and does not fit.
std::vector<WayToFit> ways_to_fit(const Evaluation& evaluation, std::size_t most, const std::stop_token& stop);

}  // namespace trivium::gui
