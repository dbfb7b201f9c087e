#include "calibration/certainty/learn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace trivium::calibration {
namespace {

/// Errors with known parts: `machines` machines of as many sources, on which a stack ran.
std::vector<RunError> drawn(int machines, int runs, double machine, double run, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<RunError> all;
  for (int m = 0; m < machines; ++m) {
    const double own = machine * normal(engine);
    const std::string name = "machine " + std::to_string(m);
    for (int r = 0; r < runs; ++r) {
      RunError one{{"a100", m % 2 == 0 ? "megatron" : "fsdp", "dense", name, 0}, name, "sweep"};
      const double noise = run * normal(engine);
      one.error = noise;
      one.left_out = own + noise;
      all.push_back(std::move(one));
    }
  }
  return all;
}

TEST(Learn, FindsThePartsThatErrorsWereDrawnFrom) {
  const Learned learned = learn(drawn(30, 20, 0.12, 0.03, 1));
  const simulator::ErrorParts& parts = learned.model.parts();
  EXPECT_NEAR(parts.run[0], 0.03, 0.003);
  EXPECT_GE(parts.machine, 0.08);
  EXPECT_LT(parts.machine, 0.18);
  EXPECT_NEAR(parts.between_plans, 0.03, 0.005);
  EXPECT_EQ(learned.model.cells().size(), 30U);
}

TEST(Learn, CoversNineInTenOfRunsThatItNeverSaw) {
  const Learned learned = learn(drawn(30, 20, 0.12, 0.03, 2));
  EXPECT_NEAR(learned.all.known, 0.9, 0.01);
  EXPECT_NEAR(learned.all.unknown, 0.9, 0.01);
  int within = 0, all = 0;
  for (const RunError& run : drawn(200, 5, 0.12, 0.03, 3)) {
    simulator::Likeness like = run.like;
    like.machine += " of others";
    const simulator::ErrorOutlook outlook = learned.model.at(like);
    ++all;
    const double distance = (run.left_out - outlook.mean) / outlook.deviation;
    within += distance >= -outlook.reach.low && distance <= outlook.reach.high ? 1 : 0;
  }
  EXPECT_GT(within, 0.83 * all);
  EXPECT_LT(within, 0.96 * all);
}

TEST(Learn, IsNotRuledByTheLargestSource) {
  std::vector<RunError> runs = drawn(1, 2000, 0, 0.15, 4);
  const std::vector<RunError> steady = drawn(10, 30, 0, 0.02, 5);
  for (RunError run : steady) {
    run.source = "steady " + run.source;
    run.like.machine = run.source;
    runs.push_back(std::move(run));
  }
  EXPECT_LT(learn(runs).model.parts().run[0], 0.07);
}

TEST(Learn, PrintsASourceALine) {
  const std::string table = to_table(learn(drawn(3, 10, 0.1, 0.03, 6)));
  EXPECT_NE(table.find("machine 2"), std::string::npos);
  EXPECT_NE(table.find("all "), std::string::npos);
}

}  // namespace
}  // namespace trivium::calibration
