// Whole replicas on nodes of one kind, with micro-batches of their own: proved equal to trying everything.
#include "planner/search/replica_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/advice/why_not.h"
#include "planner/bound/balance.h"
#include "planner/bound/evaluate.h"
#include "planner/search/mixed.h"
#include "planner/search/search.h"
#include "planner/space/constraints.h"
#include "planner/space/space.h"
#include "program/plan/job_json.h"
#include "tests/planner/problems.h"
#include "tests/sanitized.h"

namespace trivium::planner {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// Two A100 and two V100, a model of four layers and twelve samples a step.
SearchRequest two_kinds() {
  SearchRequest request = small_problem();
  request.job.training.global_batch = 12;
  request.job.plan.precision = program::DType::kFp16;
  request.cluster = hardware::load_cluster("dgx-a100-80gb:1+dgx1-v100-32gb:1");
  for (auto& group : request.cluster.groups) group.node.devices = 2;
  request.fixed = {"offload.optimizer", "offload.activations", "compression", "overlap.tensor"};
  request.best = 1;
  return request;
}

/// The fastest of all plans that put whole replicas on kinds of nodes, tried one by one; kNone where none fits.
std::int64_t fastest_of_all(const SearchRequest& request, std::int64_t& tried) {
  std::int64_t fastest = kNone;
  const std::int64_t batch = request.job.training.global_batch;
  for (int a = 1; a <= batch; ++a) {
    for (int b = 1; b <= batch; ++b) {
      SearchRequest alike = request;
      alike.cluster.groups.resize(1);
      alike.cluster.groups.front().count = 2;
      alike.job.plan.placement = kWholeReplicas;
      alike.job.plan.micro_batch = 1;
      alike.fixed.insert({"placement", "micro_batch"});
      for (const Member& member : enumerate(alike)) {
        const program::Plan& plan = member.plan;
        const int replica = plan.tensor * plan.pipeline;
        if (2 % replica != 0) continue;  // two devices of each kind
        program::Job job = request.job;
        job.plan = plan;
        job.plan.replica_micro_batch.assign(static_cast<std::size_t>(2 / replica), a);
        job.plan.replica_micro_batch.insert(job.plan.replica_micro_batch.end(), static_cast<std::size_t>(2 / replica),
                                            b);
        if ((a == b && plan.pipeline == 1) || batch % program::samples_of_pass(job.plan) != 0) continue;
        ++tried;
        if (member.balanced) {
          // As on the kind that the search looks at: both are tried.
          for (const auto& group : request.cluster.groups) {
            hardware::Cluster one = request.cluster;
            one.groups = {group};
            one.groups.front().count = 2;
            program::Job of_kind = job;
            of_kind.plan.replica_micro_batch.clear();
            of_kind.plan.micro_batch = &group == &request.cluster.groups.front() ? a : b;
            of_kind.training.global_batch =
                batch / program::samples_of_pass(job.plan) * plan.data * of_kind.plan.micro_batch;
            if (refusal(of_kind, one, 0)) continue;
            simulator::CostEstimator estimator(of_kind, one);
            auto layered = balanced(estimator, of_kind.plan, static_cast<int>(job.model.layers), false);
            if (!std::holds_alternative<program::Plan>(layered)) continue;
            job.plan.stage_layers = std::get<program::Plan>(layered).stage_layers;
            if (refusal(job, request.cluster, 0)) continue;
            const auto simulated = iteration(job, request.cluster, true);
            if (const auto* ps = std::get_if<std::int64_t>(&simulated)) fastest = std::min(fastest, *ps);
          }
          continue;
        }
        if (refusal(job, request.cluster, 0)) continue;
        const auto simulated = iteration(job, request.cluster, true);
        if (const auto* ps = std::get_if<std::int64_t>(&simulated)) fastest = std::min(fastest, *ps);
      }
    }
  }
  return fastest;
}

TEST(ReplicaKindSearch, FindsTheFastestOfAll) {
  for (const auto& [batch, mib] : {std::pair{12, 0.0}, {12, 60.0}, {20, 110.0}}) {
    SearchRequest request = two_kinds();
    request.job.training.global_batch = batch;
    if (mib > 0) {
      auto& device = request.cluster.groups.back().node.device;
      device.memory = device.reserved + base::Bytes(mib * base::kMiB);
    }
    SCOPED_TRACE(testing::Message() << batch << " samples, " << mib << " MiB");
    if (kSanitized && batch > 12) {
      std::cout << batch << " samples left out: a sanitizer takes an hour for their thousands of plans\n";
      continue;
    }
    const SearchResult result = search_replica_kinds(request, 2, {}, {});
    std::int64_t tried = 0;
    const std::int64_t fastest = fastest_of_all(request, tried);
    EXPECT_GT(tried, 500);
    EXPECT_TRUE(result.proved);
    if (fastest == kNone) {
      EXPECT_TRUE(result.best.empty());
      continue;
    }
    ASSERT_FALSE(result.best.empty());
    EXPECT_NEAR(result.best_s, static_cast<double>(fastest) * 1e-12, 1e-12);
    EXPECT_GE(result.bound_s, result.best_s * (1 - 1e-9));
    EXPECT_LT(result.plans_simulated, result.plans_in_space);
    EXPECT_EQ(result.plans_in_space, result.plans_infeasible + result.plans_bounded + result.plans_simulated);
  }
}

// An A100 does some 2.5 times a V100's work: with a size for each kind no replica waits for the other.
TEST(ReplicaKindSearch, WinsWhereWholeReplicasFitEveryNode) {
  SearchRequest request;
  request.job.model = models::load_model("gpt2-1.5b");
  request.job.training.sequence = 1024;
  request.job.training.global_batch = 480;
  request.job.plan.precision = program::DType::kFp16;
  request.cluster = hardware::load_cluster("dgx-a100-80gb:2+dgx1-v100-32gb:1");
  request.fixed.insert("attention");  // V100s have no fused kernels: A100s alone would win with theirs
  request.best = 1;
  request.constraints = closed_unless_allowed({}, {});
  const SearchResult result = search(request, 2, {}, {});
  ASSERT_EQ(result.alternatives.size(), 4U);
  const Alternative& kinds = result.alternatives.back();
  EXPECT_EQ(kinds.name, "replicas by kind");
  ASSERT_TRUE(kinds.best.has_value());
  const std::vector<int>& sizes = kinds.best->plan.replica_micro_batch;
  ASSERT_EQ(sizes.size(), 24U);
  EXPECT_GT(sizes.front(), sizes.back());
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(result.alternatives[i].best.has_value());
    EXPECT_LT(kinds.best->simulation.iteration_ps, result.alternatives[i].best->simulation.iteration_ps);
  }
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(program::summary(result.best.front().plan), program::summary(kinds.best->plan));
  EXPECT_TRUE(result.proved);
  // It is what simulating the plan by itself gives, and can be asked why it is not another.
  program::Job job = request.job;
  job.plan = kinds.best->plan;
  EXPECT_EQ(full_simulation(job, request.cluster).value_or_throw().iteration_ps, kinds.best->simulation.iteration_ps);
  program::Job other = request.job;
  other.plan = result.alternatives.front().best->plan;
  EXPECT_EQ(why_not(other, job, request.cluster).verdict, "faster");
  EXPECT_EQ(why_not(job, other, request.cluster).verdict, "slower");
}

