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

// Plan a is predicted fastest but hardly fits; among those that fit c is, the second best measured. Of the plans that
// were measured at 10 % MFU or more the slow d is none.
TEST(Sweeps, ChoiceAmongPlansThatFitIsThatOfTheSearch) {
  const SweepCase cases[] = {{"s", "a", 30, 5, 8, 0.2, 0.6},
                             {"s", "b", 10, 9, 8, 0.4, 0.99},
                             {"s", "c", 11, 8, 8, 0.4, 1},
                             {"s", "d", 90, 7, 8, 0.02, 1}};
  const std::vector<Sweep> sweeps = find_sweeps(cases);
  ASSERT_EQ(sweeps.size(), 1u);
  EXPECT_NEAR(sweeps[0].regret, 2, 1e-12);
  EXPECT_NEAR(sweeps[0].regret_of_fitting, 8, 1e-12);
  ASSERT_TRUE(sweeps[0].well_used.has_value());
  EXPECT_EQ(sweeps[0].well_used->plans, 3);
  EXPECT_NEAR(sweeps[0].well_used->regret, 2, 1e-12);
  EXPECT_NEAR(sweeps[0].well_used->regret_of_fitting, 0.1, 1e-12);
}

TEST(Sweeps, WhereNoPlanSurelyFitsTheFastestIsChosen) {
  const SweepCase cases[] = {
      {"s", "a", 1, 5, 8, 0.4, 0.5}, {"s", "b", 2, 6, 8, 0.4, 0.5}, {"s", "c", 3, 7, 8, 0.4, 0.5}};
  EXPECT_EQ(find_sweeps(cases)[0].regret_of_fitting, 0);
}

}  // namespace
}  // namespace trivium::calibration
