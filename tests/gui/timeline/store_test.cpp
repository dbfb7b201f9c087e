#include <gtest/gtest.h>

#include "gui/timeline/spans/span_store.h"
#include "gui/timeline/spans/store_builder.h"
#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

TEST(SpanStore, HoldsRowsInPreorderWhateverOrderTheyCameIn) {
  StoreBuilder builder;
  const auto root = builder.add_row(kNoRow, RowKind::kCluster, "cluster", 0);
  const auto second = builder.add_row(root, RowKind::kDevice, "rank 1", 1);
  const auto first = builder.add_row(root, RowKind::kDevice, "rank 0", 0);
  builder.add_row(second, RowKind::kLane, "compute", 0);
  builder.add_row(first, RowKind::kLane, "data", 3);
  builder.add_row(first, RowKind::kLane, "compute", 0);
  const auto store = builder.build();
  std::vector<std::string> names;
  for (const Row& row : store->rows()) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"cluster", "rank 0", "compute", "data", "rank 1", "compute"}));
  EXPECT_EQ(store->rows()[0].end, 6);
  EXPECT_EQ(store->rows()[1].end, 4);
  EXPECT_EQ(store->rows()[5].depth, 2);
  EXPECT_EQ(store->device_of(3), 1);
}

TEST(SpanStore, PutsOverlappingSpansOnTracksOfTheirOwn) {
  // The inner spans of a call stack stand below the outer one.
  const auto store = given_spans({{{0, 100}, {10, 40}, {40, 60}, {15, 20}, {100, 120}}});
  ASSERT_EQ(store->rows()[2].tracks, 3U);
  EXPECT_EQ(store->tracks()[0].count, 2U);
  EXPECT_EQ(store->tracks()[1].count, 2U);
  EXPECT_EQ(store->tracks()[2].count, 1U);
  EXPECT_EQ(store->start_of(store->span_at(1, 45)), 40);
  EXPECT_EQ(store->span_at(2, 45), kNoSpan);
}

TEST(SpanStore, CountsWhatOverlapsTooMuchToBeShown) {
  const std::vector<Given> many(StoreBuilder::kMostTracks + 5, Given{0, 10});
  const auto store = given_spans({many});
  EXPECT_EQ(store->left_out(), 5U);
  EXPECT_EQ(store->size(), StoreBuilder::kMostTracks);
}

TEST(SpanStore, KeepsSpansWithoutLengthBesideOthersThatBeginWithThem) {
  const auto store = given_spans({{{10, 30}, {10, 10}, {30, 30}}});
  EXPECT_EQ(store->rows()[2].tracks, 1U);
  EXPECT_EQ(store->end_of(0), 10);
  EXPECT_EQ(store->end_of(1), 30);
}

TEST(SpanStore, SumsUpWhatIsCoveredBeforeAMoment) {
  const auto store = make_spans({.spans_per_lane = 100});
  std::vector<std::int64_t> all(store->categories().size());
  for (std::int64_t ps = -10; ps < store->end() + 10; ps += 997) {
    std::vector<std::int64_t> sums(all.size()), expected(all.size());
    store->add_covered_before(0, ps, sums);
    for (std::uint32_t s = 0; s < store->tracks()[0].count; ++s) {
      expected[static_cast<std::size_t>(store->category_of(s))] +=
          std::max<std::int64_t>(0, std::min(store->end_of(s), ps) - store->start_of(s));
    }
    ASSERT_EQ(sums, expected) << ps;
  }
}

TEST(SpanStore, IsEmptyWithoutSpans) {
  const auto store = StoreBuilder().build();
  EXPECT_EQ(store->size(), 0U);
  EXPECT_EQ(store->begin(), 0);
  EXPECT_EQ(store->end(), 0);
  EXPECT_TRUE(store->rows().empty());
}

TEST(StoreBuilder, CallsCategoriesBeyondTheMostOther) {
  StoreBuilder builder;
  for (int i = 0; i < 40; ++i) builder.category("kind " + std::to_string(i));
  EXPECT_EQ(builder.category("one more"), builder.category(Category::kOther));
  EXPECT_EQ(builder.build()->categories().size(), StoreBuilder::kMostCategories);
}

}  // namespace
}  // namespace trivium::gui
