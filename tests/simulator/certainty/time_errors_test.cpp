#include "simulator/certainty/time_errors.h"

#include <gmock/gmock.h>

#include <cmath>

#include "hardware_profiles/load.h"
#include "simulator/certainty/certainty.h"
#include "simulator/certainty/measured_machine.h"

namespace trivium::simulator {
namespace {

using testing::ElementsAre;

constexpr SharedParts kSomeParts{0.03, 0.04, 0.02, 0.10, 0.05};
constexpr SpreadRule kRule{-3, 1, 2};
const RunLikeness kBridge{"a100", "megatron-bridge", "dense", "selene"};
const RunCell kCell{kBridge, "paper", 4, 0.2, 0.3, 0.0025};

TimeErrors errors(std::vector<RunCell> cells, std::vector<QuantilesOf> quantiles = {}) {
  return {std::move(cells), kSomeParts, kRule, std::move(quantiles), 0.04, 0};
}

TEST(TimeErrors, TakeEditionsOfOneTrainerForSisters) {
  for (const char* stack : {"megatron", "megatron-2022", "megatron-core", "megatron-bridge-flex", "megatron-nemo2"}) {
    EXPECT_EQ(family_of_stack(stack), "megatron");
  }
  EXPECT_EQ(family_of_stack("megatron-deepspeed"), "megatron-deepspeed");
  EXPECT_EQ(family_of_stack("fsdp-flash2"), family_of_stack("fsdp"));
  EXPECT_EQ(family_of_stack("torchtitan-fsdp2-eager"), family_of_stack("automodel-fsdp2"));
}

// e^(-3 + 1 x 0.2 + 2 x 0.1).
TEST(TimeErrors, SpreadByWhatAPredictionIsMadeOf) { EXPECT_DOUBLE_EQ(kRule.of({0.2, 0.1, 0.4}), std::exp(-2.6)); }

// One cell, and a run that shares only its family of stacks: regression on one observation.
TEST(TimeErrors, ExpectTheShareOfAnErrorThatIsShared) {
  const Composition made_of{0.2, 0.1, 0.4};
  const TimeOutlook outlook = errors({kCell}).at({"h100", "megatron", "experts", "other"}, made_of);
  const double of_cell = .03 * .03 + .04 * .04 + .02 * .02 + .10 * .10 + .05 * .05 + 1.5 * 0.0025 / 4;
  const double shared = .04 * .04, all = .03 * .03 + .04 * .04 + .02 * .02 + .10 * .10;
  EXPECT_NEAR(outlook.mean, shared / of_cell * 0.3, 1e-12) << "elsewhere counts what the source left out would say";
  EXPECT_NEAR(outlook.deviation, std::sqrt(all - shared * shared / of_cell + .05 * .05 + std::exp(-5.2)), 1e-12);
  EXPECT_EQ(outlook.measured, 1);
  EXPECT_EQ(outlook.runs, 0);
  const TimeOutlook here = errors({kCell}).at({"a100", "megatron-nemo2", "dense", "selene"}, made_of);
  EXPECT_NEAR(here.mean, (all / of_cell) * 0.2, 1e-12) << "here the profile has learned from the runs";
  EXPECT_EQ(here.measured, 2);
  EXPECT_EQ(here.runs, 4);
  EXPECT_TRUE(here.sisters) << "NeMo was not measured there itself";
  EXPECT_THAT(here.sources, ElementsAre("paper"));
}

TEST(TimeErrors, TakeQuantilesOfTheNearestKindNeverNarrowerThanWhereMoreWasMeasured) {
  const std::vector<QuantilesOf> all{{"", "", true, 1, 50, {-3, 0, 3}},
                                     {"experts", "", true, 1, 20, {-2, 1, 4}},
                                     {"dense", "cpu", true, 0, 20, {-2, 0, 4}},
                                     {"experts", "h100", true, 2, 20, {-1, 0, 5}}};
  const auto at = [&](const char* device, const char* kind, int measured) {
    return quantiles_at(all, {device, "megatron", kind, "m"}, true, measured);
  };
  EXPECT_EQ(at("h100", "experts + fp8", 2).high, 5);
  EXPECT_EQ(at("b200", "experts", 1).high, 4);
  EXPECT_EQ(at("h100", "experts", 1).low, -2);
  EXPECT_EQ(at("h100", "experts", 1).high, 5) << "of both";
  EXPECT_EQ(at("h100", "dense", 1).high, 3);
  EXPECT_EQ(at("cpu", "dense", 2).high, 4) << "runs of the device where less was measured come before other devices";
  const std::vector<QuantilesOf> idle{{"dense", "h100", false, 0, 20, {-1, 0, 9}},
                                      {"dense", "", false, 2, 5, {-1, 0, 2}}};
  EXPECT_EQ(quantiles_at(idle, {"h100", "trivium", "dense", "m"}, false, 2).high, 2) << "not those of another stack";
  EXPECT_EQ(at("h100", "dense", 0).high, 1.645) << "nothing was learned: a normal distribution's";
}

Certainty certainty(const char* stack, const hardware::Cluster& cluster) {
  program::Job job;
  job.plan.stack = stack;
  return certainty_of(job, cluster, {10, 0.5, 60e9, 1.2, 0.06, 0.03});
}

// The 95 % quantile of Student's distribution with four degrees of freedom is 2.132, its 99.5 % quantile 4.604
// (Abramowitz and Stegun 1964, table 26.10).
TEST(Certainty, GivesProbabilitiesThroughTheEndsOfItsInterval) {
  Certainty sure;
  sure.expected_s = 10;
  sure.iteration_s = {9, 12};
  EXPECT_DOUBLE_EQ(within_probability(sure, 10), 0.5);
  EXPECT_NEAR(within_probability(sure, 12), 0.95, 1e-6);
  EXPECT_NEAR(within_probability(sure, 9), 0.05, 1e-6);
  EXPECT_NEAR(within_probability(sure, 10 * std::exp(std::log(1.2) * 4.604095 / 2.131847)), 0.995, 1e-5);
}

TEST(Certainty, ExpectsATimeInsideItsInterval) {
  for (const char* cluster : {"dgx-h100:16", "gb200-nvl72", "dgx-a100-80gb:2", "rtx-4090"}) {
    for (const char* stack : {"trivium", "megatron-bridge", "torchtitan-fsdp2"}) {
      const Certainty sure = certainty(stack, hardware::load_cluster(cluster));
      EXPECT_GT(sure.expected_s, sure.iteration_s.low) << cluster << stack;
      EXPECT_LT(sure.expected_s, sure.iteration_s.high) << cluster << stack;
    }
  }
}

TEST(Certainty, IsNearlyTheSameForSisterStacks) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100:16");
  const Certainty core = certainty("megatron-core", cluster), bridge = certainty("megatron-bridge", cluster);
  EXPECT_NEAR(core.iteration_s.high / bridge.iteration_s.high, 1, 0.10);
  EXPECT_NEAR(certainty("megatron", cluster).iteration_s.high / bridge.iteration_s.high, 1, 0.10);
}

TEST(MeasuredMachine, IsThatOfACopyUnderAnotherName) {
  hardware::Cluster copy = hardware::load_cluster("dgx-h100:16");
  hardware::Node& node = copy.groups.front().node;
  const Certainty before = certainty("megatron-core", copy);
  node.name = "my-dgx-h100", node.bases.clear(), node.sources.clear();
  node.device.usable = 0.9;  // as searches leave some of the memory free
  EXPECT_EQ(measured_machine(node, measured_errors().time), "dgx-h100");
  EXPECT_DOUBLE_EQ(certainty("megatron-core", copy).iteration_s.high, before.iteration_s.high);
  node.device.compute_scale *= 0.99;
  EXPECT_EQ(measured_machine(node, measured_errors().time), "my-dgx-h100");
}

}  // namespace
}  // namespace trivium::simulator
