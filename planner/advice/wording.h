// Times and parts of an iteration in the words of explanations.
#pragma once

#include <cstdint>
#include <string>

#include "program/ir/program.h"
#include "simulator/iteration/breakdown.h"

namespace trivium::planner {

/// "31.2 s", of picoseconds.
std::string time_text(std::int64_t ps);

/// Where time goes, without the underscores of its key: "exposed data".
std::string words_of(simulator::Part part);
/// The same of a plan: without replicas what counts as data is the tied embedding of first and last stage.
std::string words_of(simulator::Part part, const program::Mesh& mesh);

}  // namespace trivium::planner
