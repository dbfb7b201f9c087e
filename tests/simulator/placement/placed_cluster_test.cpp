#include "simulator/placement/placed_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/cost/costed_program.h"
#include "simulator/cost/supported.h"
#include "simulator/predict/simulate.h"
#include "simulator/replay/topology_builder.h"
#include "simulator/schedule/engine.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

using testing::HasSubstr;

/// Four stages of one node each on two A100 and two V100 nodes.
program::Job job_of_four_stages() {
  program::Job job;
  job.model = models::load_model("gpt3-2.7b");
  job.training.sequence = 1024;
  job.training.global_batch = 8;
  job.plan.tensor = 8;
  job.plan.pipeline = 4;
  job.plan.precision = program::DType::kFp16;
  return job;
}

hardware::Cluster two_kinds() { return hardware::load_cluster("dgx-a100-80gb:2+dgx1-v100-32gb:2"); }

std::string refused(const program::Plan& plan) {
  const auto no = misplaced(plan, two_kinds());
  return no ? no->rule + ": " + no->reason : "";
}

TEST(PlacedCluster, RanksFillTheNodesInOrderUnlessToldOtherwise) {
  const program::Job job = job_of_four_stages();
  const hardware::Cluster cluster = two_kinds();
  EXPECT_EQ(&PlacedCluster(job.plan, cluster).get(), &cluster);
}

TEST(PlacedCluster, StagesLieOnTheGroupsThePlanNames) {
  program::Job job = job_of_four_stages();
  job.plan.stage_nodes = {1, 0, 0, 1};
  const hardware::Cluster cluster = two_kinds();
  const PlacedCluster placed(job.plan, cluster);
  for (const auto& [rank, name] : {std::pair{0, "dgx1-v100-32gb"},
                                   {7, "dgx1-v100-32gb"},
                                   {8, "dgx-a100-80gb"},
                                   {23, "dgx-a100-80gb"},
                                   {24, "dgx1-v100-32gb"},
                                   {31, "dgx1-v100-32gb"}}) {
    EXPECT_EQ(placed.get().node_of_device(rank).name, name) << rank;
  }
  EXPECT_EQ(refused(job.plan), "");
}

// Every run of stages keeps the site of the group that it lies on: the link between two is one link, however often a
// micro-batch goes there and back.
TEST(PlacedCluster, KeepsTheSitesOfTheGroupsAndTheirLinks) {
  program::Job job = job_of_four_stages();
  job.plan.stage_nodes = {1, 0, 1, 0};
  hardware::Cluster cluster = two_kinds();
  cluster.groups.back().site = 7;
  cluster.links.push_back({0, 7, {base::BytesPerSecond(1e9), base::Seconds(1e-3), 1}, "test"});
  const PlacedCluster placed(job.plan, cluster);
  for (const auto& [rank, site] : {std::pair{0, 7}, {8, 0}, {16, 7}, {31, 0}}) {
    EXPECT_EQ(placed.get().site_of_device(rank), site) << rank;
  }
  EXPECT_NE(placed.get().link_between(7, 0), nullptr);
}

TEST(PlacedCluster, RefusesStagesThatCannotLieThere) {
  program::Plan plan = job_of_four_stages().plan;
  plan.stage_nodes = {0, 0, 2, 1};
  EXPECT_THAT(refused(plan), HasSubstr("stage-nodes-known: stage_nodes names group 2"));
  plan.stage_nodes = {0, 0, 0, 1};
  EXPECT_THAT(refused(plan), HasSubstr("stage-nodes-enough: stage_nodes takes 3 nodes of dgx-a100-80gb; there are 2"));
  plan.tensor = 4;
  plan.stage_nodes = {0, 1, 1, 1};
  EXPECT_THAT(refused(plan), HasSubstr("stage-nodes-fill-nodes: 1 stages of 4 ranks end inside a node of 8 devices"));
  plan.stage_nodes = {0, 0, 1, 1};
  EXPECT_EQ(refused(plan), "");
}

