#include "planner/bound/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace trivium::planner {
namespace {

using Counts = std::vector<int>;

TEST(Balance, AStageTwiceAsFastGetsTwiceTheLayers) {
  const std::array<StageLoad, 2> loads{{{0, 10, 6}, {0, 20, 6}}};
  EXPECT_EQ(balance(loads, 6), (Counts{4, 2}));  // 40 and 40
}

TEST(Balance, EmbeddingAndHeadCountAsLoad) {
  // Shares of 2, 3, 2 would take 35 + 20, 30, 45 + 20; with 2, 4, 1 layers the slowest takes 55 instead of 65.
  const std::array<StageLoad, 3> loads{{{35, 10, 9}, {0, 10, 9}, {45, 10, 9}}};
  EXPECT_EQ(balance(loads, 7), (Counts{2, 4, 1}));
}

TEST(Balance, WhatTheSlowestLeavesOpenGoesToTheFastStages) {
  // The slowest stage takes 100 for its one layer whatever the others do: 3 layers cost least on the stage of 1 each.
  const std::array<StageLoad, 3> loads{{{0, 100, 9}, {0, 5, 9}, {0, 1, 9}}};
  EXPECT_EQ(balance(loads, 5), (Counts{1, 1, 3}));
}

TEST(Balance, KeepsToWhatFits) {
  const std::array<StageLoad, 2> loads{{{0, 1, 3}, {0, 10, 9}}};
  EXPECT_EQ(balance(loads, 8), (Counts{3, 5}));
  const std::array<StageLoad, 2> full{{{0, 1, 3}, {0, 10, 4}}};
  EXPECT_TRUE(balance(full, 8).empty());
  const std::array<StageLoad, 2> none{{{0, 1, 0}, {0, 10, 9}}};
  EXPECT_TRUE(balance(none, 8).empty());
}

// Every distribution of up to nine layers over three stages.
TEST(Balance, IsAsGoodAsTryingAll) {
  std::mt19937 random(5);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < 300; ++i) {
    const int layers = pick(3, 9);
    std::array<StageLoad, 3> loads;
    for (StageLoad& load : loads) load = {pick(0, 30), pick(1, 20), pick(1, layers)};
    std::pair<std::int64_t, std::int64_t> best{-1, -1};
    for (int a = 1; a <= loads[0].most; ++a) {
      for (int b = 1; b <= loads[1].most; ++b) {
        const int c = layers - a - b;
        if (c < 1 || c > loads[2].most) continue;
        const std::array<std::int64_t, 3> times{loads[0].of(a), loads[1].of(b), loads[2].of(c)};
        const std::pair cost{*std::max_element(times.begin(), times.end()), times[0] + times[1] + times[2]};
        if (best.first < 0 || cost < best) best = cost;
      }
    }
    const Counts found = balance(loads, layers);
    if (best.first < 0) {
      EXPECT_TRUE(found.empty());
      continue;
    }
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0] + found[1] + found[2], layers);
    std::pair<std::int64_t, std::int64_t> cost{0, 0};
    for (std::size_t s = 0; s < 3; ++s) {
      EXPECT_LE(found[s], loads[s].most);
      cost.first = std::max(cost.first, loads[s].of(found[s]));
      cost.second += loads[s].of(found[s]);
    }
    EXPECT_EQ(cost, best);
  }
}

}  // namespace
}  // namespace trivium::planner
