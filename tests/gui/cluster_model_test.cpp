// The cluster as a picture and as something that is edited.
#include <gtest/gtest.h>

#include "base/error.h"
#include "gui/model/cluster_edit.h"
#include "gui/model/cluster_map.h"
#include "gui/model/evaluation.h"
#include "gui/model/memory_curve.h"
#include "gui/model/rank_memory.h"
#include "gui/model/traffic.h"
#include "hardware_profiles/load.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

bool overlap(const Box& a, const Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

TEST(ClusterMap, GivesEveryDeviceAPlaceOfItsOwnInsideItsNodeAndRack) {
  const ClusterMap map = lay_out(hardware::load_cluster("dgx-a100-80gb:5+dgx2-v100-32gb:2"), 1.6);
  ASSERT_EQ(map.nodes.size(), 7U);
  EXPECT_EQ(map.racks.size(), 2U);  // four nodes a rack
  EXPECT_EQ(map.nodes[5].first_device, 40);
  EXPECT_EQ(map.nodes[6].places.size(), 16U);
  for (const MapNode& node : map.nodes) {
    for (const Box& place : node.places) {
      EXPECT_TRUE(node.box.contains(place.x, place.y));
      EXPECT_TRUE(node.box.contains(place.x + place.width - 0.1, place.y + place.height - 0.1));
    }
    for (const MapNode& other : map.nodes) {
      EXPECT_EQ(overlap(node.box, other.box), node.node == other.node) << node.node << " " << other.node;
    }
    EXPECT_LE(node.box.x + node.box.width, map.width);
    EXPECT_LE(node.box.y + node.box.height, map.height);
  }
}

TEST(ClusterMap, FindsTheDeviceThatItDrew) {
  const ClusterMap map = lay_out(hardware::load_cluster("dgx-a100-80gb:128"), 1.6);
  for (const int device : {0, 7, 8, 511, 1023}) {
    const Box& place = map.place_of(device);
    EXPECT_EQ(map.device_at(place.x + 1, place.y + 1), device);
  }
  EXPECT_EQ(map.device_at(-5, -5), std::nullopt);
  EXPECT_EQ(map.node_at(map.nodes[3].box.x + 1, map.nodes[3].box.y + 1), 3);
}

TEST(ClusterMap, DrawsLinksToScaleOfTheirBandwidth) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const hardware::Node& node = cluster.groups[0].node;
  const ClusterMap map = lay_out(cluster, 1);
  const double bus = map.nodes[0].bus.height, uplink = map.nodes[0].uplink.width;
  EXPECT_DOUBLE_EQ(bus / uplink, node.intra.bandwidth.value() / (node.adapters * node.network.bandwidth.value()));
}

TEST(ClusterEdit, AddsDuplicatesCountsAndRemovesNodes) {
  Scenario scenario = add_nodes(small_scenario(), "dgx1-v100-32gb", 3);
  EXPECT_EQ(scenario.file.cluster, "dgx-a100-80gb:1+dgx1-v100-32gb:3");
  scenario = duplicate_group(std::move(scenario), 0);
  EXPECT_EQ(scenario.cluster.nodes(), 5);
  scenario = set_count(std::move(scenario), 2, 7);
  EXPECT_EQ(scenario.cluster.nodes(), 9);
  scenario = set_count(std::move(scenario), 0, 0);
  EXPECT_EQ(scenario.file.cluster, "dgx-a100-80gb:1+dgx1-v100-32gb:7");
}

TEST(ClusterEdit, KeepsTheLastNode) { EXPECT_THROW(set_count(small_scenario(), 0, 0), base::Failure); }

TEST(ClusterEdit, TakesQuantitiesWithUnitsAndWritesTheClusterWhole) {
  Scenario scenario = set_constant(small_scenario(), 0, NodeConstant::kDeviceMemory, "40 GiB");
  EXPECT_DOUBLE_EQ(scenario.cluster.groups[0].node.device.memory.value(), 40 * base::kGiB);
  ASSERT_TRUE(scenario.file.cluster.is_object());
  const hardware::Cluster read = hardware::cluster_from_json(scenario.file.cluster, "file");
  EXPECT_DOUBLE_EQ(read.groups[0].node.device.memory.value(), 40 * base::kGiB);
  EXPECT_THROW(set_constant(scenario, 0, NodeConstant::kDeviceMemory, "40"), base::Failure);
  EXPECT_THROW(set_constant(scenario, 0, NodeConstant::kNetworkBandwidth, "0 Gb/s"), base::Failure);
}

