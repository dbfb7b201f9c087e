#include "gui/timeline/spans/draw_list.h"

#include <gtest/gtest.h>

#include "gui/timeline/spans/search.h"
#include "gui/timeline/spans/store_builder.h"
#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

struct Page {
  explicit Page(std::shared_ptr<const SpanStore> store) {
    layout.set_stores({store});
    scene.timelines.push_back({std::move(store), nullptr, nullptr});
    scene.layout = &layout;
  }
  const DrawList& draw(std::int64_t begin, std::int64_t end, int width) {
    build_draw_list(scene, {begin, end, width, 0, layout.height(), 0}, list);
    return list;
  }
  RowLayout layout;
  Scene scene;
  DrawList list;
};

TEST(DrawList, FramesAndLabelsWhatIsWideEnough) {
  // One pixel per picosecond: 50 wide gets a frame and a name, 20 a frame, 2 neither.
  Page page(given_spans({{{0, 50}, {60, 80}, {90, 92}}}));
  const DrawList& list = page.draw(0, 100, 100);
  ASSERT_EQ(list.frames.size(), 2U);
  EXPECT_FLOAT_EQ(list.frames[0].x, 0);
  EXPECT_FLOAT_EQ(list.frames[0].width, 50);
  EXPECT_TRUE(list.frames[0].labelled);
  EXPECT_FLOAT_EQ(list.frames[1].x, 60);
  EXPECT_FALSE(list.frames[1].labelled);
  ASSERT_EQ(list.strips.size(), 2U);  // device and lane; the cluster of one device is bare
  EXPECT_TRUE(list.strips[0].stacked);
  EXPECT_FALSE(list.strips[1].stacked);
  EXPECT_FLOAT_EQ(list.shares[list.strips[1].first + 91], 1);
  EXPECT_FLOAT_EQ(list.shares[list.strips[1].first + 93], 0);
}

TEST(DrawList, FindsEveryWideSpanBetweenMillionsOfShortOnes) {
  std::vector<Given> spans;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    spans.push_back({i * 10, i * 10 + (i % 5'000 == 4'999 ? 9'000'000 : 5)});
    if (i % 5'000 == 4'999) {  // what follows stands after the long one
      const std::int64_t end = spans.back().end;
      for (int k = 0; k < 7; ++k) spans.push_back({end + k * 10, end + k * 10 + 5});
      break;
    }
  }
  Page page(given_spans({spans}));
  const DrawList& list = page.draw(0, 10'000'000, 1000);
  ASSERT_EQ(list.frames.size(), 1U);
  EXPECT_EQ(page.scene.timelines[0].spans->end_of(list.frames[0].span) -
                page.scene.timelines[0].spans->start_of(list.frames[0].span),
            9'000'000);
}

TEST(DrawList, ItsLengthIsBoundByThePageNotByTheSpans) {
  for (const int spans : {1'000, 100'000}) {
    Page page(make_spans({.nodes = 1, .devices_per_node = 2, .spans_per_lane = spans}));
    page.scene.timelines[0].matches =
        std::make_shared<std::vector<std::uint32_t>>(find_spans(*page.scene.timelines[0].spans, "forward"));
    page.scene.timelines[0].path = std::make_shared<CriticalPath>(critical_path(*page.scene.timelines[0].spans));
    const DrawList& list = page.draw(0, page.scene.timelines[0].spans->end(), 500);
    EXPECT_EQ(list.strips.size(), page.layout.rows().size() - 1);  // the cluster of one node is bare
    EXPECT_LE(list.frames.size(), 4U * 500 / 3);
    EXPECT_LE(list.marks.size(), 4U * 500 + 2 * 4 * 500);
    EXPECT_FALSE(list.marks.empty());
  }
}

TEST(DrawList, LeavesOutRowsThatAreNotSeen) {
  Page page(make_spans({.nodes = 2, .devices_per_node = 2, .spans_per_lane = 20}));
  const PlacedRow& row = page.layout.rows()[4];
  build_draw_list(page.scene, {0, 1000, 100, row.y, row.height, 0}, page.list);
  ASSERT_EQ(page.list.strips.size(), 1U);
  EXPECT_FLOAT_EQ(page.list.strips[0].y, 0);
}

TEST(DrawList, MarksEveryMatchOfASearch) {
  Page page(given_spans({{{0, 10}, {20, 30, Category::kBackward}, {90, 100, Category::kBackward}}}));
  page.scene.timelines[0].matches = std::make_shared<std::vector<std::uint32_t>>(std::vector<std::uint32_t>{1, 2});
  const DrawList& list = page.draw(0, 100, 100);
  ASSERT_EQ(list.marks.size(), 2U);
  EXPECT_FLOAT_EQ(list.marks[0].x, 20);
  EXPECT_FLOAT_EQ(list.marks[1].x, 90);
  EXPECT_FALSE(list.marks[0].path);
}

