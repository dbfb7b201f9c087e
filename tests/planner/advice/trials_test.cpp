#include "planner/advice/trials.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trivium::planner {
namespace {

Candidate taking(double seconds, int tensor) {
  Candidate candidate;
  candidate.plan.tensor = tensor;
  candidate.simulation.iteration_s = seconds;
  candidate.simulation.certainty.between_plans = 0.05;
  return candidate;
}

TEST(Trials, AreThosePlansThatMayBeTheFastest) {
  SearchResult result;
  result.best = {taking(10, 1), taking(10.1, 2)};
  result.others = {taking(20, 4), taking(10.4, 8)};
  const std::vector<Trial> all = trials(result, 10);
  ASSERT_EQ(all.size(), 4U);
  double sum = 0;
  for (const Trial& trial : all) sum += trial.fastest_probability;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(all[0].candidate.plan.tensor, 1);
  EXPECT_EQ(all[1].candidate.plan.tensor, 2);
  EXPECT_EQ(all[2].candidate.plan.tensor, 8);
  EXPECT_LT(all[3].fastest_probability, 1e-9) << "twice as long, at 5 %";
  EXPECT_EQ(trials(result, 2).size(), 2U);
}

TEST(Trials, OfTwoPlansAreAsTheirDistanceSays) {
  SearchResult result;
  result.best = {taking(10, 1), taking(10 * std::exp(0.05 * std::sqrt(2.0)), 2)};
  EXPECT_NEAR(trials(result, 1).front().fastest_probability, 0.841345, 1e-5);
}

TEST(Trials, OfNothingAreNone) { EXPECT_TRUE(trials({}, 3).empty()); }

}  // namespace
}  // namespace trivium::planner
