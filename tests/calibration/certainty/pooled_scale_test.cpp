#include "calibration/certainty/pooled_scale.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trivium::calibration {
namespace {

ScaleCell cell(const std::string& publisher, const std::string& machine, const std::string& device, double log_scale,
               double variance = 0) {
  return {publisher, machine, device, log_scale, variance};
}

// Two machines of a device, a publisher on each: the weight of one is w = (s_m^2 + s_p^2) / that of a mean, worked out
// by hand for the scale of a third publisher on the first machine.
TEST(PooledScale, IsTheBestLinearUnbiasedPrediction) {
  const ScaleParts parts{0, 0.2, 0.1};
  const std::vector<ScaleCell> cells{cell("P", "m", "d", 0.1), cell("Q", "n", "d", -0.1)};
  // Mean 0; of the first cell 0.2^2 / (0.2^2 + 0.1^2) carries over.
  EXPECT_NEAR(std::log(*pooled_scale(cells, parts, "m", "d")), 0.1 * 0.04 / 0.05, 1e-12);
  EXPECT_NEAR(std::log(*pooled_scale(cells, parts, "elsewhere", "d")), 0, 1e-12);
}

TEST(PooledScale, WeighsBySureness) {
  const ScaleParts parts{0.1, 0.05, 0.05};
  const std::vector<ScaleCell> cells{cell("P", "m", "d", 0.2, 1), cell("Q", "n", "d", -0.2, 1e-4)};
  EXPECT_LT(*pooled_scale(cells, parts, "o", "d"), std::exp(-0.15));
  EXPECT_EQ(pooled_scale(cells, parts, "o", "other"), std::nullopt);
}

TEST(PooledScale, PartsAreThoseThatTheCellsShow) {
  std::vector<ScaleCell> devices, machines;
  for (int i = 0; i < 6; ++i) {
    const std::string name = std::to_string(i);
    for (const char* publisher : {"P", "Q", "R"}) {
      devices.push_back(cell(publisher, "m" + name + publisher, "d" + name, 0.2 * (i % 2), 1e-4));
      machines.push_back(cell(publisher, "m" + name, "d", 0.2 * (i % 2), 1e-4));
    }
  }
  const ScaleParts by_device = scale_parts(devices), by_machine = scale_parts(machines);
  EXPECT_GT(by_device.device, 2 * by_device.machine);
  EXPECT_GT(by_machine.machine, 2 * by_machine.publisher);
}

}  // namespace
}  // namespace trivium::calibration
