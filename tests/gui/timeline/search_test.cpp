#include "gui/timeline/spans/search.h"

#include <gtest/gtest.h>

#include "gui/timeline/spans/store_builder.h"

namespace trivium::gui {
namespace {

class Search : public testing::Test {
 protected:
  Search() {
    StoreBuilder builder;
    const auto lane = builder.add_row(kNoRow, RowKind::kLane, "compute", 0);
    std::int64_t at = 0;
    const auto add = [&](std::string_view title, std::string_view detail, Category category) {
      NewSpan span;
      span.row = lane;
      span.start_ps = at;
      span.end_ps = at += 10;
      span.title = builder.title(title);
      span.detail = builder.detail(detail);
      span.category = builder.category(category);
      builder.add(span);
    };
    add("forward mb1", "layer 2 matmul", Category::kForward);
    add("forward mb12", "layer 2 matmul", Category::kForward);
    add("backward mb1", "layer 2 matmul wgrad", Category::kBackward);
    add("backward mb1", "layer 2 all reduce", Category::kWaiting);
    add("backward mb1", "layer 2 all reduce", Category::kTensor);
    store = builder.build();
  }
  std::vector<std::uint32_t> find(std::string_view query) { return find_spans(*store, query); }
  std::shared_ptr<const SpanStore> store;
  using Found = std::vector<std::uint32_t>;
};

TEST_F(Search, FindsEveryWordInAnyOrderAndCase) {
  EXPECT_EQ(find("matmul"), (Found{0, 1, 2}));
  EXPECT_EQ(find("WGRAD  mb1"), (Found{2}));
  EXPECT_EQ(find("forward wgrad"), Found{});
}

TEST_F(Search, TellsNumbersApart) {
  EXPECT_EQ(find("mb1"), (Found{0, 2, 4}));
  EXPECT_EQ(find("mb12"), (Found{1}));
}

TEST_F(Search, FindsWordsWhereTheyBegin) {
  EXPECT_EQ(find("all reduce"), (Found{4}));
  EXPECT_EQ(find("ward"), Found{});  // "all" is no word of "parallel" either
  EXPECT_EQ(find("arallel"), Found{});
  EXPECT_EQ(find("back"), (Found{2, 4}));
}

TEST_F(Search, FindsCategories) {
  EXPECT_EQ(find("tensor parallel"), (Found{4}));
  EXPECT_EQ(find("waiting"), (Found{3}));
}

TEST_F(Search, FindsNothingWithoutWords) {
  EXPECT_EQ(find(""), Found{});
  EXPECT_EQ(find("   "), Found{});
}

}  // namespace
}  // namespace trivium::gui
