// Bounds of every level against the plans below them.
#include "planner/tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/evaluate.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

// Down one path of the tree, taking a child at random; nothing where all children were refused.
std::optional<std::vector<Node>> random_path(Tree& tree, std::mt19937& random) {
  std::vector<Node> nodes = tree.roots(), path;
  while (!nodes.empty()) {
    path.push_back(nodes[std::uniform_int_distribution<std::size_t>(0, nodes.size() - 1)(random)]);
    if (path.back().is_plan()) return path;
    nodes = tree.open(path.back()).nodes;
  }
  return std::nullopt;
}

// A node that is passed over takes every plan below it along: none may be faster than its bound.
TEST(Tree, NoPlanIsFasterThanTheBoundOfANodeAboveIt) {
  std::mt19937 random(17);
  int plans = 0, tight = 0;
  for (int i = 0; i < 60; ++i) {
    const SearchRequest request = random_problem(random);
    Tree tree(request);
    for (int walk = 0; walk < 20; ++walk) {
      const auto path = random_path(tree, random);
      if (!path) continue;
      const program::Plan& plan = *path->back().plan;
      program::Job job = request.job;
      job.plan = plan;
      SCOPED_TRACE(program::summary(plan) + " " + plan.placement + " on " + request.cluster.name);
      const auto played = quick_iteration(job, request.cluster, false);
      ASSERT_TRUE(std::holds_alternative<std::int64_t>(played));
      const std::int64_t iteration = std::get<std::int64_t>(played);
      for (std::size_t n = 0; n < path->size(); ++n) {
        EXPECT_LE((*path)[n].bound_ps, iteration) << "level " << static_cast<int>((*path)[n].level);
        EXPECT_GE((*path)[n].bound_ps, (*path)[n == 0 ? 0 : n - 1].bound_ps);
      }
      ++plans;
      tight += static_cast<double>(path->back().bound_ps) > 0.95 * static_cast<double>(iteration) ? 1 : 0;
    }
  }
  EXPECT_GT(plans, 300);
  EXPECT_GT(4 * tight, plans);  // a bound of nothing would pass too
}

// Costs and bytes that other plans of the search left behind are those of a sketch by itself.
TEST(Tree, SharedCostsAreThoseOfEachPlanAlone) {
  std::mt19937 random(23);
  int plans = 0;
  for (int i = 0; i < 30; ++i) {
    SearchRequest request = random_problem(random);
    request.ignore_memory = true;
    const std::vector<Member> members = enumerate(request);
    simulator::SharedCosts shared;
    for (int k = 0; k < 40; ++k) {
      const Member& member = members[std::uniform_int_distribution<std::size_t>(0, members.size() - 1)(random)];
      program::Job job = request.job;
      job.plan = member.plan;
      if (refusal(job, request.cluster, ranks_of(request))) continue;
      SCOPED_TRACE(program::summary(job.plan) + " " + job.plan.placement + " on " + request.cluster.name);
      simulator::Sketch alone(job, request.cluster), other(job, request.cluster, &shared);
      const simulator::Outline a = alone.outline(job.plan), b = other.outline(job.plan);
      EXPECT_EQ(simulator::lower_bound_ps(a), simulator::lower_bound_ps(b));
      EXPECT_EQ(simulator::lower_bound_ps(a, simulator::walked_ends(a)),
                simulator::lower_bound_ps(b, simulator::walked_ends(b)));
      const auto needed = alone.memory(job.plan), shares = other.memory(job.plan);
      for (std::size_t s = 0; s < needed.size(); ++s) EXPECT_EQ(shares[s].total(), needed[s].total());
      ++plans;
    }
  }
  EXPECT_GT(plans, 300);
}

TEST(Tree, CountsWhatEnumeratingLists) {
  std::mt19937 random(29);
  for (int i = 0; i < 30; ++i) {
    const SearchRequest request = random_problem(random);
    EXPECT_EQ(Space(request).count(), static_cast<std::int64_t>(enumerate(request).size()));
  }
}

}  // namespace
}  // namespace trivium::planner
