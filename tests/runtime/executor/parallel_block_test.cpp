// Parallel blocks (GPT-J, PaLM, Falcon) split over ranks equal their unsplit run.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job parallel_job(bool shared_norm, const program::Plan& plan) {
  program::Job job = toy_job(plan, 4);
  job.model.layers = 4;
  job.model.parallel_block = true;
  job.model.shared_norm = shared_norm;
  return job;
}

TEST(ParallelBlock, EverySplitEqualsTheUnsplitRun) {
  for (const bool shared_norm : {true, false}) {
    const Trained unsplit = run(parallel_job(shared_norm, {}), 2);
    for (const auto& [tensor, pipeline, data, sequence_parallel] : std::vector<std::tuple<int, int, int, bool>>{
             {2, 1, 1, false}, {2, 1, 1, true}, {4, 2, 1, true}, {1, 2, 2, false}}) {
      program::Plan plan;
      plan.tensor = tensor;
      plan.pipeline = pipeline;
      plan.data = data;
      plan.sequence_parallel = sequence_parallel;
      plan.overlap.tensor = tensor > 1;
      if (pipeline > 1) plan.schedule = program::Schedule::kZeroBubble;
      expect_equivalent(unsplit, parallel_job(shared_norm, plan));
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
