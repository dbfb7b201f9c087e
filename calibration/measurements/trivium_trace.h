// A trace of `trivium run --trace`, back as the record of that run.
#pragma once

#include "calibration/measurements/chrome_events.h"
#include "program/record/run_record.h"

namespace trivium::calibration::imports {

/// Whether the trace says which run it is of.
bool is_run_trace(const ChromeTrace& trace);

/// The same record as `--record` gives, to the picosecond: times in the trace run on from step to step, a step begins
/// where the one before ends. Of a truncated trace the last step is left out. Errors: Failure(kInput) with the place,
/// also where nothing but a cut step is left. Precondition: is_run_trace.
program::RunRecord run_record_of(const ChromeTrace& trace);

}  // namespace trivium::calibration::imports
