// A foreign run's explanation for people.
#pragma once

#include <string>

#include "calibration/foreign/explanation.h"
#include "program/plan/job.h"

namespace trivium::cli {

/// Findings first, the worst on top, then the ops; no line is wider than 100 columns. The last line says what can be
/// won and with what.
std::string trace_report(const calibration::foreign::Explanation& explanation, const program::Job& job);

}  // namespace trivium::cli
