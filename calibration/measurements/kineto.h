// Traces of PyTorch's profiler.
#pragma once

#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::imports {

/// Kernels, copies and launches of a Kineto trace of one rank. Steps are `ProfilerStep#N`; the first is a warm-up and
/// the last may be cut, so both are left out where three or more are there. Shapes of products come from the operator
/// that launched them (`record_shapes=True`), bytes of collectives from their arguments (PyTorch 2.2 on). Source:
/// pytorch/kineto 114171dfba68. Errors: Failure(kInput) where the trace holds no kernel of a GPU, which
/// says what else it holds.
KernelTrace read_kineto(const ChromeTrace& trace);

}  // namespace trivium::calibration::imports