TEST(ReplicaKindSearch, SaysWhyThereIsNone) {
  SearchRequest request = two_kinds();
  request.fixed.insert("micro_batch");
  EXPECT_THAT(search_replica_kinds(request, 2, {}, {}).rejected.at(0).reason, HasSubstr("micro_batch is fixed"));
  request = two_kinds();
  request.cluster.groups.back().node.devices = 4;
  EXPECT_THAT(search_replica_kinds(request, 2, {}, {}).rejected.at(0).reason, HasSubstr("equally many devices"));
  request = two_kinds();
  request.job.training.global_batch = 1;
  EXPECT_THAT(search_replica_kinds(request, 2, {}, {}).rejected.at(0).reason, HasSubstr("share out the batch"));
}

// Plans that a bound tells apart without listing them are counted as those that are listed.
TEST(ReplicaKindSearch, CountsWhatItDoesNotList) {
  SearchRequest request = two_kinds();
  hardware::NodeGroup third = request.cluster.groups.back();
  third.node.name = "third";
  third.count = 2;
  request.cluster.groups.push_back(third);
  request.job.training.global_batch = 48;
  std::int64_t all = 0;
  for (const std::string forbidden : {"", "3,3,3,3,9,9,9,9", "3,9,3,9,3,9,3,9"}) {
    if (!forbidden.empty()) {
      request.constraints = {parse_constraint(Constraint::Kind::kForbid, "replica_micro_batch=" + forbidden)};
    }
    SCOPED_TRACE(forbidden);
    request.limit_ps = kNone;
    const SearchResult listed = search_replica_kinds(request, 2, {}, {});
    request.limit_ps = 1;
    const SearchResult counted = search_replica_kinds(request, 2, {}, {});
    EXPECT_GT(listed.plans_in_space, 1000);
    EXPECT_EQ(listed.plans_in_space, counted.plans_in_space);
    if (forbidden.empty()) all = listed.plans_in_space;
    EXPECT_EQ(listed.plans_in_space < all, forbidden == "3,3,3,3,9,9,9,9");  // the other is of no mix by kinds
    EXPECT_EQ(counted.plans_bounded, counted.plans_in_space);
    EXPECT_EQ(listed.plans_in_space, listed.plans_infeasible + listed.plans_bounded + listed.plans_simulated);
    EXPECT_TRUE(listed.proved && counted.proved);
    EXPECT_GT(counted.bound_s, 0);
    EXPECT_LE(counted.bound_s, listed.best_s);
  }
}

