#include "gui/timeline/spans/row_layout.h"

#include <gtest/gtest.h>

#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

std::vector<std::string> names(const RowLayout& layout, const SpanStore& store) {
  std::vector<std::string> out;
  for (const PlacedRow& row : layout.rows()) out.push_back(store.rows()[static_cast<std::size_t>(row.id.row)].name);
  return out;
}

class RowLayoutTest : public testing::Test {
 protected:
  // 0 cluster, 1 node 0, 2 rank 0, 3 compute, 4 data, 5 rank 1, 6 compute, 7 data
  RowLayoutTest() { layout.set_stores({store}); }
  std::shared_ptr<const SpanStore> store = make_spans({.nodes = 1, .devices_per_node = 2, .spans_per_lane = 3});
  RowLayout layout;
};

TEST_F(RowLayoutTest, ShowsEveryRowAtFirst) {
  EXPECT_EQ(names(layout, *store),
            (std::vector<std::string>{"cluster", "node 0", "rank 0", "compute", "data", "rank 1", "compute", "data"}));
  const PlacedRow& last = layout.rows().back();
  EXPECT_EQ(layout.height(), last.y + last.height + RowHeights{}.gap);
}

// 8 rows: cluster (bare: its node shows the same), node, 2 ranks, 4 lanes = 15 + 3 · 20 + 4 · 16 = 139, and 8 gaps
// of 2.
TEST_F(RowLayoutTest, GrowsIntoTheRoomThereIsToTwentyTimesItsHeight) {
  ASSERT_EQ(layout.height(), 155);
  layout.set_room(100);
  EXPECT_EQ(layout.height(), 155);  // nothing shrinks: it is scrolled
  layout.set_room(16 + 208);        // all but the bare one by 193 / 124, whole pixels: 15 + 3 · 31 + 4 · 24 = 204
  EXPECT_EQ(layout.height(), 16 + 204);
  layout.set_room(5000);
  EXPECT_EQ(layout.height(), 16 + 15 + 20 * 124);
  layout.set_folded({0, 2}, true);  // 2 lanes fewer
  EXPECT_EQ(layout.height(), 12 + 15 + 20 * 92);
}

// 155 pixels have no room in 120, those without the lanes of one rank have, 36 fewer; without the lanes of both there
// are 15 + 3 · 20 and 4 gaps: 83. In 30 all is folded into one row, which grows to twenty times its height.
TEST_F(RowLayoutTest, FoldsUntilAllHasRoom) {
  layout.fold_to(200);
  EXPECT_EQ(layout.height(), 155);
  layout.fold_to(120);
  EXPECT_EQ(layout.height(), 119);
  layout.fold_to(118);
  EXPECT_EQ(layout.height(), 83);
  layout.fold_to(30);
  EXPECT_EQ(names(layout, *store), (std::vector<std::string>{"cluster"}));
  layout.set_room(500);
  EXPECT_EQ(layout.rows()[0].height, 20 * 20);
}

