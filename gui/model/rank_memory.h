// Memory of every rank: its stage's parts, against what its own device has.
#pragma once

#include <vector>

#include "gui/model/evaluation.h"

namespace trivium::gui {

struct RankMemory {
  int rank = 0;
  simulator::StageMemory memory;  ///< bytes; capacities and what is reserved are those of the rank's own device
};

/// By rank. All ranks of a stage hold the same parts; where they stand on heterogeneous nodes, a stage is judged by the
/// smallest device and each rank by its own. Precondition: the evaluation runs.
std::vector<RankMemory> memory_of_ranks(const Evaluation& evaluation);

}  // namespace trivium::gui
