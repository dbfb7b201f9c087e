// Placements that seat ranks alike take the same time, and nothing else is said of the others.
#include "planner/space/placements.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/evaluate.h"
#include "planner/space/constraints.h"
#include "planner/space/space.h"

namespace trivium::planner {
namespace {

SearchRequest problem(const std::string& cluster) {
  SearchRequest request;
  request.job.model = models::load_model("gpt3-2.7b");
  request.job.model.layers = 8;
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 64;
  request.cluster = hardware::load_cluster(cluster);
  request.job.plan.attention = program::Attention::kFlash;
  request.job.plan.zero_stage = 2;
  request.job.plan.overlap.gradient_reduction = true;
  return request;
}

// By seating: the times that its placements take.
std::map<Seating, std::set<std::int64_t>> times_of(const SearchRequest& request, program::Plan split) {
  std::map<Seating, std::set<std::int64_t>> times;
  for (const std::string& placement : placements_of(split)) {
    program::Job job = request.job;
    job.plan = split;
    job.plan.placement = placement;
    const auto simulated = iteration(job, request.cluster, false);
    if (!std::holds_alternative<std::int64_t>(simulated)) {
      ADD_FAILURE() << std::get<program::Infeasible>(simulated).reason;
      continue;
    }
    times[seating_of(split, placement, request.cluster)].insert(std::get<std::int64_t>(simulated));
  }
  return times;
}

program::Plan split_of(const SearchRequest& request, int tensor, int context, int pipeline, int data) {
  program::Plan plan = request.job.plan;
  plan.tensor = tensor;
  plan.context = context;
  plan.pipeline = pipeline;
  plan.data = data;
  return plan;
}

TEST(Placements, WithTheSameSeatingTakeTheSameTime) {
  SearchRequest flat = problem("dgx-a100-80gb:8"), leaves = flat;
  leaves.cluster.groups.front().node.leaf_nodes = 4;
  leaves.cluster.groups.front().node.oversubscription = 2;
  std::size_t orders = 0, seatings = 0;
  for (const SearchRequest& request : {flat, leaves}) {
    for (const auto& [t, c, p, d] : {std::array{2, 1, 8, 4}, std::array{4, 1, 4, 4}, std::array{2, 2, 4, 4},
                                     std::array{8, 1, 2, 4}, std::array{1, 4, 8, 2}, std::array{16, 1, 2, 2}}) {
      const program::Plan split = split_of(request, t, c, p, d);
      orders += placements_of(split).size();
      for (const auto& [seating, times] : times_of(request, split)) {
        EXPECT_EQ(times.size(), 1u) << t << " " << c << " " << p << " " << d;
        ++seatings;
      }
    }
  }
  EXPECT_LT(seatings, orders * 3 / 4);
}

TEST(Placements, OnOneNodeThereIsOneSeating) {
  const SearchRequest request = problem("dgx-a100-80gb:1");
  EXPECT_EQ(times_of(request, split_of(request, 2, 1, 2, 2)).size(), 1u);
}

// Where the end of a node falls between the values of the three replicas, no order is like another: of two tensor ranks
// and four stages alone that fill a node it does not matter which come first.
TEST(Placements, ThatANodeEndsInTheMiddleOfStandAlone) {
  SearchRequest request = problem("dgx-a100-80gb:3");
  request.job.training.global_batch = 48;
  const program::Plan split = split_of(request, 2, 1, 4, 3);
  EXPECT_EQ(placements_of(split).size(), 6u);
  EXPECT_EQ(times_of(request, split).size(), 5u);
}

TEST(Placements, OfASeatingTheFirstThatIsAllowedIsInTheSpace) {
  SearchRequest request = problem("dgx-a100-80gb:8");
  const program::Plan split = split_of(request, 2, 1, 8, 4);
  const auto of = [&](const SearchRequest& asked) {
    std::set<std::string> found;
    for (const PlacementChoice& layout : Space(asked).layouts(split)) found.insert(layout.placement);
    return found;
  };
  const std::set<std::string> open = of(request);
  EXPECT_TRUE(open.contains("tensor-context-data-pipeline"));
  EXPECT_FALSE(open.contains("context-data-tensor-pipeline"));  // both fill a node with 2 x 4
  request.constraints = {parse_constraint(Constraint::Kind::kForbid, "placement=tensor-context-data-pipeline")};
  EXPECT_TRUE(of(request).contains("context-data-tensor-pipeline"));
}

}  // namespace
}  // namespace trivium::planner
