#include "planner/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

std::set<int> contexts(const SearchRequest& request) {
  std::set<int> found;
  for (const program::Plan& plan : enumerate(request)) found.insert(plan.context);
  return found;
}

TEST(Space, OpensContextForLongSequences) {
  SearchRequest request = small_problem();
  EXPECT_EQ(contexts(request), (std::set<int>{1}));
  request.job.training.sequence = 16'384;
  EXPECT_EQ(contexts(request), (std::set<int>{1, 2, 4, 8}));
  request.job.plan.context = 2;
  request.fixed = {"context"};
  EXPECT_EQ(contexts(request), (std::set<int>{2}));
}

TEST(Space, TriesBothWaysToExchangeKeysUnlessOneIsAskedFor) {
  SearchRequest request = small_problem();
  request.job.plan.context = 2;
  request.fixed = {"context"};
  const auto methods = [&] {
    std::set<program::ContextMethod> found;
    for (const program::Plan& plan : enumerate(request)) found.insert(plan.context_method);
    return found.size();
  };
  EXPECT_EQ(methods(), 2u);
  request.fixed.insert("context_method");
  EXPECT_EQ(methods(), 1u);
}

// Plans that differ in their exchange have other layers, and no two plans of the space are the same.
TEST(Space, PlansOfDifferentContextsDoNotShareLayers) {
  program::Plan a, b;
  a.context = b.context = 2;
  EXPECT_TRUE(share_layers(a, b));
  b.context_method = program::ContextMethod::kAllToAll;
  EXPECT_FALSE(share_layers(a, b));
  b = a;
  b.context = 4;
  EXPECT_FALSE(share_layers(a, b));
}

// Every plan that splits the tokens keeps the ranks: tensor x context x pipeline x data.
TEST(Space, EveryPlanUsesAllRanks) {
  SearchRequest request = small_problem();
  request.job.training.sequence = 16'384;
  for (const program::Plan& plan : enumerate(request)) EXPECT_EQ(plan.ranks(), ranks_of(request));
}

}  // namespace
}  // namespace trivium::planner
