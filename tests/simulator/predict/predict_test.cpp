// The one way to a time: counted or simulated, of a search or of a page of figures, it is the same number.
#include "simulator/predict/predict.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/verify/verify.h"
#include "simulator/iteration/rounds.h"
#include "simulator/memory/crowding.h"
#include "tests/simulator/analytic/random_jobs.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

constexpr std::int64_t kMany = 4'000;  // micro-batches: all of them take long to simulate

program::Job gpt3_13b(std::int64_t micro_batches) {
  program::Job job;
  job.model = models::load_model("gpt3-13b");
  job.training.sequence = 2048;
  job.plan.tensor = 8;
  job.plan.pipeline = 2;
  job.plan.precision = program::DType::kFp16;
  job.plan.recompute = program::Recompute::kFull;
  job.training.global_batch = micro_batches;
  return job;
}

// Every micro-batch simulated, as those do who need the timeline: not a picosecond apart.
TEST(Predict, IsTheSameWhetherMicroBatchesAreCountedOrSimulated) {
  std::mt19937 random(71);
  int counted = 0, simulated = 0;
  for (int i = 0; i < 60; ++i) {
    RandomJob made = random_job(random);
    made.job = with_micro_batches(made.job, std::int64_t{20} * made.job.plan.pipeline);
    SCOPED_TRACE(program::summary(made.job.plan));
    const auto predicted = predict(made.job, made.cluster, {.fits = false});
    ASSERT_TRUE(predicted.ok()) << predicted.error().message;
    const auto& [figures, of] = predicted.value();
    const Prepared all = prepared(made.job, made.cluster);
    EXPECT_EQ(figures.iteration_ps, simulate(all, {}).value_or_throw().iteration_ps);
    EXPECT_EQ(predict_iteration_ps(made.job, made.cluster, {.fits = false}).value_or_throw(), figures.iteration_ps);
    const bool few = of.program().settings.batch.samples < all.program().settings.batch.samples;
    ++(few ? counted : simulated);
  }
  EXPECT_GT(counted, 10);
  EXPECT_GT(simulated, 5);
}

// What is counted passes the verifier too, on the few micro-batches that were simulated.
TEST(Predict, VerifiesWhatItCounts) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const Prediction predicted = predict(gpt3_13b(kMany), cluster).value_or_throw();
  EXPECT_LT(predicted.prepared.program().settings.batch.samples, kMany);
  EXPECT_TRUE(program::verify(predicted.prepared.verified()).empty());
}

// A refusal names its rule and is no usage error, however many micro-batches there are.
TEST(Predict, RefusesByTheSameRuleWhateverTheBatch) {
  for (const std::int64_t micro_batches : {std::int64_t{8}, kMany}) {
    SCOPED_TRACE(micro_batches);
    program::Job job = gpt3_13b(micro_batches);
    job.plan.precision = program::DType::kBf16;
    const hardware::Cluster volta = hardware::load_cluster("dgx1-v100-32gb:2");
    for (const base::Error& why : {predict(job, volta).error(), predict_iteration_ps(job, volta).error()}) {
      EXPECT_EQ(why.kind, base::ErrorKind::kNoPlan);
      EXPECT_EQ(why.rule, "precision");
    }
    job = gpt3_13b(micro_batches);
    job.plan.tensor = 1;
    const hardware::Cluster ampere = hardware::load_cluster("dgx-a100-40gb:1");
    for (const base::Error& why : {predict(job, ampere).error(), predict_iteration_ps(job, ampere).error()}) {
      EXPECT_EQ(why.kind, base::ErrorKind::kNoPlan);
      EXPECT_EQ(why.rule, kMemoryRule);
    }
    const auto overflow = predict_overflow(job, ampere);
    ASSERT_TRUE(overflow.ok() && overflow.value());
    EXPECT_EQ(overflow.value()->rule, kMemoryRule);
  }
}

// FSDP of 13B on eight devices. `room` is what a device has more than its fullest stage takes, holes of one unit's
// parameters included; the stack is crowded above 0.96 of it, where each percent costs eight (crowding.h).
TEST(Predict, TakesTheTimeOfACrowdedAllocator) {
  program::Job job = gpt3_13b(0);
  job.plan = {};
  job.plan.stack = "fsdp";
  job.plan.data = 8;
  job.plan.zero_stage = 3;
  job.plan.precision = program::DType::kBf16;
  job.plan.recompute = program::Recompute::kFull;
  job.training.global_batch = 64;
  const double above = program::find_stack("fsdp")->crowded_above;
  ASSERT_GT(above, 0);
  const auto predicted_with = [&](double fullest) {
    hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
    const Prepared given = prepared(job, cluster);
    std::int64_t unit = 0;
    for (const program::ChunkTemplate& kind : given.program().kinds) {
      for (const program::Bucket& bucket : kind.buckets) unit = std::max(unit, bucket.elements);
    }
    const double taken = static_cast<double>(given.memory().front().total() + 2 * unit);  // bf16: two bytes each
    cluster.groups.front().node.device.memory = base::Bytes(static_cast<std::int64_t>(taken / fullest));
    return predict(job, cluster, {.fits = false}).value_or_throw().simulation;
  };
  const Simulation roomy = predicted_with(above / 2), crowded = predicted_with(above + .02);
  EXPECT_NEAR(crowded.iteration_s / roomy.iteration_s, 1 + 8 * .02, 1e-6);
  const double sum = std::accumulate(crowded.breakdown_s.begin(), crowded.breakdown_s.end(), 0.0);
  EXPECT_NEAR(sum, crowded.iteration_s, 1e-9);
  EXPECT_GT(crowded.breakdown_s[static_cast<std::size_t>(Part::kOther)],
            roomy.breakdown_s[static_cast<std::size_t>(Part::kOther)]);
}

}  // namespace
}  // namespace trivium::simulator
