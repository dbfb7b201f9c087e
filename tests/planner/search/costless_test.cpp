#include "planner/search/costless.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/advice/relax.h"
#include "planner/search/search.h"
#include "planner/space/disks.h"
#include "program/plan/job_json.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

using testing::HasSubstr;

SearchRequest request_for(const char* model, const char* cluster) {
  SearchRequest request;
  request.job.model = models::load_model(model);
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 8;
  request.job.plan.precision = program::DType::kFp16;
  request.cluster = hardware::load_cluster(cluster);
  return request;
}

// 175 G parameters: 325 GiB in 16 bits, where eight V100 hold less than 128 GiB.
TEST(LacksMemory, WhereTheParametersAloneAreTooLarge) {
  EXPECT_THAT(lacks_memory(request_for("gpt3-175b", "dgx1-v100-16gb:1")).value(),
              HasSubstr("the parameters take 325 GiB"));
}

// 2.1 TB of parameters and state against 8 x 78 GiB (670 GB): the host's 2 TiB hold the difference.
TEST(LacksMemory, UnlessTheHostsMayHoldTheState) {
  SearchRequest request = request_for("gpt3-175b", "dgx-a100-80gb:1");
  EXPECT_EQ(lacks_memory(request), std::nullopt);
  request.constraints.push_back({Constraint::Kind::kForbid, "offload", ""});
  EXPECT_THAT(lacks_memory(request).value(),
              HasSubstr("parameters and optimizer state take 1.91 TiB, all devices together"));
  request.ignore_memory = true;
  EXPECT_EQ(lacks_memory(request), std::nullopt);
}

// 12 bytes of 175 G parameters are 1.91 TiB, 8 with moments in bf16 two thirds of it.
TEST(LacksMemory, CountsMomentsAsTheyAreKept) {
  SearchRequest request = request_for("gpt3-175b", "dgx-a100-80gb:1");
  request.constraints.push_back({Constraint::Kind::kForbid, "offload", ""});
  request.job.plan.moment_dtype = program::Moments::kBf16;
  EXPECT_THAT(lacks_memory(request).value(), HasSubstr("parameters and optimizer state take 1.27 TiB"));
}

/// GPT-3 6.7B on four cards of 16 GiB: 6.66 G parameters of 12 bytes are 80 GB, the devices hold 63.6 GB. Parameters in
/// 16 bits and fp32 gradients, 6 bytes, do fit: 40 GB.
SearchRequest workstation(double host_gib) {
  SearchRequest request = request_for("gpt3-6.7b", "rtx-4090:1");
  request.job.plan.precision = program::DType::kBf16;
  hardware::Node& node = request.cluster.groups.front().node;
  node.devices = 4;
  node.device.memory = base::Bytes(16 * base::kGiB);
  node.host_memory = base::Bytes(host_gib * base::kGiB);
  node.disk = base::BytesPerSecond(5e9);
  return request;
}

TEST(OpensDisks, WhereNeitherDevicesNorHostsHoldTheState) {
  EXPECT_TRUE(opens_disks(workstation(64)));
  EXPECT_EQ(lacks_memory(workstation(8)), std::nullopt);  // 72 GB with the devices: no plan without the disk
  EXPECT_FALSE(opens_disks(workstation(80)));
  SearchRequest request = workstation(64);
  request.cluster.groups.front().node.disk = base::BytesPerSecond(0);
  EXPECT_FALSE(opens_disks(request));
  request = workstation(64);
  request.constraints.push_back({Constraint::Kind::kForbid, "offload.optimizer", "disk"});
  EXPECT_FALSE(opens_disks(request));
  request = workstation(64);
  request.fixed.insert("offload.optimizer");
  EXPECT_FALSE(opens_disks(request));
}

// The same plan as with the disk fixed by hand, and proved.
TEST(OpensDisks, TheSearchFindsThePlanThatTheHandFinds) {
  SearchRequest request = workstation(64);
  request.best = 1;
  const SearchResult found = search(request, 1, {}, {});
  ASSERT_EQ(found.best.size(), 1u);
  EXPECT_TRUE(found.proved);
  EXPECT_EQ(found.best.front().plan.offload.optimizer, program::Storage::kDisk);
  request.fixed.insert("offload.optimizer");
  request.job.plan.offload.optimizer = program::Storage::kDisk;
  const SearchResult by_hand = search(request, 1, {}, {});
  ASSERT_EQ(by_hand.best.size(), 1u);
  EXPECT_EQ(program::to_json(found.best.front().plan), program::to_json(by_hand.best.front().plan));
  EXPECT_EQ(found.best.front().simulation.iteration_s, by_hand.best.front().simulation.iteration_s);
}

