// Replicas whose micro-batches are of different sizes compute what one rank computes, under every split of each.
#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job with_sizes(program::Plan plan, std::vector<int> sizes) {
  plan.data = static_cast<int>(sizes.size());
  plan.replica_micro_batch = std::move(sizes);
  program::Job job = toy_job(plan);
  job.model.layers = 4;
  return job;
}

const Trained& one_kind() {
  static const Trained reference = run([] {
    program::Job job = toy_job({});
    job.model.layers = 4;
    return job;
  }());
  return reference;
}

TEST(ReplicaKinds, OfEveryZeroStageEqualTheUnsplitRun) {
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::vector<int>& sizes : {std::vector<int>{3, 1}, {1, 3}, {2, 1, 1}, {1, 4, 3}, {5, 3}}) {
      for (const bool overlap : {false, true}) {
        program::Plan plan;
        plan.zero_stage = stage;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = overlap;
        expect_equivalent(one_kind(), with_sizes(plan, sizes));
      }
    }
  }
}

TEST(ReplicaKinds, OfEverySplitInsideEqualTheUnsplitRun) {
  for (const auto schedule : {program::Schedule::kSequential, program::Schedule::kGpipe, program::Schedule::k1f1b,
                              program::Schedule::kInterleaved, program::Schedule::kZeroBubble}) {
    program::Plan plan;
    plan.pipeline = 2;
    plan.schedule = schedule;
    plan.virtual_stages = schedule == program::Schedule::kInterleaved ? 2 : 1;
    expect_equivalent(one_kind(), with_sizes(plan, {3, 1}));
    plan.zero_stage = 1;
    plan.placement = "data-pipeline-tensor-context";
    expect_equivalent(one_kind(), with_sizes(plan, {1, 3}));
  }
  for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
    program::Plan plan;
    plan.context = 2;
    plan.context_method = method;
    plan.attention = program::Attention::kFlash;  // which a ring needs
    plan.zero_stage = 2;
    expect_equivalent(one_kind(), with_sizes(plan, {1, 3}));
  }
  program::Plan plan;
  plan.tensor = 2;
  plan.pipeline = 2;
  plan.sequence_parallel = true;
  expect_equivalent(one_kind(), with_sizes(plan, {3, 1}));
  plan.sequence_parallel = false;
  plan.scatter_gather = program::ScatterGather::kOn;
  plan.recompute = program::Recompute::kFull;
  expect_equivalent(one_kind(), with_sizes(plan, {1, 3}));
  plan = {};
  plan.offload.optimizer = plan.offload.activations = program::Storage::kHost;
  expect_equivalent(one_kind(), with_sizes(plan, {2, 1, 1}));
}

TEST(ReplicaKinds, DropWhatTheUnsplitRunDrops) {
  program::Job alone = toy_job({});
  alone.model.layers = 4;
  alone.training.dropout = 0.2;
  const Trained reference = run(alone);
  for (const int pipeline : {1, 2}) {
    program::Plan plan;
    plan.pipeline = pipeline;
    program::Job job = with_sizes(plan, {1, 3});
    job.training.dropout = 0.2;
    expect_equivalent(reference, job);
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
