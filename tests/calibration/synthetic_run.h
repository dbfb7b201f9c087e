// Runs that never were: records whose events last exactly as long as a node's cost rules say.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"
#include "program/record/run_record.h"

namespace trivium::calibration {

/// A core with measured rates for every compute kind: overhead, seconds per FLOP and per byte of one law for all of
/// them.
hardware::Node rated_node(double scale);

/// A small GPT on two ranks, fp32.
program::Job small_job(int tensor, int pipeline, int data, int micro_batch);

hardware::Cluster cluster_of(const hardware::Node& node);

/// Three equal steps on the node, all ranks, waits as the engine saw them.
program::RunRecord synthetic_run(const program::Job& job, const hardware::Node& node);

}  // namespace trivium::calibration
