// Timelines for chrome://tracing and Perfetto.
#pragma once

#include <string>

#include "program/ir/program.h"
#include "program/ir/timeline.h"
#include "program/record/run_record.h"

namespace trivium::program {

/// The Trace Event Format (JSON object form): a process per rank, a thread per lane, an event per op named like
/// "forward mb3 layer 2 matmul" (layer: number in the model). Times in microseconds, to the picosecond; steps follow
/// each other. With `run`, `otherData` holds that record without its timeline under the name of its schema, so that the
/// trace alone can be read back as the record. Precondition: the timeline's tasks and ops are those of `program`.
std::string chrome_trace(const Program& program, const Timeline& timeline, const RunRecord* run = nullptr);

/// The name of one event, as in the trace.
std::string name_of(const Program& program, const Event& event);

}  // namespace trivium::program
