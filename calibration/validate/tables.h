// Parts of a validation as text.
#pragma once

#include <string>

#include "calibration/validate/validate.h"

namespace trivium::calibration {

/// Whether it compares a single run whose steps are known.
bool is_of_one_run(const Validation& validation);

/// Such a run in a screen: measured, predicted, the machine's own noise, memory, and the kinds of ops that make up a
/// hundredth of the work or more, those first that make most of the difference.
std::string run_table(const Validation& validation);

}  // namespace trivium::calibration
