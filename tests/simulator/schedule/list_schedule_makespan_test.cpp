// Tasks that are simulated whole end when their parts would: ends at the same time must not decide by their turn.
#include <gtest/gtest.h>

#include <random>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/ir/text.h"
#include "program/lower/lower.h"
#include "simulator/schedule/engine.h"
#include "tests/simulator/analytic/random_jobs.h"

namespace trivium::simulator {
namespace {

void expect_equal(const program::Job& job, const hardware::Cluster& cluster) {
  const auto lowered = std::get<program::Program>(program::lower(job));
  const CostedProgram costed = cost(lowered, cluster);
  const auto parts = list_schedule(costed, Granularity::kSegment);
  EXPECT_EQ(list_schedule_makespan(costed).value_or_throw(), parts.value().makespan_ps) << program::summary(job.plan);
}

// Unlike chunks in turns: a stage's parts and another's whole end together, and each has a transfer that is then ready.
TEST(ListScheduleMakespan, HangsOnNoTurn) {
  program::Job job;
  job.model = models::load_model("megatron-145.6b");
  job.training.sequence = 2048;
  job.training.global_batch = 32;
  job.plan.tensor = 8;
  job.plan.pipeline = 4;
  job.plan.virtual_stages = 10;
  job.plan.schedule = program::Schedule::kInterleaved;
  job.plan.micro_batch = 2;
  job.plan.attention = program::Attention::kUnfused;
  job.plan.overlap.pipeline = job.plan.overlap.tensor = true;
  job.plan.offload.optimizer = program::Storage::kHost;
  job.plan.stage_recompute.assign(40, program::Recompute::kFull);
  for (std::size_t chunk = 20; chunk < 40; ++chunk) job.plan.stage_recompute[chunk] = program::Recompute::kNone;
  expect_equal(job, hardware::load_cluster("a100-pcie-80gb:4"));
}

TEST(ListScheduleMakespan, IsThatOfSchedulingPartsInRandomJobs) {
  std::mt19937 random(17);
  for (int i = 0; i < 300; ++i) {
    const RandomJob made = random_job(random);
    expect_equal(made.job, made.cluster);
  }
}

}  // namespace
}  // namespace trivium::simulator
