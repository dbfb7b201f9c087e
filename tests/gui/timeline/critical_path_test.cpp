#include "gui/timeline/spans/critical_path.h"

#include <gtest/gtest.h>

#include <numeric>

#include "gui/timeline/spans/store_builder.h"
#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

using Spans = std::vector<std::uint32_t>;

std::int64_t sum(const CriticalPath& path) { return std::accumulate(path.ps.begin(), path.ps.end(), path.idle_ps); }

TEST(CriticalPath, OfOneLaneIsTheLane) {
  const auto store = given_spans({{{0, 10}, {10, 25}, {30, 40}}});
  const CriticalPath path = critical_path(*store);
  EXPECT_EQ(path.spans, (Spans{0, 1, 2}));
  EXPECT_EQ(path.idle_ps, 5);
  EXPECT_EQ(sum(path), 40);
}

// Two stages: the first computes and sends, the second receives, computes and ends last.
//   rank 0 compute  [0,100)              [100,130) ends early
//   rank 0 pipeline         send [100,120)
//   rank 1 pipeline  waiting [0,100) recv [100,120)
//   rank 1 compute                              [120,200)
TEST(CriticalPath, CrossesATransferToTheRankThatCameLast) {
  StoreBuilder builder;
  auto lane = [&, n = 0](const char* name) mutable {
    const auto device = builder.add_row(kNoRow, RowKind::kDevice, "rank", n++);
    return std::pair{builder.add_row(device, RowKind::kLane, "compute", 0),
                     builder.add_row(device, RowKind::kLane, name, 2, false)};
  };
  const auto [compute0, pipeline0] = lane("pipeline");
  const auto [compute1, pipeline1] = lane("pipeline");
  const auto add = [&](std::int32_t row, std::int64_t start, std::int64_t end, Category category) {
    NewSpan span;
    span.row = row;
    span.start_ps = start;
    span.end_ps = end;
    span.category = builder.category(category);
    return builder.add(span);
  };
  add(compute0, 0, 100, Category::kForward);
  add(compute0, 100, 130, Category::kForward);
  const auto send = add(pipeline0, 100, 120, Category::kPipeline);
  add(pipeline1, 0, 100, Category::kWaiting);
  const auto recv = add(pipeline1, 100, 120, Category::kPipeline);
  add(compute1, 120, 200, Category::kForward);
  builder.add_flow(send, recv, true);
  const auto store = builder.build();
  const CriticalPath path = critical_path(*store);
  // In the store: 0, 1 compute and 2 send of rank 0; 3 compute, 4 waiting and 5 receive of rank 1.
  EXPECT_EQ(path.spans, (Spans{0, 5, 3}));
  EXPECT_EQ(path.idle_ps, 0);
  EXPECT_EQ(sum(path), 200);
}

TEST(CriticalPath, SumsUpToTheLengthOnRandomTimelines) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto store = make_spans({.nodes = 1, .devices_per_node = 3, .spans_per_lane = 200, .seed = seed});
    const CriticalPath path = critical_path(*store);
    EXPECT_EQ(sum(path), store->end() - store->begin());
    EXPECT_EQ(store->end_of(path.spans.back()), store->end());
  }
}

TEST(CriticalPath, OfNothingIsEmpty) {
  EXPECT_TRUE(critical_path(*StoreBuilder().build()).spans.empty());
  EXPECT_EQ(critical_path(*given_spans({{{5, 5}, {5, 5}, {5, 5}}})).idle_ps, 0);
}

}  // namespace
}  // namespace trivium::gui
