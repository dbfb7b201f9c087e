#include "gui/timeline/spans/time_text.h"

#include <gtest/gtest.h>

namespace trivium::gui {
namespace {

TEST(TimeText, HasAUnitThatFits) {
  EXPECT_EQ(time_text(0), "0 s");
  EXPECT_EQ(time_text(7), "7 ps");
  EXPECT_EQ(time_text(1'500), "1.500 ns");
  EXPECT_EQ(time_text(56'700'000), "56.70 µs");
  EXPECT_EQ(time_text(-123'456'000'000), "-123.5 ms");
  EXPECT_EQ(time_text(4'000'000'000'000'000), "4000 s");
}

// 7 ns are seven in the ninth decimal of a second.
TEST(TimeText, TellsApartWhatLiesCloseTogether) {
  EXPECT_EQ(precise_time_text(4'107'003'127'000, 7'000), "4.107003127 s");
  EXPECT_EQ(precise_time_text(4'107'003'127'000, 2'000'000'000'000), "4.107 s");
  EXPECT_EQ(precise_time_text(12, 5), "12 ps");
}

TEST(Ticks, AreRoundNumbersFarEnoughApart) {
  // At least 15 ms apart over 0.1 s: 20 ms.
  const auto list = ticks(0, 100'000'000'000, 15'000'000'000);
  ASSERT_EQ(list.size(), 6U);
  EXPECT_EQ(list[1].ps, 20'000'000'000);
  EXPECT_EQ(list[1].text, "20 ms");
  EXPECT_EQ(ticks(0, 3'000'000'000'000, 400'000'000'000)[1].text, "0.5 s");
  EXPECT_EQ(ticks(1, 9, 100).size(), 0U);
  EXPECT_EQ(ticks(10'000'000'000'000, 10'000'000'020'000, 5'000)[1].text, "10.000000005 s");
}

TEST(Ticks, EndAtAnyZoomAndPlace) {
  for (std::int64_t length = 10; length < 4'000'000'000'000'000'000; length *= 7) {
    for (const std::int64_t begin : {-length, std::int64_t{0}, std::int64_t{4'000'000'000'000'000'000}}) {
      const auto list = ticks(begin, begin + length, length / 10);
      EXPECT_LE(list.size(), 11U);
      EXPECT_GE(list.size(), 3U);
      for (const Tick& tick : list) {
        EXPECT_GE(tick.ps, begin);
        EXPECT_LE(tick.ps, begin + length);
      }
    }
  }
}

}  // namespace
}  // namespace trivium::gui
