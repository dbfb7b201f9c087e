#include "gui/timeline/spans/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

constexpr float kRounding = 2e-5F;  // sums of floats over a few hundred spans

/// Every span against every column: slow and plain. `edges`: columns + 1 of them.
std::vector<double> brute_force(const SpanStore& store, const std::vector<std::uint32_t>& tracks,
                                const std::vector<std::int64_t>& edges) {
  const std::size_t slots = store.categories().size();
  std::vector<double> shares((edges.size() - 1) * slots);
  for (const std::uint32_t t : tracks) {
    for (std::uint32_t s = store.tracks()[t].first; s < store.tracks()[t].first + store.tracks()[t].count; ++s) {
      for (std::size_t c = 0; c + 1 < edges.size(); ++c) {
        const auto overlap = std::min(store.end_of(s), edges[c + 1]) - std::max(store.start_of(s), edges[c]);
        if (overlap <= 0) continue;
        shares[c * slots + static_cast<std::size_t>(store.category_of(s))] +=
            static_cast<double>(overlap) / static_cast<double>(edges[c + 1] - edges[c]) /
            static_cast<double>(tracks.size());
      }
    }
  }
  return shares;
}

std::vector<std::int64_t> edges_of(const TimeScale& scale) {
  std::vector<std::int64_t> edges;
  for (int c = 0; c <= scale.columns; ++c) edges.push_back(scale.edge(c));
  return edges;
}

void expect_equal(const std::vector<float>& shares, const std::vector<double>& expected) {
  ASSERT_EQ(shares.size(), expected.size());
  for (std::size_t i = 0; i < shares.size(); ++i) ASSERT_NEAR(shares[i], expected[i], kRounding) << "at " << i;
}

std::vector<float> cover_track(const SpanStore& store, std::uint32_t track, const TimeScale& scale) {
  std::vector<float> shares(static_cast<std::size_t>(scale.columns) * store.categories().size());
  add_coverage(store, track, scale, 1, shares);
  return shares;
}

TEST(Coverage, OfOneSpanIsWhatItTakesOfEveryColumn) {
  // Columns of 100 ps; the span takes half of the first, all of the second, a fifth of the third.
  const auto store = given_spans({{{50, 220}}});
  expect_equal(cover_track(*store, 0, {0, 400, 4}), {0.5, 1, 0.2, 0});
}

TEST(Coverage, KeepsABubbleOfAThousandthOfAColumn) {
  // 1,000 spans of 999 ps, 1 ps apart, in columns of 10,000 ps: every column idles for 10 ps.
  std::vector<Given> spans;
  for (std::int64_t i = 0; i < 1000; ++i) spans.push_back({i * 1000, i * 1000 + 999});
  const auto store = given_spans({spans});
  for (const float share : cover_track(*store, 0, {0, 1'000'000, 100})) EXPECT_NEAR(share, 0.999F, 1e-6F);
}

TEST(Coverage, EqualsBruteForceAtEveryZoomWhetherSpansOrBoundariesAreWalked) {
  std::mt19937 random(7);
  for (const int spans : {1, 15, 16, 17, 300, 5000}) {  // around the size of a block, and many a column
    const auto store = make_spans({.spans_per_lane = spans, .seed = static_cast<unsigned>(spans)});
    for (int round = 0; round < 12; ++round) {
      const std::int64_t length = std::max<std::int64_t>(64, store->end() >> (round % 12));
      TimeScale scale;
      scale.begin_ps = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store->end() + 1)) - length / 4;
      scale.end_ps = scale.begin_ps + length;
      scale.columns = 1 + static_cast<int>(random() % 60);
      const auto track = static_cast<std::uint32_t>(random() % store->tracks().size());
      expect_equal(cover_track(*store, track, scale), brute_force(*store, {track}, edges_of(scale)));
    }
  }
}

TEST(Coverage, OfAFoldedRowIsTheMeanOfItsPrimaryLanes) {
  const auto store = make_spans({.nodes = 1, .devices_per_node = 3, .spans_per_lane = 200});
  ASSERT_EQ(store->summary_of(0), nullptr);  // few enough tracks to add up
  const TimeScale scale{0, store->end(), 33};
  std::vector<float> shares(33 * store->categories().size());
  add_row_coverage(*store, 0, scale, shares);
  const auto tracks = store->shown_tracks(0);
  EXPECT_EQ(tracks.size(), 3U);
  expect_equal(shares, brute_force(*store, tracks, edges_of(scale)));
}