TEST(ClusterEdit, GivesEveryConstantBackAsItWasTyped) {
  Scenario scenario = small_scenario();
  const std::pair<NodeConstant, const char*> typed[] = {{NodeConstant::kDeviceMemory, "96 GiB"},
                                                        {NodeConstant::kIntraBandwidth, "450 GB/s"},
                                                        {NodeConstant::kIntraLatency, "3 us"},
                                                        {NodeConstant::kNetworkBandwidth, "50 GB/s"},
                                                        {NodeConstant::kNetworkLatency, "7 us"}};
  for (const auto& [constant, text] : typed) {
    scenario = set_constant(std::move(scenario), 0, constant, text);
    EXPECT_EQ(text_of(scenario.cluster.groups[0].node, constant), text);
  }
  // What stands in the file is read back to the same hardware.
  const hardware::Cluster read = hardware::cluster_from_json(scenario.file.cluster, "file");
  EXPECT_EQ(hardware::to_json(read), hardware::to_json(scenario.cluster));
}

TEST(ClusterEdit, AFasterLinkTakesItsMeasuredCurveAlong) {
  const Scenario before = small_scenario();
  const double old = before.cluster.groups[0].node.intra.bandwidth.value();
  const Scenario after =
      set_constant(before, 0, NodeConstant::kIntraBandwidth, std::to_string(2 * old / 1e9) + " GB/s");
  const auto& a = before.cluster.groups[0].node.allreduce_bus;
  const auto& b = after.cluster.groups[0].node.allreduce_bus;
  ASSERT_FALSE(a.empty());
  EXPECT_NEAR(b.begin()->second / a.begin()->second, 2, 1e-6);
}

Scenario mixed() {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2+dgx1-v100-32gb:2");
  program::Plan& plan = scenario.file.job.plan;
  plan.precision = program::DType::kFp16;
  plan.tensor = 4;
  plan.data = 2;
  plan.pipeline = 4;  // eight ranks a stage: a node each
  return scenario;
}

TEST(ClusterEdit, SwapsTheNodesOfAStageWithThoseWhereItIsDropped) {
  const Scenario scenario = mixed();
  const program::Plan& plan = scenario.file.job.plan;
  EXPECT_EQ(nodes_of_stage(plan, scenario.cluster, 3), std::vector<int>{3});
  const Scenario moved = move_stage(scenario, 3, 0);
  EXPECT_EQ(moved.file.cluster, "dgx1-v100-32gb:1+dgx-a100-80gb:1+dgx1-v100-32gb:1+dgx-a100-80gb:1");
  const Evaluation before = evaluate(scenario, Depth::kQuick), after = evaluate(moved, Depth::kQuick);
  ASSERT_EQ(before.refusal, "");
  ASSERT_EQ(after.refusal, "");
  EXPECT_NE(before.figures.iteration_ps, after.figures.iteration_ps);
  EXPECT_THROW(move_stage(scenario, 3, 3), base::Failure);
}

TEST(ClusterEdit, AStageThatIsMovedChangesPlacesWithTheOneThatStandsThere) {
  Scenario scenario = mixed();
  scenario.file.job.plan.stage_nodes = {0, 0, 1, 1};
  EXPECT_EQ(nodes_of_stage(scenario.file.job.plan, scenario.cluster, 2), std::vector<int>{2});
  const Scenario moved = move_stage(scenario, 1, 2);  // both V100 nodes are taken
  EXPECT_EQ(moved.file.job.plan.stage_nodes, (std::vector<int>{0, 1, 0, 1}));
  const Evaluation before = evaluate(scenario, Depth::kQuick), after = evaluate(moved, Depth::kQuick);
  ASSERT_EQ(after.refusal, "");
  EXPECT_NE(before.figures.iteration_ps, after.figures.iteration_ps);
}

TEST(ClusterEdit, AStageMovesAloneWhereThereIsRoom) {
  Scenario scenario = mixed();
  scenario.cluster.groups[1].count = 3;
  scenario.file.job.plan.stage_nodes = {0, 0, 1, 1};
  for (const int node : {2, 4}) {  // on the node of stage 2, or on the idle node
    EXPECT_EQ(move_stage(scenario, 1, node).file.job.plan.stage_nodes, (std::vector<int>{0, 1, 1, 1}));
  }
  EXPECT_EQ(nodes_of_stage(move_stage(scenario, 1, 4).file.job.plan, scenario.cluster, 1), std::vector<int>{2});
}

