// Transfers in parts: what they cost, and how receives, gathers and passes follow each other.
#include <gtest/gtest.h>

#include <cmath>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/collectives/places.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {
namespace {

using program::Program;
using program::ScatterGather;
using program::TaskKind;

/// Two tensor ranks, two stages, all forwards first.
program::Job job_of(std::int64_t micro_batches) {
  program::Job job;
  job.model = models::load_model("gpt-tiny");
  job.training.sequence = 64;
  job.training.global_batch = micro_batches;
  job.plan.tensor = job.plan.pipeline = 2;
  job.plan.schedule = program::Schedule::kGpipe;
  job.plan.precision = program::DType::kFp32;
  job.plan.scatter_gather = ScatterGather::kOn;
  return job;
}

/// Every pass takes 1, a part 5 on its way, a gather 3, everything else nothing.
std::int64_t makespan(std::int64_t micro_batches, bool asynchronous_lanes) {
  const Program program = std::get<Program>(program::lower(job_of(micro_batches)));
  CostedProgram costed;
  costed.program = &program;
  costed.asynchronous_lanes = asynchronous_lanes;
  for (const program::Role& role : program.roles) {
    auto& bodies = costed.op_ps.emplace_back(program.bodies.size());
    for (const program::Task& task : role.tasks) {
      auto& times = bodies[static_cast<std::size_t>(task.body)];
      times.assign(program.body_of(task).ops.size(), 0);
      if (task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward) times.front() = 1;
      if (task.transfer >= 0) times.front() = 5;
      if (task.kind == TaskKind::kGatherReceived) times.front() = 3;
    }
  }
  return list_schedule(costed, Granularity::kOp).value_or_throw().makespan_ps;
}

// F 0-1, part 1-6, gather 6-9, F 9-10, B 10-11, part 11-16, gather 16-19, B 19-20.
TEST(ScatterGather, OfOneMicroBatchFollowEachOther) {
  EXPECT_EQ(makespan(1, true), 20);
  EXPECT_EQ(makespan(1, false), 20);
}

// Part 0 arrives at 6 and is gathered until 9, and only then part 1 comes, until 14, gathered until 17; F1 17-18, B0
// until 19, B1 until 20. Back: part 0 19-24, gathered until 27, part 1 27-32, gathered until 35; B1 35-36. Had part 1
// gone before the gather of part 0, F0 would have waited for both.
TEST(ScatterGather, WhatWasReceivedIsGatheredBeforeTheNextTransfer) { EXPECT_EQ(makespan(2, true), 36); }

// 2,048 tokens of 2,048 channels, 2 bytes each, from one node to another: an eighth of S over each of eight adapters'
// parts, then S over the eight devices of the node.
TEST(ScatterGather, CostsThePartBetweenNodesAndTheGatherInside) {
  program::Job job;
  job.model = models::load_model("gpt3-1.3b");
  job.training.sequence = 2048;
  job.training.global_batch = 1;
  job.plan.tensor = 8;
  job.plan.pipeline = 2;
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const hardware::Node& node = cluster.groups.front().node;
  const auto simulated = [&](ScatterGather how) {
    job.plan.scatter_gather = how;
    const Program program = std::get<Program>(program::lower(job));
    return list_schedule(cost(program, cluster), Granularity::kOp).value_or_throw().makespan_ps;
  };
  const auto ps = [](base::Seconds time) { return std::llround(time.value() * 1e12); };
  const base::Bytes bytes(2048.0 * 2048 * 2);
  const program::StackTraits& stack = *program::find_stack("trivium");
  const std::int64_t whole = ps(transfer_cost(bytes, false, 8, node, stack));
  const std::int64_t part = ps(transfer_cost(bytes / 8, false, 8, node, stack));
  const std::int64_t gather = ps(
      collective_cost(program::OpKind::kAllGather, bytes, {.ranks = 8, .nodes = 1, .ranks_per_node = 8}, node, stack));
  EXPECT_LT(part + gather, whole);  // what it is for
  EXPECT_EQ(simulated(ScatterGather::kOff) - simulated(ScatterGather::kOn), 2 * (whole - part - gather));
}

}  // namespace
}  // namespace trivium::simulator
