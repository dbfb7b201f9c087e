// Where a prediction's certainty comes from, in one short line.
#pragma once

#include <string>

#include "simulator/certainty/certainty.h"

namespace trivium::simulator {

/// Certainty::words in about 65 letters: "66 runs of fsdp on a100 (dense)". `certainty`: that of the job there.
std::string brief_text(const program::Job& job, const hardware::Cluster& cluster, const Certainty& certainty);

}  // namespace trivium::simulator
