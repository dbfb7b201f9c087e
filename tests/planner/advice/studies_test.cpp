#include "planner/advice/studies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/advice/relax.h"
#include "planner/search/search.h"
#include "planner/space/space.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Narrow enough that a study of several searches takes a moment.
SearchRequest narrow() {
  SearchRequest request = small_problem();
  request.fixed = {"tensor", "virtual_stages", "recompute", "zero_stage"};
  return request;
}

// A node without adapters is no larger cluster, whatever is asked.
TEST(Studies, NodesWithoutAdaptersStayAlone) {
  SearchRequest request = narrow();
  request.cluster = hardware::load_cluster("generic-cpu:1");
  request.job.training.total_tokens = 1'000'000'000'000;
  const int devices = request.cluster.devices();
  const std::vector<ScalePoint> points = scaling(request, {devices, 2 * devices}, false, {2, {}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_TRUE(points[0].best.has_value()) << points[0].refused;
  EXPECT_FALSE(points[1].best.has_value());
  EXPECT_EQ(points[1].refused, "2 nodes: \"generic-cpu\" has no network adapters, so it can only be used as one node");
  const DeadlineAnswer answer = smallest_cluster(request, 1, {2, {}});
  EXPECT_FALSE(answer.best.has_value());
  EXPECT_EQ(answer.tried, 1);
}

TEST(MemoryFront, TradesTimeForMemoryUntilNothingFits) {
  SearchRequest request = small_problem();
  const std::vector<Candidate> front = memory_front(request, {2, {}});
  ASSERT_GE(front.size(), 2U);
  EXPECT_EQ(front.front().simulation.iteration_ps, best_plan(request, {2, {}})->simulation.iteration_ps);
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_GT(front[i].simulation.iteration_ps, front[i - 1].simulation.iteration_ps);
    EXPECT_LT(front[i].simulation.peak_memory_bytes, front[i - 1].simulation.peak_memory_bytes);
  }
}

TEST(Scaling, CountsHalveDownToASixtyFourth) {
  EXPECT_THAT(scale_counts(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(scale_counts(1024), ElementsAre(16, 32, 64, 128, 256, 512, 1024));
  EXPECT_THAT(scale_counts(24), ElementsAre(3, 6, 12, 24));
}

TEST(Scaling, StrongKeepsTheBatchAndWeakGrowsIt) {
  const SearchRequest request = narrow();
  const auto strong = scaling(request, {2, 4, 8}, false, {2, {}});
  const auto weak = scaling(request, {2, 4, 8}, true, {2, {}});
  ASSERT_EQ(strong.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(strong[i].best.has_value());
    EXPECT_EQ(strong[i].best->plan.ranks(), strong[i].ranks);
    EXPECT_EQ(strong[i].global_batch, 8);
    EXPECT_EQ(weak[i].global_batch, strong[i].ranks);  // 8 samples on 8 devices
    // Tokens per second and device over the most of any point.
    EXPECT_LE(strong[i].efficiency, 1);
    EXPECT_NEAR(strong[i].efficiency * strong[0].best->simulation.tokens_per_s / strong[0].ranks,
                strong[i].best->simulation.tokens_per_s / strong[i].ranks * strong[0].efficiency, 1e-6);
  }
  EXPECT_DOUBLE_EQ(std::max({strong[0].efficiency, strong[1].efficiency, strong[2].efficiency}), 1);
  const auto uneven = scaling(request, {3, 8}, true, {2, {}});
  EXPECT_EQ(uneven[0].global_batch, 3);
}

// 2.7B parameters with 18 bytes each are 45 GiB: too much for one V100. Its optimizer's 12 bytes kept on the host leave
// room.
TEST(Scaling, ACountWithoutAPlanNamesTheNearestRequestThatHasOne) {
  SearchRequest request;
  request.job.model = models::load_model("gpt3-2.7b");
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 8;
  request.job.plan.precision = program::DType::kFp16;
  request.cluster = hardware::load_cluster("dgx1-v100-32gb:1");
  request.gap = .001;
  request.constraints = closed_unless_allowed({}, {});
  request.constraints.insert(request.constraints.begin(), parse_constraint(Constraint::Kind::kForbid, "offload"));
  const auto points = scaling(request, {1, 8}, false, {2, {}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_FALSE(points[0].best.has_value());
  EXPECT_THAT(points[0].refused, HasSubstr("GiB of"));
  EXPECT_THAT(points[0].refused, HasSubstr("; fits without --forbid offload"));
  EXPECT_TRUE(points[1].best.has_value());
  EXPECT_EQ(points[1].refused, "");
}

TEST(Deadline, NeedsTheFewestNodesThatMeetIt) {
  SearchRequest request = narrow();
  request.job.training.global_batch = 1024;  // enough work for two nodes to be worth their network
  request.job.training.total_tokens = 1'000'000;
  const auto takes = [&](int nodes) {  // as expected when measured
    const simulator::Simulation found = best_plan(on_nodes(request, nodes), {2, {}})->simulation;
    return 1e6 / found.tokens_per_s * found.certainty.expected_s / found.iteration_s;
  };
  // Just enough for two nodes, where one takes longer.
  ASSERT_LT(takes(2), takes(1));
  const DeadlineAnswer two = smallest_cluster(request, takes(2) * 1.001, {2, {}});
  EXPECT_EQ(two.nodes, 2);
  EXPECT_NEAR(two.seconds, takes(2), 1e-9);
  EXPECT_EQ(smallest_cluster(request, takes(1) * 1.001, {2, {}}).nodes, 1);
}

TEST(Batches, NeedMoreTokensNearTheCriticalBatch) {
  const SearchRequest request = narrow();
  // 256 tokens a sample: batches of 2,048 and 4,096 tokens with a critical one of 2,048 need 1 + 1 and 1 + 2 times the
  // tokens of the smallest.
  const auto points = batches(request, {8, 16}, 2048, {2, {}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[0].tokens_needed, 1);
  EXPECT_DOUBLE_EQ(points[1].tokens_needed, 1.5);
  const double first = 1 / points[0].best->simulation.tokens_per_s;
  const double second = 1.5 / points[1].best->simulation.tokens_per_s;
  EXPECT_NEAR(points[1].relative_seconds / points[0].relative_seconds, second / first, 1e-12);
  for (const BatchPoint& point : batches(request, {8, 16}, 0, {2, {}})) EXPECT_DOUBLE_EQ(point.tokens_needed, 1);
}

TEST(Sequences, KeepTheTokensOfAStep) {
  SearchRequest request = narrow();
  request.job.training.sequence = 128;
  request.job.training.global_batch = 24;
  const auto points = sequences(request, {64, 256}, {2, {}});
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].global_batch, 48);
  EXPECT_EQ(points[1].global_batch, 24);
  EXPECT_EQ(points[2].global_batch, 12);
  EXPECT_DOUBLE_EQ(points[1].best->simulation.tokens_per_s, best_plan(request, {2, {}})->simulation.tokens_per_s);
  EXPECT_EQ(sequences(request, {4096, 4096}, {2, {}}).at(0).global_batch, 1);  // one sample at least
}

TEST(Doublings, AreReadAsTwoCounts) {
  const auto range = parse_doublings("256:4096", "samples");
  ASSERT_TRUE(range);
  EXPECT_EQ(range.value().least, 256);
  EXPECT_EQ(range.value().most, 4096);
  for (const char* text : {"", "256", "256:", ":4", "8:4", "0:4", "-1:4", "1:99999999999", "4:8x", "a:b"}) {
    const auto wrong = parse_doublings(text, "samples");
    ASSERT_FALSE(wrong) << text;
    EXPECT_THAT(wrong.error().message, testing::StartsWith("write LEAST:MOST in samples")) << text;
  }
}

TEST(Sensitivities, FasterLinksNeverHurt) {
  SearchRequest request = on_nodes(narrow(), 2);
  const Candidate best = *best_plan(request, {2, {}});
  const auto found = sensitivities(request, best, {2, {}});
  std::vector<std::string> changes;
  for (const Sensitivity& s : found) changes.push_back(s.change);
  EXPECT_THAT(changes, ElementsAre("network twice as fast", "links inside nodes twice as fast", "twice the memory",
                                   "one more node", "twice the nodes"));
  EXPECT_GT(found[0].gain, 0);
  EXPECT_GE(found[1].gain, 0);
}

TEST(RobustnessStudy, ComparesTheCandidatesUnderOtherCosts) {
  const SearchRequest request = narrow();
  const SearchResult result = search(request, 2, {}, {});
  const Robustness r = robustness(request, result.best, 0.1);
  ASSERT_EQ(r.cases.size(), 8U);  // four costs, both ways
  for (const Robustness::Case& one : r.cases) {
    EXPECT_GE(one.regret, 0) << one.change;
    EXPECT_EQ(one.stays, one.regret == 0) << one.change;
    EXPECT_LE(one.regret, r.worst_regret);
  }
  // The slowest of ten chosen instead: some case must say so.
  std::vector<Candidate> wrong(result.best.rbegin(), result.best.rend());
  EXPECT_FALSE(robustness(request, wrong, 0.1).stays);
}

TEST(Relaxations, NameTheFieldThatIsInTheWay) {
  SearchRequest request = small_problem();
  request.job.plan.tensor = 3;
  request.fixed = {"tensor"};
  const auto found = relaxations(request, 1, {2, {}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].words, HasSubstr("without tensor=3: tensor="));
}

TEST(Relaxations, DropABoundThatLeavesNothing) {
  SearchRequest request = small_problem();
  request.constraints = {parse_constraint(Constraint::Kind::kMin, "pipeline=5")};
  const auto found = relaxations(request, 3, {2, {}});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].words, "without --min pipeline=5");
}

TEST(Search, DistinctAnswersAreTheBestOfEachFamily) {
  SearchRequest request = small_problem();
  request.best = 1000;
  const SearchResult all = search(request, 2, {}, {});
  request.best = 4;
  request.distinct = true;
  const SearchResult distinct = search(request, 2, {}, {});
  ASSERT_EQ(distinct.best.size(), 4U);
  std::set<std::string> families;
  for (const Candidate& c : distinct.best) {
    EXPECT_TRUE(families.insert(family_of(c.plan)).second);
    // Nothing of the family is faster.
    for (const Candidate& other : all.best) {
      if (family_of(other.plan) == family_of(c.plan)) {
        EXPECT_GE(other.simulation.iteration_ps, c.simulation.iteration_ps);
      }
    }
  }
}

}  // namespace
}  // namespace trivium::planner