// Every stage is priced on its own devices: the V100 stages are slower by what the profiles say, and the engine holds
// both ends of the transfer between them to the slower network.
TEST(PlacedCluster, EveryStageIsPricedOnItsOwnNodes) {
  program::Job job = job_of_four_stages();
  job.plan.stage_nodes = {1, 0, 0, 1};
  const hardware::Cluster cluster = two_kinds();
  const auto program = std::get<program::Program>(program::lower(job));
  const CostedProgram mixed = cost(program, cluster);
  const CostedProgram fast =
      cost(std::get<program::Program>(program::lower(job_of_four_stages())), hardware::load_cluster("dgx-a100-80gb:4"));
  const CostedProgram slow = cost(std::get<program::Program>(program::lower(job_of_four_stages())),
                                  hardware::load_cluster("dgx1-v100-32gb:4"));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const CostedProgram& alone = stage == 1 || stage == 2 ? fast : slow;
    const int body = program.kinds[static_cast<std::size_t>(program.roles[stage].chunks[0].kind)].forward;
    EXPECT_EQ(mixed.op_ps[stage][static_cast<std::size_t>(body)], alone.op_ps[stage][static_cast<std::size_t>(body)]);
  }
  const auto send_of = [&](const CostedProgram& costed, std::size_t stage) {
    const int body = program.kinds[static_cast<std::size_t>(program.roles[stage].chunks[0].kind)].send_forward;
    return costed.op_ps[stage][static_cast<std::size_t>(body)][0];
  };
  EXPECT_EQ(send_of(mixed, 1), send_of(fast, 1));  // its own end
  const auto simulated = list_schedule(mixed, Granularity::kOp);
  ASSERT_TRUE(simulated.ok());
  std::int64_t longest = 0;
  for (const Span& span : simulated.value().stages[2]) {
    const program::Task& task = program.roles[2].tasks[static_cast<std::size_t>(span.task)];
    if (task.kind == program::TaskKind::kSend && task.peer_stage == 3) {
      longest = std::max(longest, span.end_ps - span.begin_ps);
    }
  }
  EXPECT_EQ(longest, send_of(slow, 1));
}

TEST(PlacedCluster, MemoryIsThatOfTheNodesAStageLiesOn) {
  program::Job job = job_of_four_stages();
  job.plan.stage_nodes = {1, 0, 0, 1};
  const auto memory = memory_of(std::get<program::Program>(program::lower(job)), two_kinds());
  const auto gib = [](const StageMemory& m) { return static_cast<double>(m.capacity) / base::kGiB; };
  EXPECT_DOUBLE_EQ(gib(memory[0]), 32);
  EXPECT_DOUBLE_EQ(gib(memory[1]), 80);
  EXPECT_DOUBLE_EQ(gib(memory[2]), 80);
  EXPECT_DOUBLE_EQ(gib(memory[3]), 32);
}

// Nodes after the last rank's take no part: bf16 is refused only where a V100 is used.
TEST(PlacedCluster, DevicesThatAreNotUsedDoNotCount) {
  program::Job job = job_of_four_stages();
  job.plan.precision = program::DType::kBf16;
  EXPECT_EQ(unsupported_by(job, two_kinds())->rule, "precision");
  job.plan.pipeline = 2;
  EXPECT_FALSE(unsupported_by(job, two_kinds()).has_value());
  job.plan.stage_nodes = {1, 1};
  EXPECT_EQ(unsupported_by(job, two_kinds())->rule, "precision");
  job.plan.stage_nodes = {0, 2};
  EXPECT_EQ(unsupported_by(job, two_kinds())->rule, "stage-nodes-known");
}

/// A node of cores with one rank a core, and no other cost than a matrix product's.
hardware::Cluster two_cores() {
  hardware::Cluster cluster = hardware::load_cluster("generic-cpu");
  cluster.groups.front().node.devices = 2;
  cluster.groups.front().node.device.memory = base::Bytes(8 * base::kGiB);
  return cluster;
}

