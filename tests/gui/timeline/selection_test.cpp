#include "gui/timeline/spans/selection.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

TEST(Selection, SaysWhatARangeHoldsOfEveryCategory) {
  // [50, 150) over two devices: forward 50 to 80 on the first; backward 100 to 150 on the second; idle the rest.
  const auto store = given_spans({{{0, 80, Category::kForward}}, {{100, 200, Category::kBackward}}});
  const Breakdown all = break_down(*store, 50, 150);
  ASSERT_EQ(all.shares.size(), 2U);
  EXPECT_EQ(store->categories()[static_cast<std::size_t>(all.shares[0].category)].name, "backward");
  EXPECT_EQ(all.shares[0].ps, 50);
  EXPECT_EQ(all.shares[1].ps, 30);
  EXPECT_EQ(all.shares[1].spans, 1U);
  EXPECT_EQ(all.tracks, 2U);
  EXPECT_EQ(all.idle_ps, 200 - 80);
  const Breakdown first = break_down(*store, 1, 50, 150);
  EXPECT_EQ(first.total_ps(), 100);
  EXPECT_EQ(first.idle_ps, 70);
}

TEST(Selection, SumsUpExactlyWhateverIsSelected) {
  std::mt19937 random(3);
  const auto store = make_spans({.nodes = 2, .devices_per_node = 3, .spans_per_lane = 400});
  for (int round = 0; round < 200; ++round) {
    const auto end = static_cast<std::uint64_t>(store->end());
    std::int64_t a = static_cast<std::int64_t>(random() % end) - 100,
                 b = static_cast<std::int64_t>(random() % end) + 100;
    if (a > b) std::swap(a, b);
    const auto row = static_cast<std::int32_t>(random() % store->rows().size());
    const Breakdown part = break_down(*store, row, a, b);
    std::int64_t sum = part.idle_ps;
    for (const Share& share : part.shares) sum += share.ps;
    ASSERT_EQ(sum, part.total_ps());
    ASSERT_GE(part.idle_ps, 0);
    ASSERT_TRUE(std::is_sorted(part.shares.begin(), part.shares.end(),
                               [](const Share& x, const Share& y) { return x.ps > y.ps; }));
  }
}

TEST(Selection, CountsLanesBesideComputeApart) {
  const auto store = make_spans({.nodes = 1, .devices_per_node = 2, .spans_per_lane = 50});
  const Breakdown all = break_down(*store, 0, store->end());
  EXPECT_EQ(all.tracks, 2U);
  ASSERT_EQ(all.beside.size(), 1U);
  EXPECT_EQ(store->categories()[static_cast<std::size_t>(all.beside[0].category)].name, "data parallel");
  EXPECT_EQ(all.beside[0].spans, 100U);
  for (const Share& share : all.shares) EXPECT_NE(share.category, all.beside[0].category);
  // Alone, the lane stands for itself.
  std::int32_t lane = 0;
  while (store->rows()[static_cast<std::size_t>(lane)].name != "data") ++lane;
  EXPECT_EQ(break_down(*store, lane, 0, store->end()).shares.size(), 1U);
}

TEST(Selection, OfNoTimeHoldsNothing) {
  const auto store = given_spans({{{0, 80}}});
  const Breakdown none = break_down(*store, 40, 40);
  EXPECT_EQ(none.total_ps(), 0);
  EXPECT_EQ(none.idle_ps, 0);
}

}  // namespace
}  // namespace trivium::gui
