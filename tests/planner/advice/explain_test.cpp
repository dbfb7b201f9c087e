#include "planner/advice/explain.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/advice/neighbours.h"
#include "planner/bound/evaluate.h"
#include "planner/search/search.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> explained(const SearchRequest& request) {
  const auto program = std::get<program::Program>(program::lower(request.job));
  return explain(program, full_simulation(request.job, request.cluster).value(), request.cluster);
}

// Two stages, four micro-batches, everything computed twice.
SearchRequest wasteful() {
  SearchRequest request = small_problem();
  request.job.plan.pipeline = 2;
  request.job.plan.data = 1;
  request.job.plan.micro_batch = 2;
  request.job.plan.recompute = program::Recompute::kFull;
  return request;
}

TEST(Explain, GivesTheBubbleByItsFormula) {
  // (2 - 1) / 4
  EXPECT_THAT(explained(wasteful()), Contains(HasSubstr("(p - 1) / m = 1 / 4 = 25.0 % of their passes")));
}

TEST(Explain, CallsTheTiedEmbeddingSoWhereThereAreNoReplicas) {
  SearchRequest request = wasteful();
  request.job.model.tied_embeddings = true;
  request.job.model.vocab = 400'000;
  const auto sentences = explained(request);
  EXPECT_THAT(sentences, Contains(HasSubstr("exposed tied embedding ")));
  EXPECT_THAT(sentences, Not(Contains(HasSubstr("xposed data"))));
}

TEST(Explain, NamesTheFullestStageAndItsLargestPart) {
  const SearchRequest request = wasteful();
  const auto memory = full_simulation(request.job, request.cluster).value().peak_memory_bytes;
  const std::string size = fmt::format("is fullest: {:.1f} GiB of 80.0 GiB", static_cast<double>(memory) / base::kGiB);
  EXPECT_THAT(explained(request), Contains(HasSubstr(size)));
}

TEST(Explain, AdvisesTheFastestNeighbourThatFits) {
  const SearchRequest request = wasteful();
  const Tried* best = nullptr;
  const auto tried = try_neighbours(request.job, request.cluster);
  for (const Tried& t : tried) {
    if (t.fits() && (best == nullptr || t.iteration_ps() < best->iteration_ps())) best = &t;
  }
  ASSERT_NE(best, nullptr);
  EXPECT_THAT(explained(request).back(), AllOf(HasSubstr("Change first: " + best->neighbour.change), HasSubstr("(-")));
}

TEST(Explain, SaysSoWhenNoNeighbourIsFaster) {
  SearchRequest request = small_problem();
  request.best = 1;
  request.job.plan.overlap.gradient_reduction = true;
  request.job.plan = search(request, 2, {}, {}).best.at(0).plan;
  // The best of the space is faster than its neighbours there; the one without overlap lies outside and is slower.
  EXPECT_THAT(explained(request).back(), AllOf(HasSubstr("none is faster"), Not(HasSubstr("(-"))));
}

TEST(Explain, DoesNotAdviseWhatDoesNotFit) {
  SearchRequest request = wasteful();
  auto& device = request.cluster.groups[0].node.device;
  const auto needed = full_simulation(request.job, request.cluster).value().peak_memory_bytes;
  device.memory = base::Bytes(static_cast<double>(needed));
  for (const Tried& t : try_neighbours(request.job, request.cluster)) {
    if (t.neighbour.change != "recompute full to none") continue;
    ASSERT_FALSE(t.fits());
    EXPECT_EQ(std::get<program::Infeasible>(t.outcome).rule, "memory");
  }
  EXPECT_THAT(explained(request).back(), Not(HasSubstr("recompute full to none")));
}

// What is predicted to fill 99 % of a device fits, but a search would not dare it.
TEST(Explain, SaysWhereAFasterPlanFitsTooNarrowlyForASearch) {
  SearchRequest request = wasteful();
  program::Job other = request.job;
  other.plan.recompute = program::Recompute::kNone;
  const auto needed = full_simulation(other, request.cluster).value().peak_memory_bytes;
  const auto narrow = [&](double room) {
    request.cluster.groups[0].node.device.memory = base::Bytes(room * static_cast<double>(needed));
    for (const Tried& t : try_neighbours(request.job, request.cluster)) {
      if (t.neighbour.change != "recompute full to none") continue;
      EXPECT_TRUE(t.fits());
      return t.narrow;
    }
    ADD_FAILURE() << "not tried";
    return false;
  };
  EXPECT_FALSE(narrow(2));
  EXPECT_THAT(explained(request), Not(Contains(HasSubstr("but fits with"))));
  EXPECT_TRUE(narrow(1.01));
  EXPECT_THAT(explained(request), Contains(HasSubstr("but fits with a probability below 95 %")));
  EXPECT_THAT(explained(request).back(), Not(HasSubstr("recompute full to none")));
}

TEST(Neighbours, KeepTheRanksAndPassTheCheck) {
  program::Job job = wasteful().job;
  job.plan.tensor = 2;
  job.plan.data = 2;
  job.plan.micro_batch = 1;
  const auto found = neighbours(job);
  EXPECT_GE(found.size(), 9U);
  for (const Neighbour& n : found) {
    EXPECT_EQ(n.plan.ranks(), job.plan.ranks()) << n.change;
    job.plan = n.plan;
    EXPECT_TRUE(!program::check(job, n.plan.ranks())) << n.change;
    job.plan = wasteful().job.plan;
    job.plan.tensor = job.plan.data = 2;
    job.plan.micro_batch = 1;
  }
}

}  // namespace
}  // namespace trivium::planner
