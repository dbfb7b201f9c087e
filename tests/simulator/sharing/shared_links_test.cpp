// Flows that come and go: rates as if the whole problem were solved anew each time.
#include "simulator/sharing/shared_links.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace trivium::simulator::sharing {
namespace {

std::vector<Use> over(std::initializer_list<int> links) {
  std::vector<Use> uses;
  for (const int link : links) uses.push_back({link, 1});
  return uses;
}

TEST(SharedLinks, FlowsThatFitRunAtExactlyTheirLimit) {
  SharedLinks links({1.0});
  std::vector<int> changed;
  for (int i = 0; i < 10; ++i) {
    const int flow = links.add(.1, over({0}), changed);  // ten tenths add up to a little less than one
    EXPECT_EQ(changed, (std::vector<int>{flow}));
    EXPECT_EQ(links.rate(flow), .1);
  }
}

TEST(SharedLinks, ALeavingFlowGivesItsShareBack) {
  SharedLinks links({10});
  std::vector<int> changed;
  const int a = links.add(8, over({0}), changed), b = links.add(8, over({0}), changed);
  EXPECT_EQ(changed, (std::vector<int>{a, b}));
  EXPECT_EQ(links.rate(a), 5);
  links.remove(a, changed);
  EXPECT_EQ(changed, (std::vector<int>{b}));
  EXPECT_EQ(links.rate(b), 8);
}

// The flow over both links is slowed on the first; what it leaves on the second the third flow takes: 10 - 4.
TEST(SharedLinks, AChangeReachesFlowsThatShareNoLinkWithIt) {
  SharedLinks links({8, 10});
  std::vector<int> changed;
  const int both = links.add(7, over({0, 1}), changed), second = links.add(9, over({1}), changed);
  EXPECT_EQ(links.rate(second), 5);
  const int first = links.add(7, over({0}), changed);
  EXPECT_EQ(changed, (std::vector<int>{both, second, first}));
  EXPECT_EQ(links.rate(both), 4);
  EXPECT_EQ(links.rate(second), 6);
}

TEST(SharedLinks, RatesAreThoseOfTheWholeProblemAfterEveryChange) {
  std::mt19937 random(8);
  const std::vector<double> capacity{5, 3, 8, 2, 6, 4};
  SharedLinks links(capacity);
  struct Known {
    double limit;
    std::vector<Use> uses;
    double rate;
  };
  std::map<int, Known> known;
  std::vector<int> changed;
  for (int step = 0; step < 4000; ++step) {
    if (known.size() > 12 || (!known.empty() && std::bernoulli_distribution(.45)(random))) {
      const auto gone =
          std::next(known.begin(), std::uniform_int_distribution<int>(0, static_cast<int>(known.size()) - 1)(random));
      links.remove(gone->first, changed);
      known.erase(gone);
    } else {
      std::vector<Use> uses;
      for (int l = 0; l < 6; ++l) {
        if (std::bernoulli_distribution(.35)(random)) uses.push_back({l, 1});
      }
      const double limit = std::uniform_real_distribution<double>(.2, 4)(random);
      const int flow = links.add(limit, uses, changed);
      ASSERT_TRUE(std::binary_search(changed.begin(), changed.end(), flow));
      known[flow] = {limit, uses, 0};
    }
    for (const int flow : changed) known.at(flow).rate = links.rate(flow);
    std::vector<Demand> demands;
    for (const auto& [flow, k] : known) demands.push_back({k.limit, k.uses});
    const std::vector<double> rates = max_min(capacity, demands);
    std::size_t i = 0;
    for (const auto& [flow, k] : known) {
      ASSERT_NEAR(links.rate(flow), rates[i++], 1e-9) << "step " << step;
      ASSERT_EQ(links.rate(flow), k.rate) << "a change was not told, step " << step;
    }
    ASSERT_EQ(links.active(), static_cast<int>(known.size()));
  }
}

// A flow over many links, held to 4 by the first; what comes and goes elsewhere without filling a link is its own
// affair.
TEST(SharedLinks, WhatAChangeDoesNotReachKeepsItsRateToTheBit) {
  SharedLinks links({8, 10, 10, 10});
  std::vector<int> changed;
  const int along = links.add(9, over({0, 1, 2, 3}), changed), holds = links.add(9, over({0}), changed);
  ASSERT_EQ(links.rate(along), 4);
  for (const int link : {1, 2, 3}) {
    const int beside = links.add(9, over({link}), changed);  // link: 9 + 9 > 10, but 4 + 6 fit
    EXPECT_EQ(changed, (std::vector<int>{beside}));
    EXPECT_EQ(links.rate(beside), 6);
  }
  links.remove(holds, changed);  // 9 + 9 on each of three links: 5 each
  EXPECT_EQ(changed.size(), 4U);
  EXPECT_EQ(links.rate(along), 5);
}

// Long flows over half of all links along with short ones, as reductions with transfers; with parts of links.
TEST(SharedLinks, LongAndShortFlowsShareAsInTheWholeProblem) {
  std::mt19937 random(21);
  constexpr int kLinks = 40;
  const std::vector<double> capacity(kLinks, 10.0);
  SharedLinks links(capacity);
  std::map<int, std::pair<double, std::vector<Use>>> known;
  std::vector<int> changed;
  std::size_t told = 0;
  for (int step = 0; step < 3000; ++step) {
    if (known.size() > 60 || (!known.empty() && std::bernoulli_distribution(.45)(random))) {
      const auto gone =
          std::next(known.begin(), std::uniform_int_distribution<int>(0, static_cast<int>(known.size()) - 1)(random));
      links.remove(gone->first, changed);
      known.erase(gone);
    } else {
      const bool is_long = std::bernoulli_distribution(.1)(random);
      std::vector<Use> uses;
      for (int l = 0; l < kLinks; ++l) {
        if (!std::bernoulli_distribution(is_long ? .5 : .05)(random)) continue;
        uses.push_back({l, is_long ? 1.0 : std::uniform_int_distribution<int>(1, 3)(random) / 3.0});
      }
      const double limit = std::uniform_int_distribution<int>(2, 12)(random);
      known[links.add(limit, uses, changed)] = {limit, uses};
    }
    told += changed.size();
    std::vector<Demand> demands;
    for (const auto& [flow, k] : known) demands.push_back({k.first, k.second});
    const std::vector<double> rates = max_min(capacity, demands);
    std::size_t i = 0;
    for (const auto& [flow, k] : known) ASSERT_NEAR(links.rate(flow), rates[i++], 1e-8) << "step " << step;
  }
  EXPECT_GT(told, 3000U);
}

}  // namespace
}  // namespace trivium::simulator::sharing