TEST(ClusterEdit, AStageMovedWithinItsKindOfNodesStaysAsItIs) {
  Scenario scenario = mixed();
  scenario.file.job.plan.stage_nodes = {0, 0, 1, 1};
  EXPECT_EQ(move_stage(scenario, 0, 1).file.job.plan.stage_nodes, scenario.file.job.plan.stage_nodes);
}

TEST(ClusterEdit, NoStageMovesToANodeThatTheClusterLacks) {
  Scenario in_order = mixed(), named = mixed();
  named.file.job.plan.stage_nodes = {0, 0, 1, 1};
  for (const Scenario& scenario : {in_order, named}) {
    for (const int node : {-1, scenario.cluster.nodes(), scenario.cluster.nodes() + 1}) {
      EXPECT_THROW(move_stage(scenario, 1, node), base::Failure) << node;
    }
  }
}

TEST(ClusterEdit, StagesWithoutRoomStandNowhere) {
  Scenario scenario = mixed();
  scenario.file.job.plan.stage_nodes = {0, 1, 1, 1};  // three nodes of a group of two
  EXPECT_TRUE(devices_of_ranks(scenario.file.job.plan, scenario.cluster).empty());
  EXPECT_NE(evaluate(scenario, Depth::kQuick).refusal, "");
  EXPECT_THROW(move_stage(scenario, 1, 0), base::Failure);
}

TEST(ClusterEdit, StagesOnNamedGroupsTakeTheirNodesInOrder) {
  Scenario scenario = mixed();
  scenario.file.job.plan.stage_nodes = {1, 1, 0, 0};
  const std::vector<int> devices = devices_of_ranks(scenario.file.job.plan, scenario.cluster);
  ASSERT_EQ(devices.size(), 32U);
  EXPECT_EQ(devices[0], 16);  // the first V100
  EXPECT_EQ(devices[16], 0);  // stage 2 on the first A100
  EXPECT_EQ(devices[31], 15);
}

TEST(Traffic, CountsWhatAReplicaSendsByHand) {
  // Eight replicas, one stage, no tensor ranks: the only exchange is of gradients (and of the norm's single numbers).
  const Evaluation evaluation = evaluate(small_scenario(), Depth::kQuick);
  ASSERT_TRUE(evaluation.runs());
  const std::vector<Exchange> exchanges = traffic(*evaluation.program, 0);
  ASSERT_FALSE(exchanges.empty());
  EXPECT_EQ(exchanges[0].group, program::Group::kData);
  // An all-reduce of n ranks sends 2 (n - 1) / n of its payload: 2 * 7 / 8.
  EXPECT_NEAR(exchanges[0].sent_bytes / exchanges[0].payload_bytes, 1.75, 1e-9);
  EXPECT_GT(exchanges[0].payload_bytes, 2.0 * 124e6);  // 2 bytes a parameter at least
}

TEST(Traffic, CountsTransfersOfAPipelineOnceForEveryMicroBatch) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kQuick);
  ASSERT_TRUE(evaluation.runs());
  // 16 samples in micro-batches of one: the first stage sends 16 activations on, a middle one 16 on and 16 back.
  const auto transfers = [&](int stage) {
    for (const Exchange& e : traffic(*evaluation.program, stage)) {
      if (e.group == program::Group::kPipeline) return e.operations;
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(transfers(0), 16);
  EXPECT_EQ(transfers(1), 32);
  EXPECT_EQ(transfers(3), 16);
}

TEST(MemoryCurve, PeaksAtThePredictedMemoryAndReturns) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  ASSERT_TRUE(evaluation.runs());
  for (int stage = 0; stage < 4; ++stage) {
    const std::vector<MemoryPoint> curve = memory_curve(evaluation, evaluation.memory[static_cast<std::size_t>(stage)]);
    const simulator::StageMemory& memory = evaluation.memory[static_cast<std::size_t>(stage)];
    std::int64_t peak = 0;
    for (const MemoryPoint& point : curve) peak = std::max(peak, point.bytes);
    EXPECT_LE(peak, memory.total()) << stage;
    EXPECT_GE(static_cast<double>(peak), 0.99 * static_cast<double>(memory.total())) << stage;
    EXPECT_EQ(curve.back().bytes, memory.total() - memory.activations);
    EXPECT_EQ(curve.front().bytes, curve.back().bytes);
  }
}

