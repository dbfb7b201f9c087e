#include "gui/timeline/spans/op_totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/timeline/spans/store_builder.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

/// Two lanes: "forward mb0 layer 0 matmul" 0-10, "forward mb0 layer 1 matmul" 10-30, "forward mb0 layer 0 norm" 30-40;
/// and "forward mb1 layer 0 matmul" 5-15, each with the number of its event.
std::shared_ptr<const SpanStore> made() {
  StoreBuilder builder;
  const std::int32_t root = builder.add_row(kNoRow, RowKind::kCluster, "all", 0);
  const std::int32_t one = builder.add_row(root, RowKind::kLane, "one", 0);
  const std::int32_t two = builder.add_row(root, RowKind::kLane, "two", 1);
  std::uint32_t event = 0;
  const auto add = [&](std::int32_t row, std::int64_t start, std::int64_t end, const char* title, const char* detail) {
    NewSpan span;
    span.row = row;
    span.start_ps = start;
    span.end_ps = end;
    span.title = builder.title(title);
    span.detail = builder.detail(detail);
    span.event = event++;
    span.category = builder.category(Category::kForward);
    builder.add(span);
  };
  add(one, 0, 10, "forward mb0", "layer 0 matmul");
  add(one, 10, 30, "forward mb0", "layer 1 matmul");
  add(one, 30, 40, "forward mb0", "layer 0 norm");
  add(two, 5, 15, "forward mb1", "layer 0 matmul");
  return builder.build();
}

// Products: 10 + 20 + 10 ps of three spans; each does 100 operations, 300 / 40 ps = 7.5 TFLOP/s. A roofline of 5 ps
// each, 15 of 40 ps.
TEST(OpTotals, AddUpOverMicroBatchesAndLayers) {
  const auto store = made();
  const WorkOf work = [](std::uint32_t event) { return event == 2 ? OpWork{} : OpWork{100, 5e-12}; };
  const auto ops = op_totals(*store, {0, 40, std::nullopt}, work);
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops[0].name, "forward matmul");
  EXPECT_EQ(ops[0].spans, 3U);
  EXPECT_EQ(ops[0].ps, 40);
  EXPECT_DOUBLE_EQ(ops[0].tflops(), 7.5);
  EXPECT_DOUBLE_EQ(ops[0].roofline_share(), 0.375);
  EXPECT_EQ(ops[1].name, "forward norm");
  EXPECT_EQ(ops[1].tflops(), 0);
}

// [5, 20) holds 5 of the first, 10 of the second and all 10 of lane two; the mean is of whole spans, 40 / 3.
TEST(OpTotals, CountWhatLiesWithinTheStretchAndItsRow) {
  const auto store = made();
  const auto all = op_totals(*store, {5, 20, std::nullopt}, {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].ps, 25);
  EXPECT_DOUBLE_EQ(all[0].mean_s(), 40e-12 / 3);
  const auto lane = op_totals(*store, {5, 20, 2}, {});
  ASSERT_EQ(lane.size(), 1U);
  EXPECT_EQ(lane[0].ps, 10);
}

TEST(OpTotals, OccurrencesFollowEachOtherInTimeAndBeginAnew) {
  const auto store = made();
  const Stretch all{0, 40, std::nullopt};
  std::vector<std::int64_t> starts;
  std::optional<std::uint32_t> at;
  for (int i = 0; i < 4; ++i) {
    at = next_of_op(*store, all, 0, at);
    starts.push_back(store->start_of(*at));
  }
  EXPECT_THAT(starts, testing::ElementsAre(0, 5, 10, 0));
}

TEST(OpTotals, AreATable) {
  const auto store = made();
  const std::string csv = csv_of(op_totals(*store, {0, 40, std::nullopt}, {}), *store);
  EXPECT_THAT(csv, HasSubstr("op,kind,count,total_s,share,mean_s,tflop_per_s,roofline_share\n"));
  EXPECT_THAT(csv, HasSubstr("\"forward matmul\",\"forward\",3,4e-11,0.8,"));
}

}  // namespace
}  // namespace trivium::gui
