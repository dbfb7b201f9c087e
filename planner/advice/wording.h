// Times and parts of an iteration in the words of explanations.
#pragma once

#include <cstdint>
#include <string>

#include "simulator/iteration/breakdown.h"

namespace trivium::planner {

/// "31.2 s", of picoseconds.
std::string time_text(std::int64_t ps);

/// Where time goes, without the underscores of its key: "exposed data".
std::string words_of(simulator::Part part);

}  // namespace trivium::planner
