// Layers move from ranks that were slow to ranks that were fast.
#include "calibration/replan/replan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "calibration/measurements/run_events.h"
#include "program/lower/lower.h"
#include "simulator/memory/memory.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Twelve layers, so that moving one is a small part.
program::Job job_of(int pipeline, int data) {
  program::Job job = small_job(1, pipeline, data, 1);
  job.model.layers = 12;
  return job;
}

hardware::Node node_for(const program::Job& job) {
  hardware::Node node = rated_node(1);
  node.devices = job.plan.ranks();
  return node;
}

/// Every op of the rank takes `factor` times as long, and so does every step.
void slow_down(program::RunRecord& record, int rank, int factor) {
  for (program::Event& event : record.timeline.events) {
    const std::int64_t work = event.end_ps - event.start_ps - event.wait_ps;
    if (event.rank == rank) event.end_ps = event.start_ps + factor * work + event.wait_ps;
  }
  for (program::StepRecord& step : record.steps) step.seconds *= factor;
}

int sum_of(const std::vector<int>& values) {
  int sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

TEST(RankTimes, AreThoseOfTheOpsOfALayer) {
  const program::Job job = job_of(2, 1);
  const program::RunRecord record = synthetic_run(job, node_for(job));
  const program::Program program = program_of(record);
  const std::vector<RankTimes> times = rank_times(program, record);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_THAT(times[1].layers, ElementsAre(6, 7, 8, 9, 10, 11));
  // Of one micro-batch: all events of the forward of micro-batch 0 that name layer 2 of the chunk.
  double seconds = 0;
  for (const program::Event& e : record.timeline.events) {
    const program::Task& task = program.role_of(e.rank).tasks[static_cast<std::size_t>(e.task)];
    const program::Op& op = program.body_of(task).ops[static_cast<std::size_t>(e.op)];
    if (e.rank != 1 || e.step != 1 || task.kind != program::TaskKind::kForward || task.micro_batch != 0 ||
        op.layer != 2)
      continue;
    seconds += static_cast<double>(e.end_ps - e.start_ps - e.wait_ps) * 1e-12;
  }
  EXPECT_GT(seconds, 0);
  EXPECT_NEAR(times[1].seconds[2].forward, seconds, 1e-12);
  EXPECT_GT(times[1].seconds[2].backward, seconds);
  EXPECT_EQ(times[0].head.total(), 0);
  EXPECT_GT(times[1].head.total(), 0);
  EXPECT_GT(times[0].embedding.total(), 0);
}

TEST(Replan, MovesLayersAwayFromTheStageThatIsThreeTimesSlower) {
  const program::Job job = job_of(2, 1);
  program::RunRecord record = synthetic_run(job, node_for(job));
  slow_down(record, 0, 3);
  const Replan found = replan(record, cluster_of(node_for(job)));
  // 12 layers at rates 1 and 1/3: 3 and 9 take the same time; the head is a small part of a layer here.
  EXPECT_THAT(found.plan.stage_layers, ElementsAre(3, 9));
  EXPECT_TRUE(found.changed);
  EXPECT_LT(found.predicted_iteration_s, found.measured_iteration_s);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 0);
  EXPECT_NEAR(found.stragglers[0].factor, 1.5, 1e-6);  // of the mean of two ranks: 3 / ((1 + 3) / 2)
  EXPECT_LT(found.chunks[0].after_s, found.chunks[0].before_s);
}

TEST(Replan, AStageIsAsSlowAsItsSlowestRank) {
  const program::Job job = job_of(2, 4);
  program::RunRecord record = synthetic_run(job, node_for(job));
  slow_down(record, 5, 2);  // one of four
  const program::Program program = program_of(record);
  const int stage = program.mesh.coordinates(5).pipeline;
  const Replan found = replan(record, cluster_of(node_for(job)));
  ASSERT_EQ(found.plan.stage_layers.size(), 2u);
  EXPECT_EQ(found.plan.stage_layers[static_cast<std::size_t>(stage)], 4);  // rates 1 and 1/2
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 5);
  EXPECT_EQ(found.stragglers[0].stage, stage);
  EXPECT_NEAR(found.stragglers[0].factor, 2, 1e-6);
}

