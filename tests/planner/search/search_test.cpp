#include "planner/search/search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <set>
#include <tuple>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/balance.h"
#include "planner/bound/evaluate.h"
#include "planner/search/families.h"
#include "planner/search/one_space.h"
#include "planner/space/space.h"
#include "tests/planner/problems.h"
#include "tests/sanitized.h"

namespace trivium::planner {
namespace {

using testing::HasSubstr;

SearchResult run(const SearchRequest& request, int threads = 2) { return search_as_given(request, threads, {}, {}); }

std::vector<std::string> summaries(const SearchResult& result) {
  std::vector<std::string> lines;
  for (const Candidate& c : result.best)
    lines.push_back(program::summary(c.plan) + " " + std::to_string(c.simulation.iteration_ps));
  return lines;
}

std::int64_t rejected_plans(const SearchResult& result) {
  return std::accumulate(result.rejected.begin(), result.rejected.end(), std::int64_t{0},
                         [](std::int64_t sum, const Rejected& r) { return sum + r.plans; });
}

struct SimulationTrace {
  std::int64_t ps;
  std::string summary;
  program::Plan plan;
  auto operator<=>(const SimulationTrace& other) const {
    const int more = overlaps(other.plan), overlapped = overlaps(plan);  // ties go to the plan that overlaps more
    return std::tie(ps, more, summary) <=> std::tie(other.ps, overlapped, other.summary);
  }
  bool operator==(const SimulationTrace& other) const {
    return std::tie(ps, summary) == std::tie(other.ps, other.summary);
  }
};

// Every plan simulated by itself, links shared.
struct BruteForce {
  std::vector<std::string> best;  // as summaries() writes them
  std::int64_t infeasible = 0;
  bool shares = false;  // some plan takes longer than with all links to each of its communications by itself
};

BruteForce by_brute_force(const SearchRequest& request) {
  BruteForce found;
  std::int64_t& infeasible = found.infeasible;
  std::vector<SimulationTrace> simulated;
  for (const Member& member : enumerate(request)) {
    program::Plan plan = member.plan;
    program::Job job = request.job;
    job.plan = plan;
    if (refusal(job, request.cluster, ranks_of(request))) {
      ++infeasible;
      continue;
    }
    if (member.balanced) {
      const bool memory = !request.cluster.homogeneous() && !request.ignore_memory;
      simulator::CostEstimator estimator(job, request.cluster);
      auto layered = balanced(estimator, plan, static_cast<int>(job.model.layers), memory);
      if (!std::holds_alternative<program::Plan>(layered)) {
        ++infeasible;
        continue;
      }
      plan = std::get<program::Plan>(layered);
      job.plan = plan;
    }
    const auto alone = iteration(job, request.cluster, !request.ignore_memory);
    if (std::holds_alternative<std::int64_t>(alone)) {
      const std::int64_t ps = std::get<std::int64_t>(alone);
      simulated.push_back({ps, program::summary(plan), plan});
      found.shares = found.shares || std::get<std::int64_t>(quick_bound(job, request.cluster, false)) < ps;
    } else {
      ++infeasible;
    }
  }
  std::sort(simulated.begin(), simulated.end());
  simulated.resize(std::min(simulated.size(), static_cast<std::size_t>(request.best)));
  for (const SimulationTrace& p : simulated) found.best.push_back(p.summary + " " + std::to_string(p.ps));
  return found;
}

/// Problems of the kinds that a search treats apart.
struct Kinds {
  int all = 0, experts = 0, offload = 0, heterogeneous = 0, sites = 0, shared = 0, pairs = 0;

  void count(const SearchRequest& request, bool shares, const SearchResult& found) {
    const auto open = [&](const char* field) { return !request.fixed.contains(field); };
    const bool lanes =
        std::ranges::all_of(request.cluster.groups, [](const auto& group) { return group.node.asynchronous_lanes; });
    ++all;
    experts += request.job.model.experts ? 1 : 0;
    offload += lanes && (open("offload.optimizer") || open("offload.activations")) ? 1 : 0;
    heterogeneous += request.cluster.homogeneous() ? 0 : 1;
    sites += request.cluster.links.empty() ? 0 : 1;
    shared += shares ? 1 : 0;
    pairs += !found.best.empty() && found.best.front().plan.overlap.expert ? 1 : 0;
  }

