#include "planner/advice/trial_belief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace trivium::planner {
namespace {

constexpr TrialErrors kErrors{.shared = 0.2, .own = 0.03, .noise = 0.005};

TEST(TrialBelief, ProbabilitiesAddUpAndFollowThePrediction) {
  const std::vector<TrialTime> plans{{10, {}}, {10.5, {}}, {20, {}}};
  const TrialBelief belief = belief_of(plans, kErrors);
  EXPECT_NEAR(std::accumulate(belief.fastest.begin(), belief.fastest.end(), 0.0), 1, 1e-3);
  // log(10.5 / 10) over the deviation of two plans' own parts: 0.0488 / (0.03 sqrt 2) = 1.150, Phi = 0.875.
  EXPECT_NEAR(belief.fastest[0], 0.875, 0.002);
  EXPECT_LT(belief.fastest[2], 1e-6);
  EXPECT_NEAR(belief.deviation[0], std::hypot(0.2, 0.03), 1e-9);
}

// A plan that takes a fifth longer than predicted says the same of the others: it may still be the fastest.
TEST(TrialBelief, AMeasurementMovesAllPlans) {
  const std::vector<TrialTime> plans{{10, 12.0}, {10.5, {}}};
  const TrialBelief belief = belief_of(plans, kErrors);
  EXPECT_NEAR(belief.expected_s[0], 12, 0.1);
  EXPECT_NEAR(belief.expected_s[1], 12.6, 0.15);
  EXPECT_GT(belief.fastest[0], 0.8);
  EXPECT_LT(belief.deviation[1], 0.06);
}

TEST(TrialBelief, AnswersOnceAMeasuredPlanIsTheFastest) {
  std::vector<TrialTime> plans{{10, {}}, {12, {}}, {15, {}}};
  EXPECT_EQ(next_trial(plans, kErrors, 0.95), 0u);
  EXPECT_EQ(best_trial(plans, kErrors), std::nullopt);
  plans[0].measured_s = 10.2;
  EXPECT_EQ(next_trial(plans, kErrors, 0.95), std::nullopt);
  EXPECT_EQ(best_trial(plans, kErrors), 0u);
}

TEST(TrialBelief, LeavesOutWhatDoesNotRun) {
  std::vector<TrialTime> plans{{10, {}, true}, {12, {}}};
  EXPECT_EQ(next_trial(plans, kErrors, 0.95), 1u);
  EXPECT_EQ(belief_of(plans, kErrors).fastest[0], 0);
  plans[1].failed = true;
  EXPECT_EQ(next_trial(plans, kErrors, 0.95), std::nullopt);
}

// Six plans between 10 and 20 s, their errors drawn: how often the answer is the fastest, with how many measurements.
TEST(TrialBelief, FindsTheFastestOfSixWithHalfOfTheMeasurements) {
  int right = 0, measured = 0;
  constexpr int kWorlds = 100;
  for (int seed = 0; seed < kWorlds; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<double> normal;
    std::vector<TrialTime> plans;
    std::vector<double> truth;
    const double shared = kErrors.shared * normal(random);
    for (int i = 0; i < 6; ++i) {
      plans.push_back({10 * std::pow(2, i / 5.0), {}});
      truth.push_back(plans.back().predicted_s * std::exp(shared + kErrors.own * normal(random)));
    }
    while (const auto next = next_trial(plans, kErrors, 0.95)) {
      plans[*next].measured_s = truth[*next] * std::exp(kErrors.noise * normal(random));
      ++measured;
    }
    const auto fastest = std::min_element(truth.begin(), truth.end()) - truth.begin();
    right += *best_trial(plans, kErrors) == static_cast<std::size_t>(fastest) ? 1 : 0;
  }
  EXPECT_GE(right, kWorlds * 95 / 100);
  EXPECT_LE(measured, kWorlds * 3);
  RecordProperty("right", right);
}

}  // namespace
}  // namespace trivium::planner