// Larger micro-batches take longer on ranks that are as fast as the others.
TEST(Replan, ReplicasOfUnlikeMicroBatchesAreNoStragglers) {
  program::Job job = job_of(1, 4);
  job.training.global_batch = 16;
  job.plan.replica_micro_batch = {3, 3, 1, 1};
  program::RunRecord record = synthetic_run(job, node_for(job));
  EXPECT_THAT(replan(record, cluster_of(node_for(job))).stragglers, IsEmpty());
  slow_down(record, 3, 2);
  const Replan found = replan(record, cluster_of(node_for(job)));
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 3);
}

// A vocabulary as heavy as several layers stands at both ends of the model.
TEST(Replan, CountsEmbeddingAndHeadAsLoad) {
  program::Job job = job_of(3, 1);
  job.model.vocab = 8192;  // the logits: 128 x 8192, five layers' matrices of 12 x 128 x 128
  const program::RunRecord record = synthetic_run(job, node_for(job));
  const Replan found = replan(record, cluster_of(node_for(job)));
  ASSERT_EQ(found.plan.stage_layers.size(), 3u);
  EXPECT_TRUE(found.changed);
  EXPECT_LT(found.plan.stage_layers[2], found.plan.stage_layers[0]);
  EXPECT_EQ(sum_of(found.plan.stage_layers), 12);
  EXPECT_THAT(found.stragglers, IsEmpty());
}

// The smallest slowest stage over all ways to give twelve layers to three stages, tried one by one.
TEST(Replan, NoOtherSplitHasAFasterSlowestStage) {
  const program::Job job = job_of(3, 1);
  for (const int factor : {2, 3, 5}) {
    program::RunRecord record = synthetic_run(job, node_for(job));
    slow_down(record, 1, factor);
    const Replan found = replan(record, cluster_of(node_for(job)));
    const auto& c = found.chunks;
    const auto slowest = [&](int a, int b, int d) {
      return std::max({c[0].ends_s + a * c[0].layer_s, c[1].ends_s + b * c[1].layer_s, c[2].ends_s + d * c[2].layer_s});
    };
    double best = 1e9;
    for (int a = 1; a <= 10; ++a) {
      for (int b = 1; a + b <= 11; ++b) best = std::min(best, slowest(a, b, 12 - a - b));
    }
    ASSERT_EQ(found.plan.stage_layers.size(), 3u);
    EXPECT_NEAR(slowest(found.plan.stage_layers[0], found.plan.stage_layers[1], found.plan.stage_layers[2]), best,
                1e-12);
  }
}

TEST(Replan, KeepsAPlanThatIsBalanced) {
  program::Job job = job_of(2, 1);
  job.model.vocab = 64;
  const Replan found = replan(synthetic_run(job, node_for(job)), cluster_of(node_for(job)));
  EXPECT_FALSE(found.changed);
  EXPECT_THAT(found.plan.stage_layers, IsEmpty());
  EXPECT_EQ(found.predicted_iteration_s, found.measured_iteration_s);
}

TEST(Replan, OneStageHasNothingToMove) {
  const program::Job job = job_of(1, 2);
  program::RunRecord record = synthetic_run(job, node_for(job));
  slow_down(record, 1, 2);
  const Replan found = replan(record, cluster_of(node_for(job)));
  EXPECT_FALSE(found.changed);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 1);
}

TEST(Replan, GivesAStageNoMoreLayersThanItsMemoryHolds) {
  const program::Job job = job_of(2, 1);
  program::RunRecord record = synthetic_run(job, node_for(job));
  slow_down(record, 0, 3);
  hardware::Cluster small = cluster_of(node_for(job));
  // Room for the even split and one layer more on the second stage.
  program::Job wider = job;
  wider.plan.stage_layers = {5, 7};
  const auto memory = simulator::memory_of(std::get<program::Program>(program::lower(wider)), small);
  small.groups.front().node.device.memory = base::Bytes(static_cast<double>(memory[1].total() + 1));
  const Replan found = replan(record, small);
  EXPECT_THAT(found.plan.stage_layers, ElementsAre(5, 7));
  EXPECT_THAT(found.limited, HasSubstr("stage 1 has no memory for more than 7 layers"));
}

TEST(Replan, ARecordWithoutTimelineSaysHowToGetOne) {
  const program::Job job = job_of(2, 1);
  program::RunRecord record = synthetic_run(job, node_for(job));
  record.timeline.events.clear();
  try {
    (void)replan(record, cluster_of(node_for(job)));
    FAIL() << "there is nothing to learn from";
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    EXPECT_THAT(failure.error().message, HasSubstr("--timeline-steps"));
  }
}

}  // namespace
}  // namespace trivium::calibration