TEST(Coverage, OfManyLanesIsExactForColumnsMovedByAnEighthAtMost) {
  const auto store = make_spans({.nodes = 2, .devices_per_node = 8, .spans_per_lane = 300});
  const Summary* summary = store->summary_of(0);
  ASSERT_NE(summary, nullptr);
  const TimeScale scale{-5000, store->end() + 5000, 40};
  ASSERT_GE(scale.column_ps(), static_cast<double>(4 * summary->bin_ps));
  std::vector<std::int64_t> moved;
  for (const std::int64_t edge : edges_of(scale)) {
    const auto bin = std::llround(static_cast<double>(edge - store->begin()) / static_cast<double>(summary->bin_ps));
    moved.push_back(store->begin() + bin * summary->bin_ps);
    EXPECT_LE(static_cast<double>(std::abs(moved.back() - edge)), scale.column_ps() / 8 + 1);
  }
  std::vector<float> shares(40 * store->categories().size());
  add_row_coverage(*store, 0, scale, shares);
  expect_equal(shares, brute_force(*store, store->shown_tracks(0), moved));
}

TEST(Coverage, OfManyLanesIsExactWhenZoomedIn) {
  const auto store = make_spans({.nodes = 2, .devices_per_node = 8, .spans_per_lane = 300});
  const TimeScale scale{store->end() / 2, store->end() / 2 + 40 * store->summary_of(0)->bin_ps, 40};
  std::vector<float> shares(40 * store->categories().size());
  add_row_coverage(*store, 0, scale, shares);
  expect_equal(shares, brute_force(*store, store->shown_tracks(0), edges_of(scale)));
}

// Hours in picoseconds have more digits than a double.
TEST(Coverage, OfHoursEndsWithTheLastColumn) {
  constexpr std::int64_t kHours = 15'750'987'654'321'123;
  constexpr float kBeyond = 42;
  const auto store = given_spans({{{0, kHours}}});
  for (int columns = 1; columns < 2'000; ++columns) {
    std::vector<float> shares(static_cast<std::size_t>(columns) + 8);
    std::fill(shares.begin() + columns, shares.end(), kBeyond);
    add_coverage(*store, 0, {0, kHours, columns}, 1,
                 std::span(shares).first(static_cast<std::size_t>(columns) * store->categories().size()));
    for (int c = 0; c < columns; ++c) ASSERT_NEAR(shares[static_cast<std::size_t>(c)], 1, kRounding) << c;
    for (auto s = shares.begin() + columns; s != shares.end(); ++s) ASSERT_EQ(*s, kBeyond) << columns << " columns";
  }
}

TEST(TimeScale, EndsWithItsLastEdgeHoweverLong) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const auto length = static_cast<std::int64_t>((random() | 1ULL << 62) >> (1 + random() % 50));
    const auto begin = static_cast<std::int64_t>(random() % (1ULL << 61)) - (std::int64_t{1} << 60);
    const TimeScale scale{begin, begin + length, 1 + static_cast<int>(random() % 16'384)};
    ASSERT_EQ(scale.edge(0), scale.begin_ps);
    ASSERT_EQ(scale.edge(scale.columns), scale.end_ps) << length << " ps in " << scale.columns << " columns";
    const auto column = static_cast<int>(random() % static_cast<std::uint64_t>(scale.columns));
    ASSERT_LE(scale.edge(column), scale.edge(column + 1));
    ASSERT_NEAR(static_cast<double>(scale.edge(column) - begin), scale.column_ps() * column,
                0.5 + 1e-15 * static_cast<double>(length));
  }
}

TEST(TimeScale, GoesThereAndBack) {
  const TimeScale scale{1000, 5000, 100};
  EXPECT_EQ(scale.edge(0), 1000);
  EXPECT_EQ(scale.edge(50), 3000);
  EXPECT_EQ(scale.edge(100), 5000);
  EXPECT_DOUBLE_EQ(scale.x_of(3000), 50);
  EXPECT_EQ(scale.time_at(50), 3000);
}

}  // namespace
}  // namespace trivium::gui