// On 8 of 16 devices 624 GiB are there, and the memory of one host.
TEST(LacksMemory, CountsTheDevicesThatAreUsed) {
  SearchRequest request = request_for("gpt3-175b", "dgx-a100-80gb:4");
  request.constraints.push_back({Constraint::Kind::kForbid, "offload", ""});
  EXPECT_EQ(lacks_memory(request), std::nullopt);
  request.ranks = 8;
  EXPECT_THAT(lacks_memory(request).value(), HasSubstr("hold 624 GiB"));
}

TEST(LacksMemory, IsTheReasonWhyAllPlansFallOut) {
  SearchRequest request = request_for("gpt3-175b", "dgx1-v100-16gb:1");
  const SearchResult result = search(request, 1, {}, {});
  EXPECT_TRUE(result.proved);
  EXPECT_EQ(result.nodes_opened, 0);
  EXPECT_EQ(result.plans_infeasible, result.plans_in_space);
  ASSERT_FALSE(result.rejected.empty());
  for (const Rejected& rejected : result.rejected) EXPECT_THAT(rejected.reason, HasSubstr("the parameters take 325"));
}

// Whatever fits in a search is not ruled out before it.
TEST(LacksMemory, IsNeverSaidOfWhatFits) {
  std::mt19937 random(5);
  int fits = 0;
  for (int i = 0; i < 30; ++i) {
    SearchRequest request = random_problem(random);
    request.best = 1;
    if (search(request, 1, {}, {}).best.empty()) continue;
    EXPECT_EQ(lacks_memory(request), std::nullopt);
    ++fits;
  }
  EXPECT_GT(fits, 10);
}

// A million tokens on eight A100, 8 x 312 TFLOP/s; half of attention, 6 · 96 layers · 12288 · 2048 FLOPs a token, is
// left out of flops_per_token.
TEST(LeastTraining, IsTheWorkOverThePeakOfAllDevices) {
  SearchRequest request = request_for("gpt3-175b", "dgx-a100-80gb:1");
  request.job.training.total_tokens = 1'000'000;
  const double flops = models::flops_per_token(request.job.model, 2048).model - 6.0 * 96 * 12288 * 2048;
  EXPECT_NEAR(least_training_s(request), flops * 1e6 / (8 * 312e12), 1e-3 * flops * 1e6 / (8 * 312e12));
}

// A tenth of what the peak of one node does in the time: the search begins at ten nodes.
TEST(SmallestCluster, BeginsWithWhatThePeakCouldDo) {
  SearchRequest request = request_for("gpt3-1.3b", "dgx-a100-80gb:1");
  request.job.training.global_batch = 64;
  request.job.training.total_tokens = 1'000'000'000;
  const double one = least_training_s(request);
  const DeadlineAnswer none = smallest_cluster(request, one / 1e6, {});
  EXPECT_EQ(none.nodes, 0);
  EXPECT_EQ(none.tried, (1 << 20) / 8);
}

// 13 G parameters and their state, 144 GiB, are too large for a node of 8 x 14.75 GiB: the nearest that is named is on
// two or more.
TEST(Relaxations, NameNodesThatHoldTheState) {
  SearchRequest request = request_for("gpt3-13b", "dgx1-v100-16gb:1");
  request.job.training.global_batch = 16;
  request.fixed = {"recompute", "schedule", "micro_batch", "placement", "sequence_parallel", "overlap.tensor"};
  request.job.plan.recompute = program::Recompute::kFull;
  request.constraints.push_back({Constraint::Kind::kForbid, "offload", ""});
  std::vector<std::string> said;
  Effort effort;
  effort.says = [&](const std::string& words) { said.push_back(words); };
  const std::vector<Relaxation> found = relaxations(request, 10, effort);
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found.back().words, testing::StartsWith("on "));
  EXPECT_GE(found.back().best.plan.ranks(), 16);
  EXPECT_THAT(said, testing::Contains("on 2 nodes"));
}

// What is found among the smallest plans is what a search of all of them finds.
TEST(Relaxations, NameTheFewestNodesOfASearch) {
  SearchRequest request = request_for("gpt3-13b", "dgx1-v100-16gb:1");
  request.job.training.global_batch = 48;
  request.constraints.push_back({Constraint::Kind::kForbid, "offload", "", true});
  const std::vector<Relaxation> found = relaxations(request, 10, {});
  ASSERT_FALSE(found.empty());
  const int nodes = found.back().best.plan.ranks() / 8;
  EXPECT_EQ(found.back().words, "on " + std::to_string(nodes) + " nodes");
  EXPECT_EQ(found.back().cluster.nodes(), nodes);
  EXPECT_EQ(program::summary(found.back().job.plan), program::summary(found.back().best.plan));
  for (int fewer = 1; fewer < nodes; ++fewer) EXPECT_FALSE(best_plan(on_nodes(request, fewer), {})) << fewer;
  EXPECT_TRUE(best_plan(on_nodes(request, nodes), {}));
}

}  // namespace
}  // namespace trivium::planner
