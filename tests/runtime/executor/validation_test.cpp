// Batches that grow and losses that are only measured, under every split: the same numbers, and training goes on as if
// nobody had looked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "runtime/executor/train.h"
#include "simulator/predict/prepare.h"
#include "tests/runtime/executor/harness.h"
#include "tests/support/verified_program.h"

namespace trivium::runtime::testing {
namespace {

using support::verified_program;

TrainResult train(const program::Job& job, TrainOptions options) {
  const auto corpus = toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  options.program_for = [job](std::int64_t batch) {
    program::Job smaller = job;
    smaller.training.global_batch = batch;
    return verified_program(smaller);
  };
  TrainResult result = train_in_threads(verified_program(job), *corpus, options);
  EXPECT_EQ(result.refused, "");
  return result;
}

std::vector<double> losses_of(const TrainResult& result) {
  std::vector<double> losses;
  for (const program::StepRecord& step : result.steps) losses.push_back(step.loss);
  return losses;
}

std::vector<program::Plan> splits() {
  std::vector<program::Plan> plans(6);
  plans[0].pipeline = 2;
  plans[1].tensor = 2;
  plans[2].data = 2;
  plans[2].zero_stage = 3;
  plans[3].context = 2;
  plans[3].attention = program::Attention::kFlash;
  plans[4].pipeline = 2;
  plans[4].data = 2;
  plans[4].zero_stage = 1;
  plans[4].recompute = program::Recompute::kFull;
  plans[4].overlap.parameter_gather = true;
  plans[5].tensor = plans[5].pipeline = 2;
  plans[5].scatter_gather = program::ScatterGather::kOn;
  return plans;
}

TEST(Validation, MeasuresTheLossThatTheNextStepWouldStartFrom) {
  TrainOptions options;
  options.steps = 3;
  options.validate_every = 1;
  const program::Job job = toy_job({});
  // The training corpus itself: its first batch, evaluated with the parameters after step 0, gives the loss with which
  // a training that reads that batch again in step 1 begins.
  const auto corpus = toy_corpus(16 * 8 + 1, 61);  // eight samples: an epoch is a batch, in another order each time
  options.validation = corpus.get();
  const TrainResult result = train_in_threads(verified_program(job), *corpus, options);
  ASSERT_EQ(result.steps.size(), 3u);
  for (std::size_t i = 0; i + 1 < 3; ++i) {
    EXPECT_NEAR(*result.steps[i].validation_loss, result.steps[i + 1].loss, 1e-12 * result.steps[i + 1].loss) << i;
  }
}

TEST(Validation, ChangesNothingAndIsTheSameUnderEverySplit) {
  const auto other = toy_corpus(1000, 61);
  TrainOptions options;
  options.steps = 4;
  const TrainResult blind = train(toy_job({}), options);
  options.validation = other.get();
  options.validate_every = 2;
  const TrainResult seeing = train(toy_job({}), options);
  EXPECT_EQ(losses_of(seeing), losses_of(blind));
  EXPECT_FALSE(seeing.steps[0].validation_loss);
  ASSERT_TRUE(seeing.steps[1].validation_loss);
  ASSERT_TRUE(seeing.steps[3].validation_loss);
  std::vector<program::Plan> plans = splits();
  plans.emplace_back();  // two chunks of one kind on a rank share their frames
  plans.back().pipeline = 4;
  plans.back().virtual_stages = 2;
  plans.back().schedule = program::Schedule::kInterleaved;
  plans.push_back(plans.back());  // one reads its input in the other's frame
  plans.back().schedule = program::Schedule::kZbv;
  for (const program::Plan& plan : plans) {
    const TrainResult split = train(toy_job(plan), options);
    ASSERT_EQ(split.steps.size(), 4u) << program::summary(plan);
    for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
      EXPECT_NEAR(*split.steps[i].validation_loss, *seeing.steps[i].validation_loss, 1e-10) << program::summary(plan);
    }
    EXPECT_THAT(losses_of(split), ::testing::Pointwise(::testing::DoubleNear(1e-10), losses_of(blind)))
        << program::summary(plan);
  }
}

// Nothing is learned at a rate of 0: what is measured are the parameters that both models start with.
TEST(Validation, LeavesOutModulesOfMultiTokenPrediction) {
  const auto other = toy_corpus(1000, 61);
  TrainOptions options;
  options.steps = 1;
  options.validation = other.get();
  options.validate_every = 1;
  const auto measured = [&](const program::Plan& plan, int modules) {
    program::Job job = toy_job(plan);
    job.model.positions = models::Positions::kRotary;
    job.training.optimizer.learning_rate = job.training.optimizer.min_learning_rate = 0;
    if (modules > 0) job.model.mtp = models::MultiToken{.depth = modules, .loss_scale = 1};
    return train(job, options).steps.at(0).validation_loss.value();
  };
  const double alone = measured({}, 0);
  EXPECT_NEAR(measured({}, 2), alone, 1e-12 * alone);
  for (const program::Plan& plan : splits()) EXPECT_NEAR(measured(plan, 2), alone, 1e-12 * alone);
}

TEST(BatchRampRun, ReadsTheSameSamplesUnderEverySplit) {
  TrainOptions options;
  options.steps = 6;
  options.timeline_steps = 1;
  options.training_schedule.ramp = {4, 4, 2};  // 4, 4, 8, 8, 8, 8 samples
  program::Job job = toy_job({});
  const TrainResult ramped = train(job, options);
  ASSERT_EQ(ramped.steps.size(), 6u);
  // Steps 0 and 1 together are the eight samples of a step without ramp, before anything was learnt the same loss.
  TrainOptions still;
  still.steps = 1;
  program::Job four = job;
  four.training.global_batch = 4;
  EXPECT_EQ(ramped.steps[0].loss, train(four, still).steps[0].loss);
  for (const program::Plan& plan : splits()) {
    const TrainResult split = train(toy_job(plan), options);
    EXPECT_THAT(losses_of(split), ::testing::Pointwise(::testing::DoubleNear(1e-10), losses_of(ramped)))
        << program::summary(plan);
    EXPECT_FALSE(split.timeline.events.empty());
  }
}

// Until it grows, a ramped batch is a training with that batch. (That all state moves along when it grows is seen where
// a training is resumed: tests/cli/checkpoint_test.cpp.)
TEST(BatchRampRun, BeginsAsATrainingWithTheSmallBatch) {
  TrainOptions options;
  options.steps = 5;
  program::Job job = toy_job({}, 4);
  const std::vector<double> plain = losses_of(train(job, options));
  job.training.global_batch = 8;
  options.training_schedule.ramp = {4, 4, 3};  // 4, 4, 4, then 8
  const std::vector<double> ramped = losses_of(train(job, options));
  EXPECT_EQ(std::vector<double>(ramped.begin(), ramped.begin() + 3),
            std::vector<double>(plain.begin(), plain.begin() + 3));
  EXPECT_NE(ramped[3], plain[3]);
}

}  // namespace
}  // namespace trivium::runtime::testing