program::Job job_on_cores(int data) {
  program::Job job;
  job.model = models::load_model("gpt-tiny");
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = 8;
  job.plan.data = data;
  job.plan.precision = program::DType::kFp32;
  return job;
}

TEST(PlacedCluster, RanksBeyondTheCoresOfAMachineShareThemAndItsMemory) {
  const hardware::Cluster cores = two_cores();
  const program::Job job = job_on_cores(8);
  EXPECT_FALSE(unsupported_by(job, cores).has_value());
  const PlacedCluster placed(job.plan, cores);
  EXPECT_EQ(placed.get().devices(), 8);
  EXPECT_DOUBLE_EQ(placed.get().groups.front().node.device.memory.value(), 2 * base::kGiB);
  EXPECT_FALSE(shares_cores(job_on_cores(2).plan, cores));
  program::Job on_gpus = job_of_four_stages();
  EXPECT_EQ(unsupported_by(on_gpus, hardware::load_cluster("dgx-a100-80gb"))->rule, "devices");
}

// Eight samples on two cores are four a core, whoever holds them: more ranks than cores gain nothing and pay for their
// larger reductions, optimizer steps and wake-ups.
TEST(PlacedCluster, MoreRanksThanCoresAreNotFaster) {
  const hardware::Cluster cores = two_cores();
  const auto simulated = [&](int data) {
    const program::Job job = job_on_cores(data);
    return simulate(prepared(job, cores), {Granularity::kOp, true}).value_or_throw();
  };
  const Simulation two = simulated(2), four = simulated(4), eight = simulated(8);
  EXPECT_GT(four.iteration_s, two.iteration_s);
  EXPECT_GT(eight.iteration_s, four.iteration_s);
  EXPECT_LT(four.iteration_s, 2 * two.iteration_s);
  EXPECT_LT(four.mfu, two.mfu);  // of the cores, not of the ranks
  // Every rank is simulated; what one does fills the iteration without gaps or overlaps.
  std::vector<std::int64_t> ends(4, 0);
  for (const program::Event& event : four.timeline.events) {
    auto& end = ends[static_cast<std::size_t>(event.rank)];
    EXPECT_GE(event.start_ps, end);
    end = event.end_ps;
  }
  for (const std::int64_t end : ends) EXPECT_GT(end, 0);
}

// Four ranks on two cores take 60 us for a small all-reduce: each core serves two of them, 30 us each, of which 2 us
// are what it takes awake.
TEST(PlacedCluster, WakeUpsAreWhatTheMachineMeasured) {
  hardware::Cluster cores = two_cores();
  hardware::Node& node = cores.groups.front().node;
  node.intra.latency = base::Seconds(2e-6);
  EXPECT_DOUBLE_EQ(wake_up(node, 2).value(), 5e-6);
  const auto iteration = [&] {
    return simulate(prepared(job_on_cores(4), cores), {Granularity::kOp, true}).value_or_throw().iteration_s;
  };
  const double usual = iteration();
  node.allreduce_latency[4] = base::Seconds(60e-6);
  EXPECT_NEAR(wake_up(node, 2).value(), 28e-6, 1e-12);
  EXPECT_GT(iteration(), usual);
  node.allreduce_latency[4] = base::Seconds(1e-6);  // faster than awake: nothing is given back
  EXPECT_DOUBLE_EQ(wake_up(node, 2).value(), 0);
}

TEST(PlacedCluster, PeakIsThatOfTheDevicesUsed) {
  program::Job job = job_of_four_stages();
  EXPECT_DOUBLE_EQ(peak_flops(job.plan, two_kinds()), (312e12 + 125e12) / 2);
  job.plan.pipeline = 2;
  job.plan.stage_nodes = {1, 1};
  EXPECT_DOUBLE_EQ(peak_flops(job.plan, two_kinds()), 125e12);
}

}  // namespace
}  // namespace trivium::simulator
