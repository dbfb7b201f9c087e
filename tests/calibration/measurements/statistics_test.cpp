#include "calibration/measurements/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trivium::calibration {
namespace {

TEST(Statistics, QuantilesInterpolateBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.9), 9);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Statistics, WeightedMediansCountWeights) {
  EXPECT_DOUBLE_EQ(weighted_median({{3, 1}, {1, 1}, {2, 1}}), 2);
  EXPECT_DOUBLE_EQ(weighted_median({{1, 1}, {2, 1}, {3, 5}}), 3);
  EXPECT_DOUBLE_EQ(weighted_median({}), 0);
}

// Ranks measured 1 2 3 4, predicted 2 1 4 3: differences 1 each, r = 1 - 6·4 / (4·15) = .6.
TEST(Statistics, SpearmanComparesOrders) {
  const Pair pairs[] = {{1, 20}, {2, 10}, {3, 40}, {4, 30}};
  EXPECT_DOUBLE_EQ(*spearman(pairs), 0.6);
}

// Predicted 5 5 9 has ranks 1.5 1.5 3 against 1 2 3. About the mean 2: (-.5, -.5, 1) · (-1, 0, 1) = 1.5;
// squares 1.5 and 2: r = 1.5 / sqrt(3).
TEST(Statistics, SpearmanSharesRanksOfEqualValues) {
  const Pair pairs[] = {{1, 5}, {2, 5}, {3, 9}};
  EXPECT_NEAR(*spearman(pairs), 1.5 / std::sqrt(3.0), 1e-12);
}

TEST(Statistics, SpearmanOfConstantsIsNotDefined) {
  const Pair same[] = {{1, 1}, {1, 1}}, flat[] = {{1, 3}, {2, 3}};
  EXPECT_FALSE(spearman(same));
  EXPECT_FALSE(spearman(flat));
  EXPECT_FALSE(spearman(std::span(flat).first(1)));
}

}  // namespace
}  // namespace trivium::calibration
