// Where the makespan by segments bounds the iteration, and where it does not.
#include "planner/bound/evaluate.h"

#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "simulator/predict/in_rounds.h"
#include "simulator/predict/prepare.h"
#include "simulator/schedule/engine.h"

namespace trivium::planner {
namespace {

/// A mixture on 32 V100s whose exchanges with experts overlap other passes, and tensor collectives products.
program::Job overlapped_mixture() {
  program::Job job;
  job.model = models::load_model("switch-base-128");
  job.training.sequence = 512;
  job.training.global_batch = 128;
  program::Plan& plan = job.plan;
  plan.precision = program::DType::kFp16;
  plan.tensor = 2;
  plan.sequence_parallel = true;
  plan.pipeline = 4;
  plan.virtual_stages = 2;
  plan.schedule = program::usual_schedule(2);
  plan.data = 4;
  plan.expert = 2;
  plan.micro_batch = 4;
  plan.overlap.expert = plan.overlap.tensor = true;
  return job;
}

// During the reduce-scatter at the end of what the experts compute, their weight gradients begin, which are a segment
// of their own: op by op the plan ends earlier than by segments, by more than rounding. Relaxed segments bound it.
TEST(QuickBound, RelaxesSegmentsWhereExpertsWeightGradientsStartDuringTensorCollectives) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx2-v100-32gb:2");
  const program::Job both = overlapped_mixture();
  const auto ps = [](const std::variant<std::int64_t, program::Infeasible>& of) { return std::get<std::int64_t>(of); };
  const std::int64_t simulated = ps(iteration(both, cluster, false));
  const auto prepared = simulator::prepare(both, cluster, {.fits = false, .ordered = false});
  ASSERT_TRUE(prepared);
  EXPECT_GT(simulator::list_schedule_makespan(prepared.value().costed()).value(), simulated * 1001 / 1000);
  EXPECT_FALSE(list_schedule_bounds(both.plan));
  EXPECT_TRUE(list_schedule_bounds({}));
  EXPECT_LE(ps(quick_bound(both, cluster, false)), simulated);
  EXPECT_GT(ps(quick_bound(both, cluster, false)), simulated * 9 / 10);
}

// Micro-batches that repeat themselves are counted, and are no faster counted than one by one.
TEST(QuickBound, CountsMicroBatchesOfRelaxedSegments) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx2-v100-32gb:2");
  program::Job many = overlapped_mixture();
  many.training.global_batch *= 64;
  ASSERT_TRUE(simulator::rounds_to_simulate(many, cluster).has_value());
  const auto counted = simulator::relaxed_makespan_in_rounds(many, cluster, false).value_or_throw();
  ASSERT_TRUE(counted.has_value());
  const auto prepared = simulator::prepare(many, cluster, {.fits = false});
  ASSERT_TRUE(prepared);
  EXPECT_EQ(*counted, simulator::relaxed_makespan(prepared.value().costed()).value());
}

}  // namespace
}  // namespace trivium::planner
