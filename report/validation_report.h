// A validation as one page: pictures first, then the figures.
#pragma once

#include <string>
#include <string_view>

#include "calibration/validate/validate.h"

namespace trivium::report {

/// Stands alone: a parity plot with a band of 10 %, errors by op kind (of one run) or source (of many), two timelines
/// on one scale, and tables with the worst first. Same validation, same bytes.
std::string validation_page(const calibration::Validation& validation, std::string_view title);

}  // namespace trivium::report
