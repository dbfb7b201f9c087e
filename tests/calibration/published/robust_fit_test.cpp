#include "calibration/published/robust_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trivium::calibration {
namespace {

// Rows that measure a (3 times as large as its prior), a·b and b, exactly; c is in none of them.
const std::vector<FitPrior> kPriors = {{"a", 1, 2, 0.01, 100}, {"b", 1, 2, 0.01, 100}, {"c", 7, 0.5, 1, 100}};

RobustFit fit_rows(std::vector<double> weights, double outlier = 1) {
  const auto errors = [outlier](const std::vector<double>& v, int, Eigen::VectorXd& out) {
    out[0] = std::log(v[0] / 3);
    out[1] = std::log(v[0] * v[1] / 1.5);
    out[2] = std::log(v[1] / 0.5);
    out[3] = std::log(v[1] / (0.5 * outlier));
  };
  return robust_fit(kPriors, {1, 1, 7}, weights, errors, {});
}

TEST(RobustFit, FindsWhatMadeTheRows) {
  const RobustFit fit = fit_rows({1, 1, 1, 1});
  EXPECT_NEAR(fit.values[0], 3, 0.01);
  EXPECT_NEAR(fit.values[1], 0.5, 0.01);
}

TEST(RobustFit, LeavesWhatRowsDoNotTellAtItsPrior) {
  const RobustFit fit = fit_rows({1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(fit.values[2], 7);
  EXPECT_NEAR(fit.sigma[2], 0.5, 1e-9);
  EXPECT_LT(fit.sigma[0], 0.1);
  EXPECT_NEAR(fit.freedom, 2, 0.05);
}

// One of three rows about b off by a factor of 2: squares would move b by 20 %.
TEST(RobustFit, IsHardlyMovedByAnOutlier) { EXPECT_NEAR(fit_rows({1, 1, 1, 1}, 2).values[1], 0.5, 0.02); }

TEST(RobustFit, ReturnsToThePriorWithoutTheRowsThatSpoke) {
  const RobustFit fit = fit_rows({1, 1, 1, 1});
  const std::vector<double> values = refit_linear(kPriors, fit, {0, 0, 1, 1}, 0.04);
  EXPECT_NEAR(values[0], 1, 0.02);
  EXPECT_NEAR(values[1], 0.5, 0.01);
}

TEST(RobustFit, StaysWithinBoundsAndStopsWhenAsked) {
  std::vector<FitPrior> narrow = kPriors;
  narrow[0].high = 2;
  const auto errors = [](const std::vector<double>& v, int, Eigen::VectorXd& out) { out[0] = std::log(v[0] / 3); };
  EXPECT_DOUBLE_EQ(robust_fit(narrow, {1, 1, 7}, {1}, errors, {}).values[0], 2);
  RobustOptions stopped;
  stopped.stop = [] { return true; };
  EXPECT_EQ(robust_fit(kPriors, {1, 1, 7}, {1}, errors, stopped).steps, 0);
}

}  // namespace
}  // namespace trivium::calibration
