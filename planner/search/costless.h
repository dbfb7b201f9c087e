// What can be said of all plans of a request without looking at one.
#pragma once

#include <optional>
#include <string>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Why no plan fits, whatever its split: parameters on the devices, or these and the optimizer's state over all memory
/// that a plan may use, are too large. Nothing where they may fit, or memory is ignored.
std::optional<std::string> lacks_memory(const SearchRequest& request);

/// Seconds below which no training on all the job's tokens is: its FLOPs, the causal half of attention left out, at the
/// dense peak of all devices.
double least_training_s(const SearchRequest& request);

}  // namespace trivium::planner