// The k best are the first k of more, with plans that two ways to use the nodes have in common told once.
TEST(ReplicaKindSearch, SeveralAnswersAreTheFirstOfMore) {
  for (const bool distinct : {false, true}) {
    SearchRequest request = two_kinds();
    request.distinct = distinct;
    request.best = 40;
    const SearchResult many = search(request, 2, {}, {});
    ASSERT_GT(many.best.size(), 5U);
    std::set<std::string> families, plans;
    for (const Candidate& candidate : many.best) {
      families.insert(family_of(candidate.plan));
      plans.insert(program::to_json(candidate.plan).dump());
    }
    EXPECT_EQ(distinct ? families.size() : plans.size(), many.best.size());
    for (const int k : {1, 2, 3, 5}) {
      request.best = k;
      const SearchResult some = search(request, 2, {}, {});
      EXPECT_TRUE(some.proved);
      ASSERT_EQ(some.best.size(), static_cast<std::size_t>(k));
      for (std::size_t i = 0; i < some.best.size(); ++i) {
        EXPECT_EQ(some.best[i].simulation.iteration_ps, many.best[i].simulation.iteration_ps)
            << "answer " << i << " of " << k << (distinct ? ", distinct" : "");
      }
    }
  }
}

// One kind of node is a little slower: sizes by kind lie between plans that both mixed nodes and nodes all taken for
// slow ones have, and which count once.
TEST(ReplicaKindSearch, PlansOfTwoWaysCountOnce) {
  SearchRequest request = two_kinds();
  request.job.model = models::load_model("gpt2-124m");
  request.job.training.sequence = 1024;
  request.job.training.global_batch = 64;
  request.cluster.groups.back() = request.cluster.groups.front();
  request.cluster.groups.back().node.name = "a little slower";
  request.cluster.groups.back().node.device.compute_scale *= 0.9;
  request.job.plan.tensor = request.job.plan.pipeline = 1;
  request.fixed.insert({"tensor", "pipeline", "recompute"});
  request.best = 60;
  const SearchResult many = search(request, 2, {}, {});
  std::set<std::string> seen;
  int between = 0, last = 0;
  for (std::size_t i = 0; i < many.best.size(); ++i) {
    EXPECT_TRUE(seen.insert(program::to_json(many.best[i].plan).dump()).second);
    const bool by_kind = !many.best[i].plan.replica_micro_batch.empty();
    if (by_kind && last == 1) ++between;
    last = by_kind ? 2 : 1;
  }
  EXPECT_GT(between, 0);
  for (const int k : {1, 4, 10, 16, 24, 32, 40, 50}) {
    request.best = k;
    const SearchResult some = search(request, 2, {}, {});
    ASSERT_EQ(some.best.size(), static_cast<std::size_t>(k));
    for (std::size_t i = 0; i < some.best.size(); ++i) {
      // Ranked by segments, shown op by op.
      EXPECT_LE(some.best[i].simulation.iteration_s, many.best[i].simulation.iteration_s * 1.001) << i << " of " << k;
    }
  }
}

