#include "planner/space/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/space/levels.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

std::set<int> contexts(const SearchRequest& request) {
  std::set<int> found;
  for (const Member& member : enumerate(request)) found.insert(member.plan.context);
  return found;
}

// A field that is new is searched, or it is said why not.
TEST(Levels, DecideEveryFieldOfAPlanOnce) {
  std::vector<std::string> decided, fields = program::plan_fields();
  for (const SearchedField& field : searched_fields()) decided.emplace_back(field.name);
  std::sort(decided.begin(), decided.end());
  std::sort(fields.begin(), fields.end());
  EXPECT_EQ(decided, fields);
}

TEST(Space, OpensContextForLongSequences) {
  SearchRequest request = small_problem();
  EXPECT_EQ(contexts(request), (std::set<int>{1}));
  request.job.training.sequence = 16'384;
  EXPECT_EQ(contexts(request), (std::set<int>{1, 2, 4}));  // parts of 4,096 tokens and more
  request.job.training.sequence = 8'192;
  EXPECT_EQ(contexts(request), (std::set<int>{1, 2}));
  request.job.training.sequence = 8'000;
  EXPECT_EQ(contexts(request), (std::set<int>{1}));
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
    for (const Member& member : enumerate(request)) found.insert(member.plan.context_method);
    return found.size();
  };
  EXPECT_EQ(methods(), 2u);
  request.fixed.insert("context_method");
  EXPECT_EQ(methods(), 1u);
}

// No two plans of the space are the same: a plan is counted once.
TEST(Space, NoPlanIsThereTwice) {
  std::mt19937 random(31);
  for (int i = 0; i < 20; ++i) {
    const SearchRequest request = random_problem(random);
    std::set<std::string> seen;
    for (const Member& member : enumerate(request)) {
      std::string text = member.balanced ? "balanced" : "";
      for (const std::string& field : program::plan_fields()) text += " " + text_of(member.plan, field);
      EXPECT_TRUE(seen.insert(text).second) << text;
    }
  }
}

// All ranks on one node, where no order of the dimensions differs from another: offload of either state, compression.
TEST(Space, OpensPlacementOffloadCompressionAndMixedRecomputation) {
  SearchRequest request = small_problem();
  request.job.plan.tensor = request.job.plan.pipeline = 2;
  request.fixed = {"tensor", "pipeline", "micro_batch"};
  std::set<std::string> placements, states;
  std::set<std::vector<program::Recompute>> kept;
  bool balanced = false;
  for (const Member& member : enumerate(request)) {
    placements.insert(member.plan.placement);
    states.insert(text_of(member.plan, "offload.optimizer") + " " + text_of(member.plan, "offload.activations") + " " +
                  text_of(member.plan, "compression"));
    kept.insert(member.plan.stage_recompute);
    balanced |= member.balanced;
    EXPECT_TRUE(member.plan.compression == program::Compression::kNone || member.plan.zero_stage == 0);
  }
  EXPECT_EQ(placements.size(), 1u);
  EXPECT_EQ(states.size(), 8u);
  // Nowhere; the first of two stages, and the first two of four chunks, by three pairs of ways.
  EXPECT_EQ(kept.size(), 1u + 3u + 3u);
  EXPECT_TRUE(balanced);
}

TEST(Space, FieldsHaveTheValuesThatPlansTake) {
  const SearchRequest request = small_problem();
  std::map<std::string, std::set<std::string>> taken;
  for (const Member& member : enumerate(request)) {
    for (const std::string& field : program::plan_fields()) taken[field].insert(text_of(member.plan, field));
  }
  for (const auto& [field, values] : fields_of(request)) {
    EXPECT_EQ(std::set<std::string>(values.begin(), values.end()), taken[field]) << field;
  }
}

// Every plan that splits the tokens keeps the ranks: tensor x context x pipeline x data.
TEST(Space, EveryPlanUsesAllRanks) {
  SearchRequest request = small_problem();
  request.job.training.sequence = 16'384;
  for (const Member& member : enumerate(request)) EXPECT_EQ(member.plan.ranks(), ranks_of(request));
}

}  // namespace
}  // namespace trivium::planner