TEST(MemoryCurve, ASplitBackwardKeepsItsDelayedPartUntilTheWeights) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.schedule = program::Schedule::kZeroBubble;
  const Evaluation evaluation = evaluate(scenario, Depth::kFull);
  ASSERT_EQ(evaluation.refusal, "");
  for (int stage = 0; stage < 4; ++stage) {
    std::int64_t peak = 0;
    const std::vector<MemoryPoint> curve = memory_curve(evaluation, evaluation.memory[static_cast<std::size_t>(stage)]);
    for (const MemoryPoint& point : curve) peak = std::max(peak, point.bytes);
    const simulator::StageMemory& memory = evaluation.memory[static_cast<std::size_t>(stage)];
    EXPECT_LE(peak, memory.total()) << stage;
    EXPECT_GE(static_cast<double>(peak), 0.8 * static_cast<double>(memory.total())) << stage;
    EXPECT_EQ(curve.back().bytes, memory.total() - memory.activations);
  }
}

TEST(RankMemory, IsThatOfTheStageAgainstTheRanksOwnDevice) {
  // Eight replicas on an A100 node and eight on a V100 node: one stage on different devices.
  Scenario scenario = with_cluster(small_scenario(), "dgx-a100-80gb:1+dgx1-v100-32gb:1");
  scenario.file.job.plan.data = 16;
  scenario.file.job.plan.precision = program::DType::kFp16;  // V100s have no bf16
  const Evaluation evaluation = evaluate(scenario, Depth::kQuick);
  ASSERT_EQ(evaluation.refusal, "");
  const std::vector<RankMemory> ranks = memory_of_ranks(evaluation);
  ASSERT_EQ(ranks.size(), 16U);
  const auto capacity = [&](std::size_t group) {
    return static_cast<std::int64_t>(scenario.cluster.groups[group].node.device.memory.value());
  };
  EXPECT_EQ(evaluation.memory[0].capacity, capacity(1));  // a stage is judged by the smaller device
  for (const RankMemory& one : ranks) {
    EXPECT_EQ(one.memory.capacity, capacity(one.rank < 8 ? 0 : 1));
    EXPECT_EQ(one.memory.activations, evaluation.memory[0].activations);
    EXPECT_LE(one.memory.reserved, evaluation.memory[0].reserved);
  }
}

TEST(RankMemory, HasTheStageOfEveryRank) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kQuick);
  const std::vector<RankMemory> ranks = memory_of_ranks(evaluation);
  ASSERT_EQ(ranks.size(), 8U);
  for (const RankMemory& one : ranks) {
    EXPECT_EQ(one.memory.stage, one.rank / 2);  // two tensor ranks a stage, neighbours
    EXPECT_EQ(one.memory.total(), evaluation.memory[static_cast<std::size_t>(one.rank / 2)].total());
  }
}

TEST(ClusterEdit, AClusterWithoutTheGroupsThatStagesNameTakesThemInOrder) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:1+dgx1-v100-32gb:1");
  scenario.file.job.plan.tensor = 4;
  scenario.file.job.plan.pipeline = 2;
  scenario.file.job.plan.data = 2;
  scenario.file.job.plan.stage_nodes = {1, 0};
  scenario = with_cluster(std::move(scenario), "dgx-a100-80gb:2");
  EXPECT_TRUE(scenario.file.job.plan.stage_nodes.empty());
  EXPECT_EQ(evaluate(scenario, Depth::kQuick).refusal, "");
}

TEST(ClusterEdit, RanksThatShareCoresGoRoundThem) {
  Scenario scenario = local_example();
  scenario.cluster.groups[0].node.devices = 2;
  scenario.file.job.plan.data = 4;
  EXPECT_EQ(devices_of_ranks(scenario.file.job.plan, scenario.cluster), (std::vector<int>{0, 1, 0, 1}));
  scenario = small_scenario();
  scenario.file.job.plan.data = 16;  // A100s are not shared
  EXPECT_TRUE(devices_of_ranks(scenario.file.job.plan, scenario.cluster).empty());
}

}  // namespace
}  // namespace trivium::gui