// What the user says of sizes holds, whichever way it is said.
TEST(ReplicaKindSearch, TakesSizesAsTheyAreGiven) {
  SearchRequest request = two_kinds();
  request.fixed.insert("replica_micro_batch");
  const SearchResult none = search(request, 2, {}, {});
  EXPECT_EQ(none.alternatives.size(), 4U);
  EXPECT_THAT(none.alternatives.back().why_not, HasSubstr("one size for all replicas"));

  SearchRequest forbids = two_kinds();
  forbids.constraints.push_back(parse_constraint(Constraint::Kind::kForbid, "replica_micro_batch"));
  EXPECT_THAT(search(forbids, 2, {}, {}).alternatives.back().why_not, HasSubstr("--forbid replica_micro_batch"));

  request.job.plan.replica_micro_batch = {2, 2};
  SearchRequest alike = with_fields_settled(request);
  EXPECT_EQ(alike.fixed.count("micro_batch") + alike.fixed.count("data"), 2U);
  const SearchResult two = search(request, 2, {}, {});
  ASSERT_FALSE(two.best.empty());
  EXPECT_EQ(two.best.front().plan.micro_batch, 2);
  EXPECT_EQ(two.best.front().plan.data, 2);
  EXPECT_TRUE(two.best.front().plan.replica_micro_batch.empty());

  request.job.plan.replica_micro_batch = {4, 2};
  const SearchResult different_replicas = search(request, 2, {}, {});
  ASSERT_EQ(different_replicas.alternatives.size(), 1U);
  ASSERT_FALSE(different_replicas.best.empty());
  EXPECT_EQ(different_replicas.best.front().plan.replica_micro_batch, (std::vector<int>{4, 2}));

  request.job.plan.data = 4;
  request.fixed.insert("data");
  EXPECT_THROW(with_fields_settled(request), base::Failure);
  request.fixed.erase("data");
  request.cluster.groups.pop_back();
  EXPECT_THROW(with_fields_settled(request), base::Failure);
}

// Nothing fits anywhere: no bound is claimed, and what did not fit is accounted for.
TEST(ReplicaKindSearch, AccountsForWhatDoesNotFit) {
  SearchRequest request = two_kinds();
  for (auto& group : request.cluster.groups) {
    group.node.device.memory = group.node.device.reserved + base::Bytes(base::kMiB);
  }
  const SearchResult result = search(request, 2, {}, {});
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.bound_s, 0);
  EXPECT_EQ(result.plans_infeasible, result.plans_in_space);
  std::int64_t rejected = 0;
  for (const Rejected& one : result.rejected) rejected += one.plans;
  EXPECT_EQ(rejected, result.plans_infeasible);
  EXPECT_THAT(result.alternatives.back().why_not, HasSubstr("needs"));
  // Where only the slow nodes are too small, the others' bound stands.
  request.cluster.groups.front().node.device.memory = base::Bytes(80 * base::kGiB);
  EXPECT_GT(search(request, 2, {}, {}).bound_s, 0);
}

}  // namespace
}  // namespace trivium::planner
