// Learning rates and batches over a training, and steps that stand out.
#include "runtime/executor/training_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/executor/spikes.h"

namespace trivium::runtime {
namespace {

using ::testing::IsEmpty;

/// Warm-up of 4 steps to 1.0, then to 0.1.
program::Optimizer optimizer() {
  program::Optimizer o;
  o.learning_rate = 1.0;
  o.min_learning_rate = 0.1;
  o.warmup_steps = 4;
  return o;
}

double rate(Decay decay, std::int64_t step, std::int64_t steps = 24, std::int64_t cooldown = 0) {
  TrainingSchedule training_schedule;
  training_schedule.decay = decay;
  training_schedule.cooldown_steps = cooldown;
  return learning_rate(training_schedule, optimizer(), 8, step, steps);
}

TEST(LearningRate, WarmsUpLinearlyUnderEverySchedule) {
  for (const Decay decay : {Decay::kCosine, Decay::kConstant, Decay::kLinear, Decay::kWsd}) {
    EXPECT_DOUBLE_EQ(rate(decay, 0), 0.25) << name_of(decay);
    EXPECT_DOUBLE_EQ(rate(decay, 3), 1.0) << name_of(decay);
    EXPECT_DOUBLE_EQ(rate(decay, 4), 1.0) << name_of(decay);
  }
}

TEST(LearningRate, DecaysAsItsScheduleSays) {
  // Half of the 20 steps after the warm-up are done at step 14: 0.1 + 0.9 / 2.
  EXPECT_DOUBLE_EQ(rate(Decay::kCosine, 14), 0.55);
  EXPECT_DOUBLE_EQ(rate(Decay::kLinear, 14), 0.55);
  // A quarter, at step 9: the line has 3/4 left, the cosine (1 + cos(pi/4)) / 2.
  EXPECT_DOUBLE_EQ(rate(Decay::kLinear, 9), 0.1 + 0.9 * 0.75);
  EXPECT_DOUBLE_EQ(rate(Decay::kCosine, 9), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(rate(Decay::kConstant, 1000), 1.0);
  EXPECT_DOUBLE_EQ(rate(Decay::kLinear, 24), 0.1);
}

TEST(LearningRate, IsStableUntilTheCooldown) {
  // 16 steps of the 20 after the warm-up are stable, then 1 - sqrt(i / 4).
  EXPECT_DOUBLE_EQ(rate(Decay::kWsd, 19, 24, 4), 1.0);
  EXPECT_DOUBLE_EQ(rate(Decay::kWsd, 20, 24, 4), 1.0);
  EXPECT_DOUBLE_EQ(rate(Decay::kWsd, 21, 24, 4), 0.1 + 0.9 * 0.5);
  EXPECT_DOUBLE_EQ(rate(Decay::kWsd, 24, 24, 4), 0.1);
  // A tenth of 20 where nothing is said: steps 22 and 23.
  EXPECT_DOUBLE_EQ(rate(Decay::kWsd, 22), 1.0);
  EXPECT_DOUBLE_EQ(rate(Decay::kWsd, 23), 0.1 + 0.9 * (1 - std::sqrt(0.5)));
}

TEST(LearningRate, FollowsTheBatch) {
  TrainingSchedule training_schedule;
  training_schedule.decay = Decay::kConstant;
  training_schedule.base_batch = 2;
  training_schedule.scaling = RateScaling::kLinear;
  EXPECT_DOUBLE_EQ(learning_rate(training_schedule, optimizer(), 8, 10, 24), 4.0);
  training_schedule.scaling = RateScaling::kSquareRoot;
  EXPECT_DOUBLE_EQ(learning_rate(training_schedule, optimizer(), 8, 10, 24), 2.0);
  training_schedule.ramp = {2, 2, 5};  // 2, 4, 6, 8 samples for 5 steps each: step 10 has 6
  EXPECT_DOUBLE_EQ(learning_rate(training_schedule, optimizer(), 8, 10, 24), std::sqrt(3.0));
}

TEST(BatchRamp, GrowsInStepsToTheGlobalBatch) {
  const BatchRamp ramp{2, 4, 3};
  const std::int64_t batches[] = {2, 2, 2, 6, 6, 6, 8, 8, 8, 8};  // the last rise is cut: 10 would be too many
  std::int64_t samples = 0;
  for (std::int64_t step = 0; step < 10; ++step) {
    EXPECT_EQ(batch_at(ramp, 8, step), batches[step]) << step;
    EXPECT_EQ(samples_before(ramp, 8, step), samples) << step;
    samples += batches[step];
  }
  EXPECT_EQ(next_batch_change(ramp, 8, 0, 100), 3);
  EXPECT_EQ(next_batch_change(ramp, 8, 4, 100), 6);
  EXPECT_EQ(next_batch_change(ramp, 8, 6, 100), 100);
  EXPECT_EQ(next_batch_change(ramp, 8, 4, 5), 5);
  EXPECT_EQ(batch_at(ramp, 8, std::int64_t{1} << 60), 8);
  EXPECT_EQ(samples_before({}, 8, 5), 40);
}

program::StepRecord step_of(std::int64_t step, double loss, double norm) {
  program::StepRecord record;
  record.step = step;
  record.loss = loss;
  record.grad_norm = norm;
  return record;
}

TEST(SpikeWatch, SaysWhichStepsStandOut) {
  SpikeWatch watch;
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(watch.after(step_of(i, 4.0 - 0.02 * i, 1.0 + 0.1 * (i % 3))), IsEmpty()) << i;
  const auto loss = watch.after(step_of(20, 6.0, 1.1));
  ASSERT_EQ(loss.size(), 1u);
  EXPECT_EQ(loss[0].step, 20);
  EXPECT_EQ(loss[0].of, "loss");
  EXPECT_DOUBLE_EQ(loss[0].value, 6.0);
  EXPECT_NEAR(loss[0].typical, 3.82, 1e-9);  // the eleventh of 20 losses from below, 3.62 + 0.02 x 10
  const auto norm = watch.after(step_of(21, 3.6, 8.0));
  ASSERT_EQ(norm.size(), 1u);
  EXPECT_EQ(norm[0].of, "grad_norm");
  EXPECT_THAT(watch.after(step_of(22, 3.58, 1.0)), IsEmpty());
}

TEST(SpikeWatch, IsSilentAtFirstAndAboutNoise) {
  SpikeWatch watch;
  EXPECT_THAT(watch.after(step_of(0, 10, 1)), IsEmpty());
  EXPECT_THAT(watch.after(step_of(1, 100, 50)), IsEmpty());  // nothing to hold it against yet
  SpikeWatch noisy;
  for (int i = 0; i < 60; ++i) EXPECT_THAT(noisy.after(step_of(i, i % 2 == 0 ? 3.0 : 3.1, 1)), IsEmpty()) << i;
}

}  // namespace
}  // namespace trivium::runtime
