#include "simulator/cost/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/simulator/cost/example_devices.h"

namespace trivium::simulator {
namespace {

GemmRates rates_of_a100() { return gemm_rates(a100(), program::DType::kFp16, 1.0); }

// Sustained: .76 · 312 = 237.12 TFLOP/s, per multiprocessor 2.19556 TFLOP/s. 2048 x 27648 makes 8 · 216 = 1,728 tiles
// of 256x128: exactly 16 waves of 108. One block of k = 4096: 2 · 256 · 128 · (4096 + 70) / 2.19556e12 = 124.352 us; 16
// of them 1989.6 us. The memory side, 2 (2048·4096 + 4096·27648 + 2048·27648) = 356.5 MB at .8 · 2039 GB/s, is 218.6
// us.
TEST(Gemm, OfFullWavesCostsWavesTimesABlock) {
  EXPECT_NEAR(gemm_time({2048, 27648, 4096}, rates_of_a100()).value(), 1989.6e-6, 0.1e-6);
}

// One tile more than a wave: 109 tiles in a row of 109 · 256 rows and 128 columns. 109/108 = 1.00926 waves round to
// 1.00926 + .93 · .99074 = 1.93065, unless smaller or split tiles fill better. The bound holds whatever tile wins, and
// the cost of the extra tile is a real step: at least 1.3 times.
TEST(Gemm, OfOneTileMoreThanAWavePaysForMostOfASecondWave) {
  const double full = gemm_time({108 * 256, 128, 8192}, rates_of_a100()).value();
  const double more = gemm_time({109 * 256, 128, 8192}, rates_of_a100()).value();
  EXPECT_LE(more, full * 1.93065);
  EXPECT_GE(more, full * 1.3);
}

// m = 64, n = k = 12288 in fp16: 2 (64·12288 + 12288² + 64·12288) = 305.1 MB at 1631.2 GB/s = 187.1 us; the arithmetic
// of 19.3 GFLOP takes .08 ms at the full rate.
TEST(Gemm, OfFewRowsIsBoundByReadingItsWeight) {
  EXPECT_NEAR(gemm_time({64, 12288, 12288}, rates_of_a100()).value(), 187.1e-6, 0.2e-6);
}

// Held to (350 - 55) of (400 - 55) W, products have 0.9075 of their rate; those that wait for memory do not slow down.
TEST(Gemm, BoundByMemoryDoesNotFeelAPowerLimit) {
  hardware::Device device = a100();
  device.idle_power = base::Watts(55), device.peak_power = base::Watts(400);
  device.power_limit = base::Watts(350);
  const GemmRates held = gemm_rates(device, program::DType::kFp16, 1.0), free = rates_of_a100();
  EXPECT_NEAR(held.sustained / free.sustained, 0.9075, 1e-4);
  EXPECT_NEAR(gemm_time({8192, 8192, 8192}, held) / gemm_time({8192, 8192, 8192}, free), 1 / 0.9075, 1e-3);
  EXPECT_EQ(gemm_time({64, 12288, 12288}, held), gemm_time({64, 12288, 12288}, free));
}

// 128 x 128 outputs with k = 65536: at most 4 blocks of 64x64 without splitting, so splitting k must win.
// Best: 64x64 by 4 splits: 16 blocks = 16/108 + .93 · 92/108 = .94037 waves of 2·64·64·(16384 + 70)/(2.19556e12 · .44)
// = 139.53 us: 131.2 us; 128x128 by 4: .93259 + … = .93 + .07 · 4/108 = .93259 waves of 285.5 us. Plus 3 us and
// 8 · 4 · 16384 B at 1631.2 GB/s = .32 us: 134.5 us. The memory side, 33.6 MB, is 20.6 us.
TEST(Gemm, WithALongInnerDimensionSplitsIt) {
  EXPECT_NEAR(gemm_time({128, 128, 65536}, rates_of_a100()).value(), 134.5e-6, 0.3e-6);
}

// m and n only add tiles, k only lengthens them: no dimension makes a product faster.
TEST(Gemm, NeverGetsFasterWithALargerDimension) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> dimension(1, 5000);
  const GemmRates rates = rates_of_a100();
  for (int trial = 0; trial < 300; ++trial) {
    const GemmShape shape{1.0 * dimension(random), 1.0 * dimension(random), 1.0 * dimension(random)};
    const double time = gemm_time(shape, rates).value();
    ASSERT_GT(time, 0);
    EXPECT_GE(gemm_time({shape.m + 97, shape.n, shape.k}, rates).value(), time);
    EXPECT_GE(gemm_time({shape.m, shape.n + 97, shape.k}, rates).value(), time);
    EXPECT_GE(gemm_time({shape.m, shape.n, shape.k + 97}, rates).value(), time);
  }
}

struct MeasuredGemm {
  double m, n, k;
  bool accumulate;    // weight gradient: fp32 result, accumulated
  double efficiency;  // of 312 TFLOP/s
};

// SimuMax, configs/system/a100_pcie.json: bf16 on an A100-PCIe. Twelve of its 183 products: projections of models of
// hidden 5,120 and 7,168 in all three layouts. Over all 183 the rule is 2.4 % low (forward and data gradient) and 4.4 %
// low (weight gradient) on average, with a spread of 5 %, and was fitted on none of them.
constexpr MeasuredGemm kSimuMax[] = {
    {4096, 24576, 1536, false, 0.6971}, {4096, 1536, 24576, false, 0.7378}, {24576, 1536, 4096, true, 0.7145},
    {4096, 576, 5120, false, 0.4968},   {576, 5120, 4096, true, 0.5963},    {4096, 5120, 16384, false, 0.7493},
    {4096, 16384, 5120, false, 0.7612}, {5120, 16384, 4096, true, 0.7190},  {4096, 6144, 5120, false, 0.6988},
    {4096, 12288, 5120, false, 0.7403}, {7168, 16384, 4096, true, 0.7166},  {33024, 4096, 7168, false, 0.7506},
};

// 10 % each: twice the spread above. 5 % in the mean: its bias.
TEST(Gemm, ReachesTheEfficienciesMeasuredBySimuMax) {
  hardware::Device pcie = a100();
  pcie.memory_bandwidth = base::BytesPerSecond(1935e9);
  double sum = 0;
  for (const MeasuredGemm& one : kSimuMax) {
    GemmRates rates = gemm_rates(pcie, program::DType::kBf16, one.accumulate ? pcie.wgrad_efficiency : 1.0);
    if (one.accumulate) rates.result_size = 8;
    const double time = gemm_time({one.m, one.n, one.k}, rates).value();
    const double efficiency = 2 * one.m * one.n * one.k / time / 312e12;
    EXPECT_NEAR(efficiency / one.efficiency, 1, 0.10) << one.m << " x " << one.n << " x " << one.k;
    sum += std::log(efficiency / one.efficiency);
  }
  EXPECT_NEAR(sum / std::size(kSimuMax), 0, 0.05);
}

}  // namespace
}  // namespace trivium::simulator
