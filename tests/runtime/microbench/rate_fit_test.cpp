#include "runtime/microbench/rate_fit.h"

#include <gtest/gtest.h>

#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {
namespace {

// Times made of 2 us, 1e-11 s per FLOP and 1e-10 s per byte.
TEST(RateFit, FindsTheLawOfExactTimes) {
  std::vector<ShapeTime> shapes;
  for (const double flops : {0.0, 1e6, 1e7}) {
    for (const double bytes : {1e3, 1e5, 1e6})
      shapes.push_back({flops, bytes, 0, 2e-6 + flops * 1e-11 + bytes * 1e-10});
  }
  const hardware::OpRate rate = fit_rate(shapes);
  EXPECT_NEAR(rate.overhead.value(), 2e-6, 1e-9);
  EXPECT_NEAR(rate.seconds_per_flop, 1e-11, 1e-14);
  EXPECT_NEAR(rate.seconds_per_byte, 1e-10, 1e-13);
}

// Heads of 16 to 64 over samples of 64 to 512 tokens: blocks of queries grow with neither FLOPs nor bytes alone.
TEST(RateFit, FindsWhatABlockOfQueriesTakes) {
  std::vector<ShapeTime> shapes;
  for (const double dim : {16.0, 64.0}) {
    for (const double heads : {1.0, 8.0}) {
      for (const double tokens : {64.0, 128.0, 512.0}) {
        const double flops = 2 * heads * tokens * tokens * dim, bytes = 36 * heads * tokens * dim;
        const double blocks = heads * tokens / 64;
        shapes.push_back({flops, bytes, blocks, 2e-6 + flops * 1e-11 + bytes * 1e-10 + blocks * 3e-6});
      }
    }
  }
  const hardware::OpRate rate = fit_rate(shapes);
  EXPECT_NEAR(rate.overhead.value(), 2e-6, 1e-8);
  EXPECT_NEAR(rate.seconds_per_flop, 1e-11, 1e-13);
  EXPECT_NEAR(rate.seconds_per_byte, 1e-10, 1e-12);
  EXPECT_NEAR(rate.seconds_per_block, 3e-6, 1e-8);
}

// Faster than proportional: the best non-negative law has no overhead.
TEST(RateFit, KeepsTermsAboveZero) {
  const ShapeTime shapes[] = {{0, 1e3, 0, 1e-7}, {0, 1e4, 0, 2e-6}, {0, 1e5, 0, 3e-5}};
  const hardware::OpRate rate = fit_rate(shapes);
  EXPECT_DOUBLE_EQ(rate.overhead.value(), 0);
  EXPECT_GT(rate.seconds_per_byte, 0);
  EXPECT_DOUBLE_EQ(rate.seconds_per_flop, 0);
}

// Of 0 to 10: the tenth percentile is 1, the ninetieth 9, the median 5.
TEST(MicrobenchStatistics, SpreadIsAShareOfTheMedian) {
  EXPECT_DOUBLE_EQ(spread({10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5}), 8.0 / 5);
  EXPECT_DOUBLE_EQ(spread({}), 0);
  EXPECT_EQ(spread_words(.123), "; spread 12 %");
}

// Median 2, cut at 8: (1 + 2 + 8) / 3.
TEST(MicrobenchStatistics, InterruptionsCountAsFourMedians) {
  const double seconds[] = {1, 2, 1000};
  EXPECT_DOUBLE_EQ(mean_without_interruptions(seconds), 11.0 / 3);
}

}  // namespace
}  // namespace trivium::runtime::microbench
