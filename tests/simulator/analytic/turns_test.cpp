#include "simulator/analytic/turns.h"

#include <gtest/gtest.h>

namespace trivium::simulator {
namespace {

// The backward computes 8, exchanges for 20, computes 4 meanwhile, then 6; the forward 10, exchanges for 30, then 5.
//   compute lane: B 0-12, F 12-22, B 28-34 (its exchange from 8 to 28), F 52-57 (its exchange from 22 to 52).
TEST(Turns, PassesWaitForTheirOwnExchanges) {
  EXPECT_EQ(pair_ps({{10, 30, 0}, {5, 0, 0}}, {{8, 20, 4}, {6, 0, 0}}), 57);
}

// Exchanges of 6 are over before their turn comes: 33 is what both compute.
TEST(Turns, ExchangesThatAreHiddenTakeNothing) {
  EXPECT_EQ(pair_ps({{10, 6, 0}, {5, 0, 0}}, {{8, 6, 4}, {6, 0, 0}}), 33);
}

// When the backward has no turn left, the forward runs its rest: B 0-3, F 3-4, F 14-16, F 21-24.
TEST(Turns, TheLongerPassEndsAlone) { EXPECT_EQ(pair_ps({{1, 10, 0}, {2, 5, 0}, {3, 0, 0}}, {{3, 0, 0}}), 24); }

// The end of a layer and the begin of the next are one turn.
TEST(Turns, OfLayersFollowEachOther) {
  std::vector<Turn> turns{{2, 0, 0}};
  const std::vector<Turn> layer{{4, 7, 1}, {5, 0, 0}};
  append(turns, layer);
  append(turns, layer);
  append(turns, {{3, 0, 0}});
  EXPECT_EQ(turns, (std::vector<Turn>{{6, 7, 1}, {9, 7, 1}, {8, 0, 0}}));
}

}  // namespace
}  // namespace trivium::simulator
