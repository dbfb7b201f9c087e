// Small jobs of every shape, for properties that must hold for all of them.
#pragma once

#include <random>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::simulator {

struct RandomJob {
  program::Job job;
  hardware::Cluster cluster;
};

/// A job that program::check accepts, on a cluster that can run it: all schedules, stacks, overlaps, bucket sizes,
/// groups that straddle nodes, mixed clusters, with a link between sites too, and clusters without lanes of their own
/// for communication.
RandomJob random_job(std::mt19937& random);

/// Of those, one whose exchanges of rows with experts overlap with passes (Overlap::expert).
RandomJob random_pair_job(std::mt19937& random);

}  // namespace trivium::simulator