  std::string text() const {
    return fmt::format(
        "{} problems: {} with experts, {} with offload open, {} on heterogeneous nodes, {} at two sites, {} with plans "
        "that shared links slow down, {} whose best plan overlaps expert exchanges with other passes",
        all, experts, offload, heterogeneous, sites, shared, pairs);
  }
};

Kinds check_against_brute_force(unsigned seed, int problems, SearchRequest (*draw)(std::mt19937&)) {
  std::mt19937 random(seed);
  std::int64_t bounded = 0, refused = 0;
  Kinds kinds;
  for (int i = 0; i < problems; ++i) {
    const SearchRequest request = draw(random);
    SCOPED_TRACE("problem " + std::to_string(i) + " on " + request.cluster.name);
    const BruteForce expected = by_brute_force(request);
    const SearchResult result = run(request);
    EXPECT_EQ(summaries(result), expected.best);
    EXPECT_LE(result.plans_infeasible,
              expected.infeasible);  // what a bound passes over is not looked at for its memory
    EXPECT_TRUE(result.proved);
    bounded += result.plans_bounded;
    refused += result.plans_infeasible;
    kinds.count(request, expected.shares, result);
  }
  std::cout << kinds.text() << "\n";
  EXPECT_GT(bounded, 0);  // else the bound was not put to the test
  EXPECT_GT(refused, 0);
  return kinds;
}

constexpr int kProblems = kSanitized ? 40 : 200;

TEST(Search, FindsWhatSimulatingEveryPlanFinds) {
  const Kinds kinds = check_against_brute_force(3, kProblems, random_problem);
  EXPECT_GT(kinds.experts, kProblems / 8);
  EXPECT_GT(kinds.offload, kProblems / 4);
  EXPECT_GT(kinds.heterogeneous, kProblems / 6);
  EXPECT_GT(kinds.sites, kProblems / 15);
}

TEST(Search, FindsWhatSimulatingEveryPlanFindsWhereLinksAreShared) {
  const Kinds kinds = check_against_brute_force(13, kProblems, random_crowded_problem);
  EXPECT_GT(kinds.experts, kProblems / 8);
  EXPECT_GT(kinds.offload, kProblems / 4);
  EXPECT_GT(kinds.heterogeneous, kProblems / 6);
  EXPECT_GT(kinds.shared, kProblems / 25);
}

TEST(Search, FindsWhatSimulatingEveryPlanFindsWhereExchangesWithExpertsRunBesideOtherPasses) {
  const Kinds kinds = check_against_brute_force(19, kProblems / 2, random_pair_problem);
  EXPECT_GT(kinds.pairs, kProblems / 20);
  EXPECT_GT(kinds.offload, kProblems / 20);
}

// Searches try no schedule in a V but where it is named: then the bounds hold for it too.
SearchRequest random_problem_in_a_v(std::mt19937& random) {
  SearchRequest request = random_problem(random);
  while (request.job.plan.offload.parameters != program::Storage::kNone || ranks_of(request) < 2) {
    request = random_problem(random);
  }
  request.fixed.erase("zero_stage");
  request.fixed.insert("schedule");
  request.job.plan.schedule = random() % 2 == 0 ? program::Schedule::kZbv : program::Schedule::kDualPipeV;
  request.job.plan.virtual_stages = 2;
  return request;
}

TEST(Search, FindsWhatSimulatingEveryPlanInAVFinds) {
  const Kinds kinds = check_against_brute_force(17, 50, random_problem_in_a_v);
  EXPECT_GT(kinds.experts, 0);
  EXPECT_GT(kinds.heterogeneous, 0);
}

TEST(Search, AnswersTheSameOnAnyNumberOfThreads) {
  std::mt19937 random(5);
  for (int i = 0; i < 8; ++i) {
    const SearchRequest request = random_problem(random);
    const SearchResult one = run(request, 1);
    for (const int threads : {2, 5, 0}) {
      const SearchResult many = run(request, threads);
      EXPECT_EQ(summaries(many), summaries(one));
      EXPECT_EQ(many.plans_bounded, one.plans_bounded);
      EXPECT_EQ(many.plans_simulated, one.plans_simulated);
    }
  }
}

TEST(Search, AccountsForEveryPlanOfTheSpace) {
  std::mt19937 random(9);
  for (int i = 0; i < 20; ++i) {
    const SearchRequest request = random_problem(random);
    const SearchResult result = run(request);
    EXPECT_EQ(result.plans_in_space, static_cast<std::int64_t>(enumerate(request).size()));
    EXPECT_EQ(result.plans_infeasible + result.plans_bounded + result.plans_simulated, result.plans_in_space);
    EXPECT_EQ(rejected_plans(result), result.plans_infeasible);
  }
}

TEST(Search, FiguresAreThoseOfSimulatingThePlanAlone) {
  const SearchRequest request = small_problem();
  const SearchResult result = run(request);
  ASSERT_EQ(result.best.size(), 10U);
  for (const Candidate& c : result.best) {
    program::Job job = request.job;
    job.plan = c.plan;
    const auto alone = full_simulation(job, request.cluster);
    EXPECT_EQ(c.simulation.iteration_ps, alone.value().iteration_ps);
    EXPECT_EQ(c.simulation.peak_memory_bytes, alone.value().peak_memory_bytes);
  }
}

TEST(Search, KeepsFixedFields) {
  SearchRequest request = small_problem();
  request.job.plan.pipeline = 2;
  request.job.plan.virtual_stages = 2;
  request.job.plan.recompute = program::Recompute::kFull;
  request.fixed = {"pipeline", "virtual_stages", "recompute"};
  const SearchResult result = run(request);
  ASSERT_FALSE(result.best.empty());
  for (const Candidate& c : result.best) {
    EXPECT_EQ(c.plan.pipeline, 2);
    EXPECT_EQ(c.plan.virtual_stages, 2);
    EXPECT_EQ(c.plan.schedule, program::Schedule::kInterleaved);
    EXPECT_EQ(c.plan.recompute, program::Recompute::kFull);
  }
}

TEST(Space, OpensEveryZeroStageAndOverlapsWhereThereAreLanes) {
  const auto stages_of = [](const std::string& cluster) {
    SearchRequest request = small_problem();
    request.cluster = hardware::load_cluster(cluster);
    request.cluster.groups[0].node.devices = 8;
    request.job.plan.tensor = request.job.plan.pipeline = 1;
    request.fixed = {"tensor", "pipeline"};
    std::set<std::tuple<int, bool, bool>> found;  // zero_stage, gradient_reduction, parameter_gather
    for (const auto& [plan, balanced] : enumerate(request)) {
      found.insert({plan.zero_stage, plan.overlap.gradient_reduction, plan.overlap.parameter_gather});
    }
    return found;
  };
  std::set<std::tuple<int, bool, bool>> all{{0, false, false}, {0, true, false}};
  for (const int stage : {1, 2, 3}) {
    for (const bool reduces : {false, true}) {
      for (const bool gathers : {false, true}) all.insert({stage, reduces, gathers});
    }
  }
  EXPECT_EQ(stages_of("dgx-a100-80gb:1"), all);
  EXPECT_EQ(stages_of("generic-cpu:1"),
            (std::set<std::tuple<int, bool, bool>>{
                {0, false, false}, {1, false, false}, {2, false, false}, {3, false, false}}));
}

// Two nodes of eight: four replicas of two tensor ranks share one, and one replica of eight has none to share with.
TEST(Space, OpensShardGroupsThatStayInsideANode) {
  SearchRequest request = small_problem();
  request.cluster = hardware::load_cluster("dgx-a100-80gb:2");
  request.job.plan.tensor = 2;
  request.fixed = {"tensor"};
  std::set<std::tuple<int, int, int>> found;  // data, zero_stage, shard_group
  for (const auto& [plan, balanced] : enumerate(request)) {
    if (plan.shard_group > 0) found.insert({plan.data, plan.zero_stage, plan.shard_group});
  }
  EXPECT_EQ(found, (std::set<std::tuple<int, int, int>>{{8, 3, 4}}));
  request.fixed.insert("shard_group");
  for (const auto& [plan, balanced] : enumerate(request)) EXPECT_EQ(plan.shard_group, 0);
}

// Eight replicas of a model that fits only where parameters are shared too.
TEST(Search, TakesZeroThreeWhereNothingElseFits) {
  SearchRequest request = small_problem();
  request.fixed = {"tensor", "pipeline", "micro_batch", "recompute", "offload.optimizer", "offload.activations"};
  std::vector<std::int64_t> peak;
  for (const int stage : {0, 1, 2, 3}) {
    program::Job job = request.job;
    job.plan.data = 8;
    job.plan.zero_stage = stage;
    peak.push_back(full_simulation(job, request.cluster).value().peak_memory_bytes);
  }
  EXPECT_GT(peak[0], peak[1]);
  EXPECT_GT(peak[1], peak[2]);
  EXPECT_GT(peak[2], peak[3]);
  request.cluster.groups[0].node.device.memory = base::Bytes(static_cast<double>(peak[3]));
  const SearchResult result = run(request);
  ASSERT_FALSE(result.best.empty());
  for (const Candidate& c : result.best) EXPECT_EQ(c.plan.zero_stage, 3);
}

TEST(Search, RefusesByNameWhatFixedFieldsMakeImpossible) {
  SearchRequest request = small_problem();
  request.job.plan.tensor = 3;
  request.fixed = {"tensor"};
  const SearchResult result = run(request);
  EXPECT_TRUE(result.best.empty());
  EXPECT_TRUE(result.proved);
  ASSERT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(result.rejected[0].rule, "tensor-divides-heads");
}

// Adam's moments and the fp32 copy of 16-bit parameters are three quarters of the state: where that is too much for the
// device, offload fits, and only there, as copies take time.
TEST(Search, OffloadsWhereTheStateDoesNotFit) {
  SearchRequest request = small_problem();
  request.ranks = 1;
  request.fixed = {"micro_batch"};
  request.best = 1;
  const SearchResult roomy = run(request);
  ASSERT_EQ(roomy.best.size(), 1U);
  EXPECT_EQ(roomy.best[0].plan.offload.optimizer, program::Storage::kNone);
  auto& device = request.cluster.groups[0].node.device;
  const simulator::StageMemory& needed = roomy.best[0].simulation.stages[0].memory;
  device.memory = device.reserved + base::Bytes(static_cast<double>(needed.optimizer + needed.parameters));
  const SearchResult tight = run(request);
  ASSERT_EQ(tight.best.size(), 1U);
  EXPECT_EQ(tight.best[0].plan.offload.optimizer, program::Storage::kHost);
  request.constraints = {parse_constraint(Constraint::Kind::kForbid, "offload")};
  EXPECT_TRUE(run(request).best.empty());
}

// What the request's own plan recomputes is a field as open as the others: no plan offloads activations and recomputes
// them all, wherever the search begins.
TEST(Search, IsTheSameWhateverTheOpenFieldsOfTheRequestSay) {
  SearchRequest request = small_problem();
  const SearchResult plain = run(request);
  ASSERT_FALSE(plain.best.empty());
  request.job.plan.recompute = program::Recompute::kFull;
  request.job.plan.micro_batch = 2;
  EXPECT_EQ(summaries(run(request)), summaries(plain));
}

// Nor does what the plan recomputes where it says so chunk by chunk.
TEST(Search, IsTheSameWhateverIsSaidBesideTheRecomputeOfChunks) {
  SearchRequest request = small_problem();
  auto& device = request.cluster.groups[0].node.device;
  device.memory = device.reserved + base::Bytes(80 * base::kMiB);
  request.job.plan.stage_recompute = {program::Recompute::kNone, program::Recompute::kSelective};
  const SearchResult plain = run(request);
  ASSERT_FALSE(plain.best.empty());
  request.job.plan.recompute = program::Recompute::kFull;
  EXPECT_EQ(summaries(run(request)), summaries(plain));
}

// Asked for a plan within a tenth of the fastest, the search looks at less, and says so.
TEST(Search, AGapIsKept) {
  SearchRequest request = small_problem();
  request.best = 1;
  const SearchResult exact = run(request);
  request.gap = 0.1;
  const SearchResult near = run(request);
  EXPECT_LE(near.best_s, exact.best_s * 1.1);
  EXPECT_LE(near.nodes_opened, exact.nodes_opened);
  EXPECT_LE(near.bound_s, exact.best_s);
  EXPECT_GE(near.bound_s, near.best_s * 0.9 * (1 - 1e-9));
}

TEST(Search, SaysWhatFillsTheMemory) {
  SearchRequest request = small_problem();
  auto& device = request.cluster.groups[0].node.device;
  device.memory = device.reserved + base::Bytes(base::kMiB);
  const SearchResult result = run(request);
  EXPECT_TRUE(result.best.empty());
  const auto full =
      std::find_if(result.rejected.begin(), result.rejected.end(), [](const auto& r) { return r.rule == "memory"; });
  ASSERT_NE(full, result.rejected.end());
  EXPECT_THAT(full->reason, HasSubstr("GiB of"));
  for (const char* part : {"parameters ", "gradients ", "optimizer ", "activations ", "workspace ", "reserved "}) {
    EXPECT_THAT(full->reason, HasSubstr(part));
  }
  request.ignore_memory = true;
  EXPECT_FALSE(run(request).best.empty());
}

TEST(Search, StoppedBeforeItBeganHasNothingAndSaysSo) {
  std::stop_source source;
  source.request_stop();
  const SearchResult result = search(small_problem(), 2, source.get_token(), {});
  EXPECT_FALSE(result.proved);
  EXPECT_TRUE(result.best.empty());
}

// Nothing but bounds is known at the first report.
TEST(Search, StoppedBeforeAnyPlanIsSimulatedHasOneAllTheSame) {
  std::stop_source source;
  const SearchResult result = search_as_given(small_problem(), 1, source.get_token(), [&](auto, auto, double best_s) {
    EXPECT_EQ(best_s, 0);
    source.request_stop();
  });
  EXPECT_FALSE(result.proved);
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_EQ(result.best.front().simulation.iteration_s, result.best_s);
  EXPECT_LE(result.bound_s, result.best_s);
  EXPECT_GE(run(small_problem()).best_s, result.bound_s);
}

// The first round of plans is simulated, its best is reported, and the search is stopped there.
TEST(Search, StoppedOnTheWayReturnsTheBestSoFar) {
  SearchRequest request = small_problem();
  request.best = 40;  // more than one round holds
  std::stop_source source;
  double reported = 0;
  const SearchResult result = search(request, 2, source.get_token(), [&](std::int64_t, std::int64_t, double best_s) {
    reported = best_s;
    if (best_s > 0) source.request_stop();
  });
  EXPECT_FALSE(result.proved);
  EXPECT_FALSE(result.best.empty());
  EXPECT_LT(result.plans_simulated, 40);
  EXPECT_GT(reported, 0);
  // How far it is from proved: nothing is faster than the lowest bound that is left.
  EXPECT_GT(result.bound_s, 0);
  EXPECT_LE(result.bound_s, result.best_s);
  request.best = 1;
  EXPECT_GE(run(request).best_s, result.bound_s);
}

// Narayanan et al. 2021 trained GPT-3 175B on 1,024 A100s by hand with tensor 8, pipeline 16, data 8, full
// recomputation.
// Of thousands of answers, interrupted, the first few have their figures, best first.
TEST(Search, StoppedAtTheEndOfALongListKeepsItsBeginning) {
  SearchRequest request = small_problem();
  request.best = 10'000;
  std::stop_source source;
  int reports = 0;
  const SearchResult result = search_as_given(request, 1, source.get_token(), [&](auto, auto, double best_s) {
    if (best_s > 0 && ++reports > 40) source.request_stop();
  });
  EXPECT_FALSE(result.proved);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(result.best.front().simulation.iteration_s, result.best_s);
  EXPECT_LE(result.best.size(), 6'000U / 4);
}

TEST(Search, BeatsThePublishedHandPlanOfGpt3) {
  SearchRequest request;
  request.job.model = models::load_model("gpt3-175b");
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 1536;
  request.cluster = hardware::load_cluster("dgx-a100-80gb:128");
  request.best = 1;
  request.gap = .001;
  request.constraints = closed_unless_allowed({}, {});
  program::Job hand = request.job;
  hand.plan.tensor = 8;
  hand.plan.pipeline = 16;
  hand.plan.data = 8;
  hand.plan.recompute = program::Recompute::kFull;
  const auto by_hand = full_simulation(hand, request.cluster);
  const SearchResult result = run(request, 0);
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_TRUE(result.proved);
  EXPECT_LE(result.best[0].simulation.iteration_ps, by_hand.value().iteration_ps);
}

// What is told to be the least is, and rises.
TEST(Search, TellsWhatNoPlanCanBeFasterThanWhileItGoesOn) {
  SearchRequest request = small_problem();
  std::vector<double> bounds;
  request.on_bound = [&](double bound_s) { bounds.push_back(bound_s); };
  const SearchResult result = search(request, 2, {}, {});
  ASSERT_FALSE(result.best.empty());
  ASSERT_FALSE(bounds.empty());
  EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end()));
  EXPECT_GT(bounds.front(), 0);
  EXPECT_LE(bounds.back(), result.best.front().simulation.iteration_s * (1 + 1e-9));
}

}  // namespace
}  // namespace trivium::planner
