// The solver against answers by hand, against what defines max-min fairness, and against water poured drop by drop.
#include "simulator/sharing/max_min.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace trivium::simulator::sharing {
namespace {

constexpr double kMuch = 1e9;

struct Problem {
  std::vector<double> capacity;
  std::vector<double> limits;
  std::vector<std::vector<Use>> uses;

  std::vector<double> solve() const {
    std::vector<Demand> demands;
    for (std::size_t i = 0; i < limits.size(); ++i) demands.push_back({limits[i], uses[i]});
    return max_min(capacity, demands);
  }
  double load(std::size_t link, const std::vector<double>& rates) const {
    double sum = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (const Use& use : uses[i]) sum += use.link == static_cast<int>(link) ? use.amount * rates[i] : 0;
    }
    return sum;
  }
};

TEST(MaxMin, EqualFlowsShareALinkEqually) {
  const Problem p{{12}, {kMuch, kMuch, kMuch}, {{{0}}, {{0}}, {{0}}}};
  EXPECT_EQ(p.solve(), (std::vector<double>{4, 4, 4}));
}

// One wants 2 of 12; the other two share what is left: (12 - 2) / 2.
TEST(MaxMin, WhatASmallFlowDoesNotWantTheOthersGet) {
  const Problem p{{12}, {kMuch, 2, kMuch}, {{{0}}, {{0}}, {{0}}}};
  EXPECT_EQ(p.solve(), (std::vector<double>{5, 2, 5}));
}

// Bertsekas and Gallager's line: a long flow over links of 1 and 2, a short one on each. The link of 1 gives 1/2 to
// both of its flows; on the link of 2 the short flow takes the rest, 2 - 1/2.
TEST(MaxMin, ALongFlowIsHeldByItsNarrowestLink) {
  const Problem p{{1, 2}, {kMuch, kMuch, kMuch}, {{{0}, {1}}, {{0}}, {{1}}}};
  EXPECT_EQ(p.solve(), (std::vector<double>{.5, .5, 1.5}));
}

// A flow that takes twice its rate of the link: r + 2 r = 9.
TEST(MaxMin, AmountsCount) {
  const Problem p{{9}, {kMuch, kMuch}, {{{0, 1}}, {{0, 2}}}};
  EXPECT_EQ(p.solve(), (std::vector<double>{3, 3}));
}

// As in the line above: the long flow and the first short one are held by link 0, the other short one by link 1. With a
// limit of .25 the long flow holds itself.
TEST(MaxMin, SaysWhichLinkHoldsAFlow) {
  const std::vector<double> capacity{1, 2};
  const std::vector<std::vector<Use>> uses{{{0}, {1}}, {{0}}, {{1}}};
  std::vector<Demand> demands{{kMuch, uses[0]}, {kMuch, uses[1]}, {kMuch, uses[2]}};
  MaxMin solver;
  solver.solve(capacity, demands);
  EXPECT_EQ(solver.held_by(), (std::vector<std::int32_t>{0, 0, 1}));
  demands[0].limit = .25;
  EXPECT_EQ(solver.solve(capacity, demands), (std::vector<double>{.25, .75, 1.75}));
  EXPECT_EQ(solver.held_by(), (std::vector<std::int32_t>{-1, 0, 1}));
}

TEST(MaxMin, AFlowWithoutLinksRunsAtItsLimit) {
  const Problem p{{}, {7}, {{}}};
  EXPECT_EQ(p.solve(), (std::vector<double>{7}));
}

Problem random_problem(std::mt19937& random) {
  Problem p;
  std::uniform_real_distribution<double> real(0.1, 10);
  const int links = std::uniform_int_distribution<int>(1, 6)(random);
  const int flows = std::uniform_int_distribution<int>(1, 10)(random);
  for (int l = 0; l < links; ++l) p.capacity.push_back(real(random));
  for (int f = 0; f < flows; ++f) {
    p.limits.push_back(real(random));
    auto& uses = p.uses.emplace_back();
    for (int l = 0; l < links; ++l) {
      if (std::bernoulli_distribution(.4)(random))
        uses.push_back({l, std::bernoulli_distribution(.7)(random) ? 1.0 : .25});
    }
  }
  return p;
}

// The certificate that makes the allocation max-min fair, and unique: see max_min.h.
TEST(MaxMin, NoLinkIsOverfullAndEveryFlowHasAReasonNotToBeFaster) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const Problem p = random_problem(random);
    const std::vector<double> rates = p.solve();
    for (std::size_t l = 0; l < p.capacity.size(); ++l) ASSERT_LE(p.load(l, rates), p.capacity[l] * (1 + 1e-9));
    for (std::size_t f = 0; f < rates.size(); ++f) {
      bool held = rates[f] >= p.limits[f] * (1 - 1e-9);
      for (const Use& use : p.uses[f]) {
        const auto l = static_cast<std::size_t>(use.link);
        if (p.load(l, rates) < p.capacity[l] * (1 - 1e-9)) continue;
        bool fastest = true;
        for (std::size_t other = 0; other < rates.size(); ++other) {
          for (const Use& u : p.uses[other]) fastest &= u.link != use.link || rates[other] <= rates[f] * (1 + 1e-9);
        }
        held |= fastest;
      }
      ASSERT_TRUE(held) << "problem " << i << ", flow " << f;
    }
  }
}

// Water in drops: every flow that is neither at its limit nor on a full link gets one more drop.
TEST(MaxMin, EqualsWaterPouredDropByDrop) {
  std::mt19937 random(6);
  constexpr double kDrop = 2e-3;
  for (int i = 0; i < 60; ++i) {
    const Problem p = random_problem(random);
    std::vector<double> rates(p.limits.size(), 0);
    std::vector<bool> open(rates.size(), true);
    for (bool poured = true; poured;) {
      poured = false;
      for (std::size_t f = 0; f < rates.size(); ++f) {
        if (!open[f]) continue;
        rates[f] += kDrop;
        bool over = rates[f] > p.limits[f];
        for (const Use& use : p.uses[f]) {
          const auto l = static_cast<std::size_t>(use.link);
          over |= p.load(l, rates) > p.capacity[l];
        }
        if (over) rates[f] -= kDrop, open[f] = false;
        poured = true;
      }
    }
    const std::vector<double> solved = p.solve();
    // A drop refused on a link may move as many drops elsewhere as there are flows, divided by the least amount.
    for (std::size_t f = 0; f < rates.size(); ++f) {
      EXPECT_NEAR(solved[f], rates[f], 4 * kDrop * static_cast<double>(rates.size())) << "problem " << i;
    }
  }
}

}  // namespace
}  // namespace trivium::simulator::sharing
