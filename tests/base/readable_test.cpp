#include "base/readable.h"

#include <gtest/gtest.h>

namespace trivium::base {
namespace {

TEST(Dollars, AreRoundedToThreeDigits) {
  EXPECT_EQ(dollars(11119889), "$11.1M");
  EXPECT_EQ(dollars(1.2345e9), "$1.23B");
  EXPECT_EQ(dollars(2595212), "$2.60M");
  EXPECT_EQ(dollars(84160), "$84,200");
  EXPECT_EQ(dollars(1000), "$1,000");
  EXPECT_EQ(dollars(12.349), "$12.3");
  EXPECT_EQ(dollars(0.4266), "$0.427");
  EXPECT_EQ(dollars(0), "$0");
}

TEST(Energy, IsInTheUnitOfItsSize) {
  EXPECT_EQ(energy(8120 * 3.6e9), "8,120 MWh");
  EXPECT_EQ(energy(9.5 * 3.6e9), "9,500 kWh");
  EXPECT_EQ(energy(12 * 3.6e6), "12 kWh");
  EXPECT_EQ(energy(1.5 * 3.6e6), "1.5 kWh");
  EXPECT_EQ(energy(11520), "3.2 Wh");
}

// What rounds up to the next unit is written in it.
TEST(Dollars, TakeTheUnitOfTheRoundedValue) {
  EXPECT_EQ(dollars(999.6), "$1,000");
  EXPECT_EQ(dollars(999600), "$1.00M");
  EXPECT_EQ(dollars(999.9e6), "$1.00B");
}

}  // namespace
}  // namespace trivium::base
