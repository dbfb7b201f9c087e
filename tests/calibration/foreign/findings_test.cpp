#include "calibration/foreign/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace trivium::calibration::foreign {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A rank that does in one second what the plan says: 0.4 s of products, 0.2 s of attention, 0.1 s of norms, 0.1 s of a
/// hidden all-reduce, 0.1 s of which shows, and 0.2 s of nothing.
RankPlan plan() {
  RankPlan plan;
  plan.iteration_s = 1;
  plan.ops["fc1"] = {.count = 10, .seconds = .2, .launches = 2, .flops = 2e12};
  plan.ops["fc2"] = {.count = 10, .seconds = .2, .launches = 2, .flops = 2e12};
  plan.ops["attention"] = {.count = 10, .seconds = .2, .launches = 4, .flops = 1e12};
  plan.ops["norm"] = {.count = 20, .seconds = .1, .launches = 2, .flops = 0};
  plan.ops["all_reduce"] = {.count = 5, .seconds = .1, .launches = 2, .flops = 0};
  plan.exposed_s["all_reduce"] = 0;
  plan.idle_s = .2;
  return plan;
}

RankTimes as_planned(int rank = 0) {
  RankTimes times;
  times.rank = rank;
  times.iteration_s = 1;
  for (const auto& [name, op] : plan().ops) times.ops[name] = {.count = op.count, .seconds = op.seconds};
  times.ops["fc1"].flops = times.ops["fc2"].flops = 2e12;
  times.exposed_s["all_reduce"] = 0;
  times.compute_s = .8;
  times.idle_s = .2;
  times.gaps = 100;
  times.longest_gap_s = .002;
  return times;
}

std::vector<Finding> findings(const std::vector<RankTimes>& ranks, bool on_cores = false) {
  std::map<int, RankPlan> plans;
  for (const RankTimes& rank : ranks) plans[rank.rank] = plan();
  return findings_of({ranks, plans, on_cores, true});
}

TEST(Findings, ThereAreNoneWhereARunIsAsPlanned) { EXPECT_THAT(findings({as_planned(0), as_planned(1)}), IsEmpty()); }

// Rank 1 computes 0.3 s longer, in fc1, and rank 0 waits 0.35 s for it: 0.3 s are its own, 0.05 s come in turn.
TEST(Findings, ASlowRankIsNamedWithWhatItIsSlowIn) {
  RankTimes waits = as_planned(0), slow = as_planned(1);
  waits.waits_s[1] = .35;
  waits.iteration_s = slow.iteration_s = 1.35;
  slow.compute_s += .3;
  slow.ops["fc1"].seconds += .3;
  slow.ops["fc1"].count *= 2;
  const std::vector<Finding> found = findings({waits, slow});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_NEAR(found[0].seconds, .3, 1e-12);
  EXPECT_THAT(found[0].what, HasSubstr("rank 1 comes late"));
  EXPECT_THAT(found[0].what, HasSubstr("fc1, which it runs 2.0 times as often"));
  EXPECT_NEAR(found[1].seconds, .05, 1e-12);
  EXPECT_FALSE(found[1].rank);
}

TEST(Findings, ARankWhoseHostIsLateIsNotTakenForASlowDevice) {
  RankTimes waits = as_planned(0), late = as_planned(1);
  waits.waits_s[1] = .1;
  late.idle_s += .1;
  const std::vector<Finding> found = findings({waits, late});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_THAT(found[0].what, HasSubstr("nothing to run for 100.0 ms longer"));
  EXPECT_THAT(found[0].remedy, HasSubstr("loading of data"));
}

