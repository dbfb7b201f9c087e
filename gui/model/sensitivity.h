// What a better machine or another plan would bring: the same job simulated again with one thing changed.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/evaluation.h"

namespace trivium::gui {

struct Sensitivity {
  std::string change;   ///< "network bandwidth +10 %", "tensor 8 to 4, data 8 to 16"
  double gain = 0;      ///< change of the iteration as a share: negative is faster
  std::string refusal;  ///< why there is none
  bool narrow = false;  ///< the plan fits, but not surely enough for searches
};

/// Everything that is said of a plan in addition to its figures.
struct Insight {
  std::vector<std::string> sentences;  ///< planner::explain; empty where the plan cannot run
  std::vector<Sensitivity> machine;    ///< arithmetic, memory, links and latencies each 10 % better
  std::vector<Sensitivity> plans;      ///< neighbours of the plan
};

/// The machine's part alone.
std::vector<Sensitivity> machine_gains(const Evaluation& evaluation, const std::stop_token& stop);

/// Simulates some twenty neighbours by segments: seconds for a large job. Stopped, it returns what it has.
Insight insight(const Evaluation& evaluation, const std::stop_token& stop);

}  // namespace trivium::gui
