#include "calibration/validate/sweeps.h"

#include <gtest/gtest.h>

namespace trivium::calibration {
namespace {

// Plan a measures 10 and 12 (median 11) and is predicted fastest; the best measured is b with 10: regret 11 / 10 - 1.
TEST(Sweeps, RegretIsTheTimeOfTheChoiceOverTheBest) {
  const SweepCase cases[] = {{"s", "a", 10, 8}, {"s", "a", 12, 8}, {"s", "b", 10, 9}, {"s", "c", 20, 30}};
  const std::vector<Sweep> sweeps = find_sweeps(cases);
  ASSERT_EQ(sweeps.size(), 1u);
  EXPECT_EQ(sweeps[0].plans, 3);
  EXPECT_NEAR(sweeps[0].regret, 0.1, 1e-12);
  EXPECT_NEAR(sweeps[0].repeat_spread, 0.2, 1e-12);  // 12 over 10
  EXPECT_NEAR(sweeps[0].spread, 1, 1e-12);           // 20 over 10
  EXPECT_NEAR(sweeps[0].tolerated(), 0.2, 1e-12);
}

TEST(Sweeps, TwoPlansAreNone) {
  const SweepCase cases[] = {{"s", "a", 1, 1}, {"s", "a", 1, 1}, {"s", "b", 2, 2}, {"t", "c", 3, 3}};
  EXPECT_TRUE(find_sweeps(cases).empty());
}

TEST(Sweeps, EqualPredictionsChooseTheSlower) {
  const SweepCase cases[] = {{"s", "a", 1, 5}, {"s", "b", 2, 5}, {"s", "c", 3, 6}};
  EXPECT_DOUBLE_EQ(find_sweeps(cases)[0].regret, 1);
}

}  // namespace
}  // namespace trivium::calibration
