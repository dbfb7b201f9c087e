#include "simulator/certainty/certainty.h"

#include <gmock/gmock.h>

#include "hardware_profiles/load.h"

namespace trivium::simulator {
namespace {

using testing::HasSubstr;

/// A normal distribution's quantiles where machine and stack were measured, wider ones elsewhere.
MeasuredErrors errors() {
  ErrorParts parts;
  parts.device = parts.stack = parts.kind = 0.03;
  parts.machine = 0.10;
  parts.run = {0.05, 0.05, 0.05};
  const ErrorCell memory{of_memory({"a100", "megatron", "dense", "dgx-a100-80gb", 0}), "a paper", 30, 0, 0, 0.03};
  const RunCell cell{{"a100", "megatron", "dense", "dgx-a100-80gb"}, "a paper", 30, 0, 0, 0.0009};
  return {TimeErrors({cell}, {0.03, 0.03, 0.03, 0.10, 0.02}, {-3, 0, 0}, {{"", "", true, 0, 30, {-2, 0, 3}}}, 0.04, 0),
          ErrorModel({memory}, parts)};
}

program::Job job() {
  program::Job job;
  job.plan.stack = "megatron";
  return job;
}

constexpr Predicted kPredicted{10, 0.4, 60e9, 1.2};

TEST(Certainty, SaysWhichRunsItComesFrom) {
  const auto known = certainty_of(job(), hardware::load_cluster("dgx-a100-80gb:2"), kPredicted, errors());
  EXPECT_TRUE(known.compared);
  EXPECT_EQ(known.runs, 30);
  EXPECT_THAT(known.words, HasSubstr("30 measured runs of stack megatron on a100"));
  EXPECT_LT(known.iteration_s.low, 10);
  EXPECT_GT(known.iteration_s.high, 10);
  program::Job other = job();
  other.plan.stack = "fsdp";
  const auto unknown = certainty_of(other, hardware::load_cluster("dgx-h100-80gb:2"), kPredicted, errors());
  EXPECT_FALSE(unknown.compared);
  EXPECT_THAT(unknown.words, HasSubstr("no measured run of stack fsdp on h100"));
  EXPECT_LT(unknown.iteration_s.low, known.iteration_s.low);
  EXPECT_GT(unknown.iteration_s.high, known.iteration_s.high);
}

// Runs that all came out 40 % slower or faster than predicted, in logarithms: what is expected follows them.
TEST(Certainty, ExpectsWhatOtherRunsTook) {
  for (const double off : {0.4, -0.4}) {
    MeasuredErrors others = errors();
    RunCell cell = others.time.cells().front();
    cell.mean = cell.left_out = off;
    const TimeErrors& t = others.time;
    others.time = TimeErrors({cell}, t.parts(), t.spread(), t.quantiles(), t.between_plans(), t.picked());
    const Certainty sure = certainty_of(job(), hardware::load_cluster("dgx-a100-80gb:2"), kPredicted, others);
    EXPECT_NEAR(std::log(sure.expected_s / 10), off, 0.02);
    EXPECT_LT(sure.iteration_s.low, sure.expected_s);
    EXPECT_GT(sure.iteration_s.high, sure.expected_s);
  }
}

// What was picked as the fastest of several is expected to take longer by as much as such plans did.
TEST(Certainty, CountsTheCurseOfTheWinner) {
  const MeasuredErrors fair = errors();
  const TimeErrors& t = fair.time;
  const MeasuredErrors cursed{TimeErrors(t.cells(), t.parts(), t.spread(), t.quantiles(), t.between_plans(), 0.02),
                              fair.memory};
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const Certainty before = certainty_of(job(), cluster, kPredicted, fair);
  const Certainty after = certainty_of(job(), cluster, kPredicted, cursed);
  EXPECT_NEAR(after.expected_s / before.expected_s, std::exp(0.02), 1e-12);
  EXPECT_NEAR(after.iteration_s.high / before.iteration_s.high, std::exp(0.02), 1e-12);
}

TEST(Certainty, FitsTheSurerTheMoreRoomThereIs) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const auto fits = [&](double room) {
    return certainty_of(job(), cluster, {10, 0.4, 60e9, room}, errors()).fit_probability;
  };
  EXPECT_NEAR(fits(1), 0.5, 0.01);
  EXPECT_GT(fits(1.1), 0.9);
  EXPECT_LT(fits(0.9), 0.1);
}

// Whose machine it is says nothing of what a stack allocates.
TEST(Certainty, OfMemoryIsKnownOfAStackWhereverItWasMeasured) {
  EXPECT_NEAR(usable_memory(job(), hardware::load_cluster("selene-dgx-a100-80gb:2"), 0.95, errors()),
              usable_memory(job(), hardware::load_cluster("dgx-a100-80gb:2"), 0.95, errors()), 1e-12);
}

TEST(Certainty, KeepsAsMuchFreeAsTheProbabilityAsksFor) {
  hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const double usable = usable_memory(job(), cluster, 0.95, errors());
  EXPECT_LT(usable, 1);
  EXPECT_GT(usable, usable_memory(job(), cluster, 0.99, errors()));
  EXPECT_NEAR(certainty_of(job(), cluster, {10, 0.4, 60e9, 1 / usable}, errors()).fit_probability, 0.95, 1e-3);
  cluster.groups.front().node.device.usable = usable;  // of what may be filled all is: of the device, no more than that
  EXPECT_NEAR(certainty_of(job(), cluster, {10, 0.4, 60e9, 1}, errors()).fit_probability, 0.95, 1e-3);
}

TEST(Certainty, OfMemoryIsExactOnCores) {
  const hardware::Cluster cores = hardware::load_cluster("generic-cpu");
  EXPECT_EQ(usable_memory(job(), cores, 0.95, errors()), 1);
  const auto certainty = certainty_of(job(), cores, {10, 0.4, 60e9, 1.01}, errors());
  EXPECT_EQ(certainty.peak_bytes.low, 60e9);
  EXPECT_GT(certainty.fit_probability, 0.999);
}

TEST(Certainty, ComparesPlansWithoutWhatTheyShare) {
  const auto first = certainty_of(job(), hardware::load_cluster("dgx-a100-80gb:2"), kPredicted, errors());
  EXPECT_DOUBLE_EQ(beats_probability(10, 10, first), 0.5);
  EXPECT_NEAR(beats_probability(10, 10 * std::exp(0.04 * std::sqrt(2.0)), first), 0.8413, 1e-4);
  EXPECT_NEAR(beats_probability(10, 9, first) + beats_probability(9, 10, first), 1, 1e-12);
}

}  // namespace
}  // namespace trivium::simulator