TEST(DrawList, MarksTheCriticalPathOnWhateverRowShowsIt) {
  Page page(given_spans({{{0, 50}, {50, 100}}}));
  page.scene.timelines[0].path = std::make_shared<CriticalPath>(critical_path(*page.scene.timelines[0].spans));
  EXPECT_EQ(page.draw(0, 100, 100).marks.size(), 1U);  // two spans in a row are one mark
  EXPECT_FLOAT_EQ(page.list.marks[0].width, 100);
  page.layout.set_folded({0, 1}, true);
  ASSERT_EQ(page.draw(0, 100, 100).marks.size(), 1U);
  EXPECT_FLOAT_EQ(page.list.marks[0].y, static_cast<float>(page.layout.rows()[1].y));
}

TEST(DrawList, DrawsArrowsBetweenRowsUntilThereAreTooMany) {
  for (const int transfers : {3, 2000}) {
    StoreBuilder builder;
    const auto a = builder.add_row(kNoRow, RowKind::kLane, "a", 0), b = builder.add_row(kNoRow, RowKind::kLane, "b", 1);
    for (int i = 0; i < transfers; ++i) {
      NewSpan span;
      span.row = a;
      span.start_ps = i * 10;
      span.end_ps = i * 10 + 5;
      const auto from = builder.add(span);
      span.row = b;
      builder.add_flow(from, builder.add(span), true);
    }
    Page page(builder.build());
    const DrawList& list = page.draw(0, transfers * 10, 300);
    EXPECT_EQ(list.arrows_hidden, transfers > 1000);
    EXPECT_EQ(list.arrows.size(), transfers > 1000 ? 0U : 3U);
    if (!list.arrows.empty()) {
      EXPECT_LT(list.arrows[0].from_y, list.arrows[0].to_y);
    }
  }
}

TEST(DrawList, EndsWhereverItLooks) {
  std::mt19937 random(11);
  Page page(make_spans({.nodes = 1, .devices_per_node = 2, .spans_per_lane = 3000}));
  const std::int64_t end = page.scene.timelines[0].spans->end();
  for (int i = 0; i < 300; ++i) {
    const std::int64_t length = std::max<std::int64_t>(10, end >> (random() % 20));
    const std::int64_t begin = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * end)) - end / 2;
    page.draw(begin, begin + length, 1 + static_cast<int>(random() % 400));
    for (const Frame& frame : page.list.frames) EXPECT_GE(frame.width, 0);
  }
}

TEST(DrawList, GroupsShowTheSameWhetherTheirLanesAreSeenOrNot) {
  Page page(make_spans({.nodes = 2, .devices_per_node = 3, .spans_per_lane = 2'000}));
  const std::int64_t end = page.scene.timelines[0].spans->end();
  for (const std::int64_t length : {end, end / 7, end / 300}) {
    const DrawList whole = page.draw(0, length, 500);
    const auto group = std::find_if(whole.strips.begin(), whole.strips.end(), [](const auto& s) { return s.stacked; });
    build_draw_list(page.scene, {0, length, 500, 0, 1}, page.list);  // a pixel high: the first row alone
    ASSERT_EQ(page.list.strips.size(), 1U);
    ASSERT_TRUE(page.list.strips[0].stacked);
    for (std::size_t i = 0; i < page.list.shares.size(); ++i) {
      ASSERT_NEAR(page.list.shares[i], whole.shares[group->first + i], 1e-5F);
    }
  }
}

TEST(DrawList, LargePagesShowWhatTheirTracksCover) {
  // 20 devices, two lanes each, 3,000 columns: enough for several threads.
  Page page(make_spans({.nodes = 1, .devices_per_node = 20, .spans_per_lane = 2'000}));
  const SpanStore& store = *page.scene.timelines[0].spans;
  const DrawList& list = page.draw(0, store.end(), 3'000);
  const TimeScale scale{0, store.end(), 3'000};
  std::size_t s = 0;
  for (const PlacedRow& placed : page.layout.rows()) {
    if (placed.bare) continue;
    const Strip& strip = list.strips[s++];
    std::vector<float> alone(3'000 * store.categories().size());
    if (!placed.lane) {  // made of the lanes below it, some of which the page draws
      add_row_coverage(store, placed.id.row, scale, alone);
      for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(list.shares[strip.first + i], alone[i], 1e-5F);
      continue;
    }
    add_coverage(store, store.rows()[static_cast<std::size_t>(placed.id.row)].first_track, scale, 1, alone);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), list.shares.begin() + static_cast<std::ptrdiff_t>(strip.first)));
  }
  EXPECT_EQ(s, list.strips.size());
}

}  // namespace
}  // namespace trivium::gui
