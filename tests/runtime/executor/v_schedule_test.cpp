// Chunks in a V: the arithmetic of the unsplit run, with both ends of the model on one stage.
#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::Plan;
using program::Recompute;
using program::Schedule;

constexpr std::array kSchedules{Schedule::kZbv, Schedule::kDualPipeV};

program::Job job_of(const Plan& plan, bool tied) {
  program::Job job = toy_job(plan);
  job.model.tied_embeddings = tied;
  return job;
}

void expect_folded_equal(const Plan& plan, bool bitwise, bool tied = true) {
  static const Trained kTied = run(job_of(Plan{}, true)), kUntied = run(job_of(Plan{}, false));
  expect_equivalent(tied ? kTied : kUntied, job_of(plan, tied), bitwise ? Asked::kBits : Asked::kClose);
}

Plan folded(Schedule schedule, int tensor, int pipeline, int data) {
  Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.virtual_stages = 2;
  plan.data = data;
  plan.schedule = schedule;
  return plan;
}

TEST(VScheduleRun, EqualsTheUnsplitRunBitByBit) {
  for (const Schedule schedule : kSchedules) {
    for (const bool tied : {true, false}) {
      for (const int pipeline : {2, 3, 4}) {
        Plan plan = folded(schedule, 1, pipeline, 1);
        if (pipeline == 3) plan.stage_layers = {2, 1, 1, 1, 2, 1};
        expect_folded_equal(plan, true, tied);
      }
    }
  }
}

TEST(VScheduleRun, EqualsItBitByBitWithRecomputation) {
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    for (const Schedule schedule : kSchedules) {
      Plan plan = folded(schedule, 1, 4, 1);
      plan.recompute = recompute;
      expect_folded_equal(plan, true);
    }
  }
}

TEST(VScheduleRun, EqualsItWithTensorAndDataParallel) {
  for (const Schedule schedule : kSchedules) {
    for (const auto& [tensor, pipeline, data] : {std::tuple{2, 2, 1}, {1, 2, 2}, {2, 2, 2}, {1, 4, 2}, {4, 2, 1}}) {
      for (const bool overlap : {false, true}) {
        Plan plan = folded(schedule, tensor, pipeline, data);
        plan.sequence_parallel = tensor > 1;
        plan.zero_stage = data > 1 ? 1 : 0;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = overlap;
        expect_folded_equal(plan, false);
      }
    }
  }
}

// Stages whose tensor ranks send parts: between chunks of one stage there is nothing to gather.
TEST(VScheduleRun, EqualsItWithTransfersInParts) {
  Plan plan = folded(Schedule::kZbv, 2, 2, 1);
  plan.scatter_gather = program::ScatterGather::kOn;
  expect_folded_equal(plan, false);
}

TEST(VScheduleRun, EqualsItWithShardedGradientsAndParameters) {
  for (const int zero : {2, 3}) {
    for (const auto& [tensor, pipeline, data] : {std::tuple{1, 2, 2}, {2, 2, 2}, {1, 4, 2}, {1, 2, 4}}) {
      for (const bool tied : {true, false}) {
        Plan plan = folded(Schedule::kZbv, tensor, pipeline, data);
        plan.zero_stage = zero;
        plan.sequence_parallel = tensor > 1;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = tied;
        expect_folded_equal(plan, false, tied);
      }
    }
  }
}

TEST(VScheduleRun, EqualsItWithContextParallel) {
  for (const Schedule schedule : kSchedules) {
    for (const program::ContextMethod method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
      for (const auto& [tensor, pipeline, data] : {std::tuple{1, 2, 1}, {2, 2, 1}, {1, 2, 2}, {1, 4, 1}}) {
        Plan plan = folded(schedule, tensor, pipeline, data);
        plan.context = 2;
        plan.context_method = method;
        plan.attention = program::Attention::kFlash;
        plan.sequence_parallel = tensor > 1;
        plan.zero_stage = data > 1 ? 3 : 0;
        expect_folded_equal(plan, false);
      }
    }
  }
}

// Activations stay on the device where backwards are split; gradients where both copies of a tied weight are on it.
TEST(VScheduleRun, OffloadedStateAndGradientsChangeNothingAtAll) {
  for (const Schedule schedule : kSchedules) {
    for (const bool gradients : {false, true}) {
      Plan kept = folded(schedule, 1, 2, 2);
      kept.overlap.gradient_reduction = gradients;
      Plan plan = kept;
      plan.offload.optimizer = program::Storage::kHost;
      if (gradients) plan.offload.gradients = program::Storage::kHost;
      const bool tied = !gradients;
      expect_equivalent(run(job_of(kept, tied)), job_of(plan, tied), Asked::kBits, "the same, not offloaded");
    }
  }
}

TEST(VScheduleRun, EqualsItWithExperts) {
  const auto mixture = [](const Plan& plan) {
    program::Job job = toy_job(plan);
    job.model.layers = 4;
    job.model.linear_bias = false;
    job.model.activation = models::Activation::kSwiglu;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 0.75};
    return job;
  };
  const Trained unsplit = run(mixture({}));
  for (const Schedule schedule : kSchedules) {
    for (const auto& [tensor, data, expert] : {std::tuple{1, 1, 1}, {1, 2, 2}, {2, 2, 2}, {1, 4, 2}}) {
      Plan plan = folded(schedule, tensor, 2, data);
      plan.expert = expert;
      plan.sequence_parallel = tensor > 1;
      plan.overlap.gradient_reduction = data > 1;
      expect_equivalent(unsplit, mixture(plan));
    }
  }
}

TEST(VScheduleRun, EqualsItWithFewMicroBatches) {
  for (const Schedule schedule : kSchedules) {
    Plan plan = folded(schedule, 1, 4, 1), whole;
    plan.micro_batch = whole.micro_batch = 4;  // two micro-batches
    expect_equivalent(run(toy_job(whole)), toy_job(plan), Asked::kBits, "one rank, mb4");
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
