// Bounds on jobs of real sizes. ./dev proofs draws more of them.
#include "tests/proofs/real_jobs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/evaluate.h"
#include "planner/search/search.h"
#include "tests/proofs/bound_pairs.h"
#include "tests/sanitized.h"

namespace trivium::planner {
namespace {

TEST(RealJobs, NoPlanIsFasterThanABoundAboveIt) {
  constexpr int kPairs = kSanitized ? 200 : 2000, kOfAJob = 20;
  constexpr std::int64_t kMostWork = 2'000;  // layers times micro-batches
  std::cout << kPairs << " pairs\n";
  std::mt19937 random(7);
  int pairs = 0;
  while (pairs < kPairs) {
    const SearchRequest request = real_job(random);
    for (int i = 0; i < kOfAJob && pairs < kPairs; ++i) {
      const auto pair = random_pair(request, random, kMostWork);
      if (!pair) continue;
      ++pairs;
      ASSERT_TRUE(pair->holds()) << request.job.model.name << " on " << request.cluster.name << ", batch "
                                 << request.job.training.global_batch << ": " << program::summary(pair->plan) << "\n"
                                 << pair->text();
    }
  }
}

// With offloaded activations the plan that recomputes more copies less: its shape's bound must leave room for it.
TEST(RealJobs, ATrillionParametersOnOneStageAreNotBoundedAway) {
  SearchRequest request;
  request.job.model = models::load_model("megatron-1008.0b");
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 3072;
  request.job.plan.precision = program::DType::kBf16;
  request.cluster = hardware::load_cluster("dgx-a100-80gb:384");
  request.fixed = {"attention"};
  request.best = 1;
  request.gap = .001;
  request.constraints = closed_unless_allowed({}, {});
  const SearchResult result = search(request, 0, {}, {});
  ASSERT_TRUE(result.proved);
  program::Job job = request.job;
  job.plan.tensor = 8;
  job.plan.sequence_parallel = true;
  job.plan.data = 384;
  job.plan.zero_stage = 3;
  job.plan.micro_batch = 8;
  job.plan.recompute = program::Recompute::kSelective;
  job.plan.offload.activations = program::Storage::kHost;
  job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
  const auto known = iteration(job, request.cluster, true);
  ASSERT_TRUE(std::holds_alternative<std::int64_t>(known));
  EXPECT_LE(result.bound_s, static_cast<double>(std::get<std::int64_t>(known)) * 1e-12);
  EXPECT_LE(result.best_s * .999, static_cast<double>(std::get<std::int64_t>(known)) * 1e-12);
}

}  // namespace
}  // namespace trivium::planner
