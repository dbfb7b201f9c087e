// From a job to what the runtime trains.
#pragma once

#include "hardware_profiles/load.h"
#include "program/verify/verified.h"
#include "simulator/predict/prepare.h"

namespace trivium::support {

/// The Program of a job on one node of generic-cpu with as many devices as the plan has ranks, whether it fits or not.
/// Errors: Failure where the job is refused.
inline program::VerifiedProgram verified_program(const program::Job& job) {
  hardware::Cluster cluster = hardware::load_cluster("generic-cpu");
  cluster.groups.front().node.devices = job.plan.ranks();
  return simulator::prepare(job, cluster, {.fits = false}).value_or_throw().verified();
}

}  // namespace trivium::support
