// Compressed gradients against the same arithmetic on unsplit runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/reduction/half.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

double rounded(double value) {
  return static_cast<double>(reduction::float_of_fp16(reduction::fp16_of_float(static_cast<float>(value))));
}

/// Untied: a tied weight's two uses are added in one replica before they are rounded, as here, but in another order.
program::Job job_of(const program::Plan& plan, std::int64_t batch) {
  program::Job job = toy_job(plan, batch);
  job.model.layers = 2;
  job.model.tied_embeddings = false;
  return job;
}

// Two replicas take one sample each. An unsplit run that does not learn takes the same samples one a step: its
// gradients are twice the replicas' shares, exactly. Each share is rounded to 16 bits, the sum in fp32 once more.
TEST(CompressionRun, SumsWhatReplicasRoundedToSixteenBits) {
  program::Plan plan;
  program::Job alone = job_of(plan, 1);
  alone.training.optimizer.learning_rate = alone.training.optimizer.min_learning_rate = 0;
  const Trained shares = run(alone, 2);
  plan.data = 2;
  plan.compression = program::Compression::kFp16;
  const Trained compressed = run(job_of(plan, 2), 1);
  ASSERT_EQ(compressed.refused, "");
  EXPECT_TRUE(compressed.replicas_agree);
  std::int64_t compared = 0, changed = 0;
  for (const auto& [name, values] : compressed.gradients[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double a = shares.gradients[0].at(name)[i] / 2, b = shares.gradients[1].at(name)[i] / 2;
      const float sum = static_cast<float>(rounded(a)) + static_cast<float>(rounded(b));
      ASSERT_EQ(values[i], rounded(sum)) << name << " [" << i << "]";
      changed += values[i] != a + b ? 1 : 0;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(changed, compared / 2);  // else nothing was rounded
}

// Everything is sent, in the order of the ranks: the sums are those of the whole buckets.
TEST(LargestRun, SendingEverythingChangesNoBit) {
  for (const auto& [tensor, pipeline, tied] : {std::tuple{1, 1, true}, {2, 1, false}, {1, 2, true}}) {
    program::Plan plan;
    plan.data = 2, plan.tensor = tensor, plan.pipeline = pipeline;
    program::Job job = job_of(plan, 8);
    job.model.tied_embeddings = tied;
    const Trained plain = run(job);
    job.plan.compression = program::Compression::kTopK;
    job.plan.top_k_share = 1;
    const Trained all = run(job);
    ASSERT_EQ(all.refused, "");
    std::string where;
    EXPECT_TRUE(bitwise_equal(plain, all, where)) << where;
  }
}

// A twentieth of the gradients: another training, but not another loss by much, and all ranks agree on it.
TEST(LargestRun, StaysCloseToTheUncompressedRun) {
  program::Plan plan;
  plan.data = 2, plan.tensor = 2, plan.sequence_parallel = true;
  program::Job job = job_of(plan, 4);
  job.plan.compression = program::Compression::kTopK;
  job.plan.top_k_share = 0.05;
  const Trained few = run(job, 6);
  ASSERT_EQ(few.refused, "");
  EXPECT_TRUE(few.replicas_agree);  // tensor ranks that hold the same parameter chose the same
  for (const auto& [name, values] : few.gradients.front()) {
    const auto sent = std::count_if(values.begin(), values.end(), [](double g) { return g != 0; });
    EXPECT_GT(sent, 0) << name;
    // Each of 2 replicas and 2 parts of a split parameter rounds its count up.
    EXPECT_LE(static_cast<double>(sent), 0.05 * 2 * static_cast<double>(values.size()) + 4) << name;
  }
  job.plan.compression = program::Compression::kNone;
  const Trained plain = run(job, 6);
  EXPECT_EQ(few.losses[0], plain.losses[0]);
  EXPECT_NE(few.losses[1], plain.losses[1]);
  EXPECT_NEAR(few.losses[5], plain.losses[5], 0.1 * plain.losses[5]);
}

// 11 bits of mantissa: losses stay close to the uncompressed run's, and differ.
TEST(CompressionRun, StaysCloseToTheUncompressedRun) {
  program::Plan plan;
  plan.data = 2;
  plan.pipeline = 2;
  const Trained plain = run(job_of(plan, 8));
  plan.compression = program::Compression::kFp16;
  plan.overlap.gradient_reduction = true;
  const Trained compressed = run(job_of(plan, 8));
  ASSERT_EQ(compressed.losses.size(), plain.losses.size());
  EXPECT_EQ(compressed.losses[0], plain.losses[0]);
  for (std::size_t step = 1; step < plain.losses.size(); ++step) {
    EXPECT_NE(compressed.losses[step], plain.losses[step]);
    EXPECT_NEAR(compressed.losses[step], plain.losses[step], 0.01 * plain.losses[step]);
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
