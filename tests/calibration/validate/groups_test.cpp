#include "calibration/validate/groups.h"

#include <gtest/gtest.h>

namespace trivium::calibration {
namespace {

// Measured 1, 2, 4 and predicted 1.1, 1.8, 4: errors +.1, -.1, 0. Mean of |e| = .2/3, bias 0, median of |e| .1, largest
// .1.
TEST(ValidationGroup, HoldsTheErrorsOfItsPairs) {
  const Pair pairs[] = {{1, 1.1}, {2, 1.8}, {4, 4}};
  const ValidationGroup group = group_of("source", "x", pairs);
  EXPECT_EQ(group.cases, 3);
  EXPECT_NEAR(group.mape, 0.2 / 3, 1e-12);
  EXPECT_NEAR(group.bias, 0, 1e-12);
  EXPECT_NEAR(group.median, 0.1, 1e-12);
  EXPECT_NEAR(group.max, 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(*group.spearman, 1);
}

}  // namespace
}  // namespace trivium::calibration
