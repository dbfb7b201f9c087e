#include "planner/bound/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace trivium::planner {
namespace {

std::vector<models::LayersOfKind> two_kinds(std::int64_t first, std::int64_t second) {
  std::vector<models::LayersOfKind> kinds(2);
  kinds[0].count = first;
  kinds[1].count = second;
  return kinds;
}

// 2 layers of 10 and 4 of 5 take 40 together, a head 8: two stages take 24 each, less the picosecond that rounding may
// have added.
TEST(Spread, StagesThatAreAlikeTakeHalfOfAll) {
  const std::vector<KindLoad> loads{{0, {10, 5}}, {8, {10, 5}}};
  EXPECT_EQ(spread(loads, two_kinds(2, 4)), 23);
}

// The second stage is half as fast: it does a third of the 60. Of kinds it counts the one that it is least slow for.
TEST(Spread, SlowerStagesTakeLess) {
  const auto kinds = two_kinds(2, 8);
  EXPECT_EQ(spread(std::vector<KindLoad>{{0, {10, 5}}, {0, {20, 10}}}, kinds), 39);
  EXPECT_EQ(spread(std::vector<KindLoad>{{0, {10, 5}}, {0, {20, 50}}}, kinds), 39);
}

TEST(Spread, LayersThatTakeNothingDoNotCount) {
  EXPECT_EQ(spread(std::vector<KindLoad>{{0, {0, 5}}, {0, {0, 5}}}, two_kinds(3, 4)), 9);
  EXPECT_EQ(spread(std::vector<KindLoad>{{7, {0, 0}}, {0, {0, 0}}}, two_kinds(3, 4)), 0);
}

// The slowest stage of the best of all distributions of two kinds over three stages.
std::int64_t fastest(const std::vector<KindLoad>& loads, std::int64_t first, std::int64_t second) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t a = 0; a <= first; ++a) {
    for (std::int64_t b = 0; a + b <= first; ++b) {
      for (std::int64_t c = 0; c <= second; ++c) {
        for (std::int64_t d = 0; c + d <= second; ++d) {
          const std::int64_t counts[3][2] = {{a, c}, {b, d}, {first - a - b, second - c - d}};
          std::int64_t slowest = 0;
          for (std::size_t s = 0; s < 3; ++s) {
            slowest =
                std::max(slowest, loads[s].ends + counts[s][0] * loads[s].layer[0] + counts[s][1] * loads[s].layer[1]);
          }
          best = std::min(best, slowest);
        }
      }
    }
  }
  return best;
}

TEST(Spread, NoDistributionIsFaster) {
  std::mt19937 random(5);
  const auto any = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::int64_t tight = 0;
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    std::vector<KindLoad> loads;
    for (int s = 0; s < 3; ++s) loads.push_back({any(-50, 100), {any(0, 300), any(1, 300)}});
    const std::int64_t first = any(1, 6), second = any(1, 6);
    const std::int64_t bound = spread(loads, two_kinds(first, second)), best = fastest(loads, first, second);
    EXPECT_LE(bound, best);
    tight += 2 * bound > best ? 1 : 0;
  }
  EXPECT_GT(3 * tight, kTries);  // nothing would be no larger, too
}

}  // namespace
}  // namespace trivium::planner