// By the run's own products 1e12 FLOPs take 0.1 s, at half of their rate 0.2 s: as the plan says.
TEST(Findings, UnfusedAttentionIsWhatItTakesBeyondOneKernel) {
  RankTimes rank = as_planned();
  rank.ops["attention"].seconds = .5;
  rank.ops["attention"].unfused_s = .4;
  const std::vector<Finding> found = findings({rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds, .3, 1e-12);
  EXPECT_THAT(found[0].what, HasSubstr("attention runs unfused"));
  EXPECT_THAT(found[0].remedy, HasSubstr("scaled_dot_product_attention"));
  EXPECT_EQ(findings({rank}, true).size(), 1U);  // on cores too
}

TEST(Findings, ManySmallKernelsOfANorm) {
  RankTimes rank = as_planned();
  rank.ops["norm"] = {.count = 160, .seconds = .25};
  const std::vector<Finding> found = findings({rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds, .15, 1e-12);
  EXPECT_THAT(found[0].what, HasSubstr("norm runs as 8 kernels each, the plan's stack has 2"));
}

// Twice as long, all alike: the device. Of fc2's 0.6 s another 0.2 s are its own.
TEST(Findings, ALowClockIsToldFromOneSlowProduct) {
  RankTimes rank = as_planned();
  rank.ops["fc1"].seconds = .4;
  rank.ops["fc2"].seconds = .4;
  std::vector<Finding> found = findings({rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds, .4, 1e-12);
  EXPECT_THAT(found[0].what, HasSubstr("products all run at 50 % of the plan's rate"));
  rank.ops["fc1"].seconds = .9;  // its weight makes the pace 1 again where fc1 is the slow one
  rank.ops["fc2"].seconds = .2;
  EXPECT_THAT(findings({rank}, true), testing::Not(IsEmpty()));
  double sum = 0;
  for (const Finding& finding : findings({rank})) sum += finding.seconds;
  EXPECT_NEAR(sum, .7, 1e-9);  // what is beyond the plan, however it is divided
}

TEST(Findings, CollectivesThatThePlanHides) {
  RankTimes rank = as_planned();
  rank.exposed_s["all_reduce"] = .1;
  std::vector<Finding> found = findings({rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds, .1, 1e-12);
  EXPECT_THAT(found[0].what, HasSubstr("all_reduce stands exposed for 100.0 ms"));
  EXPECT_THAT(found[0].remedy, HasSubstr("bucket_cap_mb"));
  rank.ops["all_reduce"] = {.count = 5, .seconds = .4, .bytes = 4e9};
  rank.exposed_s["all_reduce"] = .3;
  found = findings({rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].what, HasSubstr("4.0 times what the plan's links take"));
  EXPECT_THAT(found[0].what, HasSubstr("at 10.00 GB/s"));
}

TEST(Findings, GapsOfTheHostAreLaunchesOrOneStretch) {
  RankTimes rank = as_planned();
  rank.idle_s = .5;
  rank.gaps = 5000;
  std::vector<Finding> found = findings({rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds, .3, 1e-12);
  EXPECT_THAT(found[0].what, HasSubstr("in 5000 gaps of 100 us: the host launches too late"));
  EXPECT_THAT(found[0].remedy, HasSubstr("CUDA graphs"));
  rank.longest_gap_s = .29;
  found = findings({rank});
  EXPECT_THAT(found[0].what, HasSubstr("290.0 ms of it at a stretch"));
  EXPECT_THAT(found[0].remedy, HasSubstr("load data ahead"));
}

TEST(Findings, WhatIsComputedAgain) {
  RankTimes rank = as_planned();
  rank.ops["fc1"] = {.count = 20, .seconds = .4, .recomputed_s = .2, .flops = 4e12};
  const std::vector<Finding> found = findings({rank});
  ASSERT_FALSE(found.empty());
  const auto again = std::ranges::find_if(
      found, [](const Finding& finding) { return finding.what.find("computed again") != std::string::npos; });
  ASSERT_NE(again, found.end());
  EXPECT_NEAR(again->seconds, .2, 1e-12);
}

// The plan gives rank 0 the most to compute; of two that it gives the same the faster one stands for all.
TEST(Findings, TheTypicalRankIsOneOfTheBusiest) {
  std::vector<RankTimes> ranks{as_planned(0), as_planned(1), as_planned(2)};
  ranks[0].compute_s = .9, ranks[1].compute_s = .85, ranks[2].compute_s = .1;
  std::map<int, RankPlan> plans{{0, plan()}, {1, plan()}, {2, plan()}};
  plans[2].idle_s = .9;
  EXPECT_EQ(typical_rank({ranks, plans, false, true}).rank, 1);
}

}  // namespace
}  // namespace trivium::calibration::foreign
