// Traces of PyTorch's profiler.
#pragma once

#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::imports {

/// Whether a trace without a GPU's kernels is of use: where cores are what trained, operators are the kernels.
enum class OnCores { kRefused, kTaken };

/// Kernels, copies and launches of a Kineto trace of one rank, and the operators and ranges that launched them. Steps
/// are `ProfilerStep#N`; the first is a warm-up and the last may be cut, so both are left out where three or more are
/// there. Shapes of products come from the operator that launched them (`record_shapes=True`), bytes of collectives
/// from their arguments (PyTorch 2.2 on), ranks and groups from `distributedInfo`. Source: pytorch/kineto 114171dfba68.
/// Errors: Failure(kInput) where the trace holds no kernel of a GPU, which says what else it holds, unless operators
/// on cores are taken; they are where there are any.
KernelTrace read_kineto(const ChromeTrace& trace, OnCores on_cores = OnCores::kRefused);

}  // namespace trivium::calibration::imports
