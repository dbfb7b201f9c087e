#include "planner/advice/why_not.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/advice/neighbours.h"
#include "planner/advice/studies.h"
#include "planner/bound/evaluate.h"
#include "program/plan/differences.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Case {
  SearchRequest request = small_problem();
  program::Job chosen = request.job;
  Case() { chosen.plan = best_plan(request, {2, {}})->plan; }
  program::Job other() const { return chosen; }
};

TEST(WhyNot, MicroBatchesByReplicaStandForTheCommonOne) {
  program::Plan one, other;
  one.replica_micro_batch = other.replica_micro_batch = {8, 4};
  other.micro_batch = 2;
  EXPECT_TRUE(differences(one, other).empty());
  other.replica_micro_batch = {4, 2};
  ASSERT_EQ(differences(one, other).size(), 1U);
  EXPECT_EQ(differences(one, other).front().field, "replica_micro_batch");
}

TEST(WhyNot, SaysTheSame) {
  const Case c;
  EXPECT_EQ(why_not(c.chosen, c.chosen, c.request.cluster).verdict, "same");
}

TEST(WhyNot, NamesTheRule) {
  const Case c;
  program::Job other = c.other();
  other.plan.micro_batch = 3;
  const WhyNot why = why_not(c.chosen, other, c.request.cluster);
  EXPECT_EQ(why.verdict, "rule");
  EXPECT_EQ(why.rule, "batch-divides");
  EXPECT_EQ(why.differences.front().field, "micro_batch");
  EXPECT_EQ(why.iteration_s, 0);
}

TEST(WhyNot, GivesUpWhatItSimulatesWhenItIsStopped) {
  const Case c;
  program::Job other = c.other();
  other.plan = {};
  other.plan.pipeline = 2;
  other.plan.data = 4;
  other.plan.recompute = program::Recompute::kFull;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(why_not(c.chosen, other, c.request.cluster, stop.get_token()), base::Failure);
  EXPECT_TRUE(try_neighbours(c.chosen, c.request.cluster, stop.get_token()).empty());
  EXPECT_FALSE(try_neighbours(c.chosen, c.request.cluster).empty());
}

TEST(WhyNot, SaysHowMuchSlowerAndWhere) {
  const Case c;
  program::Job other = c.other();
  other.plan.recompute = program::Recompute::kFull;
  const WhyNot why = why_not(c.chosen, other, c.request.cluster);
  EXPECT_EQ(why.verdict, "slower");
  EXPECT_THAT(why.sentences, Contains(HasSubstr("recompute full instead of none")));
  EXPECT_THAT(why.sentences, Contains(HasSubstr("recompute ")));
  EXPECT_DOUBLE_EQ(why.iteration_s, full_simulation(other, c.request.cluster).value().iteration_s);
  EXPECT_LE(why.bound_s, why.iteration_s);
  EXPECT_GT(why.bound_s, 0);
}

TEST(WhyNot, SaysWhatIsMissingAndWhatWouldFit) {
  Case c;
  program::Job small = c.other(), big = c.other();
  small.plan = big.plan = {};
  small.plan.pipeline = big.plan.pipeline = 2;
  small.plan.data = big.plan.data = 4;
  small.plan.recompute = program::Recompute::kFull;
  const auto needed = full_simulation(small, c.request.cluster).value().peak_memory_bytes;
  c.request.cluster.groups[0].node.device.memory = base::Bytes(static_cast<double>(needed));
  const WhyNot why = why_not(small, big, c.request.cluster);
  EXPECT_EQ(why.verdict, "memory");
  EXPECT_THAT(why.sentences, Contains(HasSubstr("It does not fit: stage 0 needs")));
  EXPECT_THAT(why.sentences, Contains(HasSubstr("one change away that fits: ")));
}

}  // namespace
}  // namespace trivium::planner