// 4 nodes of 2 ranks in each of two timelines: in 400 pixels all nodes are folded but the first of both, below which
// are 2 rows of ranks.
TEST(RowLayout, KeepsOpenOfEveryTimelineWhatThereIsRoomFor) {
  const auto large = make_spans({.nodes = 4, .devices_per_node = 2, .spans_per_lane = 3});
  RowLayout layout;
  layout.set_stores({large, large});
  const auto open = [&](int pixels) {
    layout.fold_to(pixels);
    EXPECT_LE(layout.height(), pixels);
    std::array<int, 2> ranks{};
    for (const PlacedRow& row : layout.rows()) {
      const Row& shown = large->rows()[static_cast<std::size_t>(row.id.row)];
      ranks[static_cast<std::size_t>(row.id.timeline)] += shown.kind == RowKind::kDevice ? 1 : 0;
    }
    EXPECT_EQ(ranks[0], ranks[1]) << pixels;
    return ranks[0];
  };
  EXPECT_EQ(open(1'500), 8);
  EXPECT_EQ(open(320), 2);
  EXPECT_EQ(open(230), 0);
  EXPECT_EQ(open(1'500), 8);  // as the window grows again
}

TEST_F(RowLayoutTest, HidesWhatIsBelowAFoldedRow) {
  layout.set_folded({0, 2}, true);
  EXPECT_EQ(names(layout, *store),
            (std::vector<std::string>{"cluster", "node 0", "rank 0", "rank 1", "compute", "data"}));
  EXPECT_EQ(layout.visible_row_of({0, 4})->id.row, 2);
  EXPECT_EQ(layout.visible_row_of({0, 6})->id.row, 6);
}

TEST_F(RowLayoutTest, KeepsInnerFoldsWhenAnOuterRowOpensAgain) {
  layout.set_folded({0, 5}, true);
  layout.set_folded({0, 1}, true);
  EXPECT_EQ(names(layout, *store), (std::vector<std::string>{"cluster", "node 0"}));
  layout.set_folded({0, 1}, false);
  EXPECT_EQ(layout.rows().size(), 6U);
  EXPECT_TRUE(layout.is_folded({0, 5}));
}

TEST_F(RowLayoutTest, FoldsAllRowsOfAKind) {
  layout.set_all_folded(RowKind::kDevice, true);
  EXPECT_EQ(names(layout, *store), (std::vector<std::string>{"cluster", "node 0", "rank 0", "rank 1"}));
  layout.set_all_folded(RowKind::kDevice, false);
  EXPECT_EQ(layout.rows().size(), 8U);
}

TEST_F(RowLayoutTest, OpensWhatHidesARow) {
  layout.set_all_folded(RowKind::kDevice, true);
  layout.set_all_folded(RowKind::kCluster, true);
  layout.reveal({0, 7});
  EXPECT_EQ(layout.visible_row_of({0, 7})->id.row, 7);
  EXPECT_TRUE(layout.is_folded({0, 2}));
}

TEST_F(RowLayoutTest, FindsRowsByPlace) {
  for (const PlacedRow& row : layout.rows()) {
    EXPECT_EQ(layout.row_at(row.y), &row);
    EXPECT_EQ(layout.row_at(row.y + row.height - 1), &row);
    EXPECT_EQ(layout.row_at(row.y + row.height), nullptr);  // the gap
  }
  EXPECT_EQ(layout.row_at(-1), nullptr);
  EXPECT_EQ(layout.row_at(layout.height() + 100), nullptr);
  const auto [first, last] = layout.rows_between(layout.rows()[2].y, layout.rows()[4].y);
  EXPECT_EQ(first, 2U);
  EXPECT_EQ(last, 4U);
}

TEST_F(RowLayoutTest, RemembersFoldsForANewTimelineOfTheSameRows) {
  layout.set_folded({0, 2}, true);
  layout.set_stores({make_spans({.nodes = 1, .devices_per_node = 2, .spans_per_lane = 9})});
  EXPECT_TRUE(layout.is_folded({0, 2}));
  layout.set_stores({make_spans({.nodes = 2, .devices_per_node = 2, .spans_per_lane = 9})});
  EXPECT_FALSE(layout.is_folded({0, 2}));
}

TEST(RowLayout, LeavesAGroupOfOneGroupBare) {
  RowLayout layout;
  layout.set_stores({make_spans({.nodes = 2, .devices_per_node = 1, .spans_per_lane = 1})});
  EXPECT_FALSE(layout.rows()[0].bare);  // cluster of two nodes
  EXPECT_TRUE(layout.rows()[1].bare);   // node of one rank
  EXPECT_FALSE(layout.rows()[2].bare);  // rank with lanes
  layout.set_folded({0, 1}, true);
  EXPECT_FALSE(layout.rows()[1].bare);
}

TEST(RowLayout, FoldsDevicesAndNodesOfALargeClusterAtFirst) {
  RowLayout layout;
  layout.set_stores({make_spans({.nodes = 4, .devices_per_node = 12, .spans_per_lane = 1})});
  EXPECT_EQ(layout.rows().size(), 1U + 4 + 48);
  layout.set_stores({make_spans({.nodes = 20, .devices_per_node = 8, .spans_per_lane = 1})});
  EXPECT_EQ(layout.rows().size(), 1U + 20);
}

TEST_F(RowLayoutTest, ShowsOneRowAloneWithWhatIsBelow) {
  layout.set_folded({0, 5}, true);
  layout.set_only(RowId{0, 5});  // opens it
  EXPECT_EQ(names(layout, *store), (std::vector<std::string>{"rank 1", "compute", "data"}));
  EXPECT_EQ(layout.rows()[0].y, 0);
  EXPECT_EQ(layout.visible_row_of({0, 3}), nullptr);
  EXPECT_EQ(layout.visible_row_of({0, 7})->id.row, 7);
  layout.set_only(std::nullopt);
  EXPECT_EQ(layout.rows().size(), 8U);
}

TEST_F(RowLayoutTest, RevealsWhatWasLeftOut) {
  layout.set_only(RowId{0, 5});
  layout.reveal({0, 6});
  EXPECT_TRUE(layout.only().has_value());
  layout.reveal({0, 3});
  EXPECT_FALSE(layout.only().has_value());
  EXPECT_EQ(layout.visible_row_of({0, 3})->id.row, 3);
}

}  // namespace
}  // namespace trivium::gui
