// Errors of many predictions as one line of a validation.
#pragma once

#include <span>
#include <string>

#include "calibration/measurements/statistics.h"
#include "calibration/validate/validate.h"

namespace trivium::calibration {

/// The errors of `pairs`, which have `name` in common where they are grouped by `by`.
ValidationGroup group_of(std::string by, std::string name, std::span<const Pair> pairs);

}  // namespace trivium::calibration
