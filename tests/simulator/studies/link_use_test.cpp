// Bytes on the network by hand, and that the figures of the networks add up.
#include "simulator/studies/link_use.h"

#include <gtest/gtest.h>

#include <map>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "simulator/collectives/network_bytes.h"
#include "simulator/placement/placed_cluster.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"
#include "tests/support/split_plan.h"

namespace trivium::simulator {
namespace {

using support::split_plan;

struct Simulated {
  std::vector<WireUse> wires;
  double iteration_s = 0;
  double sent = 0;        ///< bytes of all that a device sends, mean over the stages
  double parameters = 0;  ///< bytes of a device's gradients, mean over the stages

  const WireUse* of(Wire wire) const {
    for (const WireUse& one : wires) {
      if (one.wire == wire) return &one;
    }
    return nullptr;
  }
  static const LinkUse* of(const WireUse& wire, Phase phase, program::Group group) {
    for (const LinkUse& one : wire.uses) {
      if (one.phase == phase && one.group == group) return &one;
    }
    return nullptr;
  }
};

Simulated simulated(program::Plan plan, const std::string& cluster_name) {
  program::Job job;
  job.model = models::load_model("gpt2-350m");
  job.training.sequence = 512;
  job.training.global_batch = 32;
  plan.precision = program::DType::kBf16;
  job.plan = plan;
  const hardware::Cluster cluster = hardware::load_cluster(cluster_name);
  const Prepared ready = prepared(job, cluster);
  SimulationOptions options;
  options.timeline = true;
  const Simulation simulation = simulate(ready, options).value_or_throw();
  const PlacedCluster placed(job.plan, cluster);
  Simulated result{link_use(ready.program(), simulation.timeline, placed.get()), simulation.iteration_s, 0, 0};
  const program::Program& program = ready.program();
  for (const program::Role& role : program.roles) {
    for (const program::Task& task : role.tasks) {
      for (const program::Op& op : program.body_of(task).ops) {
        const bool moves = program::is_communication(op.kind) || program::is_copy(op.kind);
        if (!moves || op.kind == program::OpKind::kRecv) continue;
        result.sent += (program::is_copy(op.kind) ? op.bytes : wire_bytes(program.mesh, op)) /
                       static_cast<double>(program.roles.size());
        if (op.kind == program::OpKind::kAllReduce && op.group == program::Group::kData &&
            task.kind == program::TaskKind::kReduceGradients) {
          result.parameters += op.bytes / static_cast<double>(program.roles.size());
        }
      }
    }
  }
  return result;
}

// A ring of n moves 2 (n-1)/n of the gradients out of every device; in one node all of it stays there.
TEST(LinkUse, ReplicasOfOneNodeReduceInsideIt) {
  const Simulated p = simulated(split_plan(1, 1, 8), "dgx-a100-80gb:1");
  ASSERT_EQ(p.wires.size(), 1U);
  EXPECT_EQ(p.wires[0].wire, Wire::kInside);
  const LinkUse* gradients = Simulated::of(p.wires[0], Phase::kGradients, program::Group::kData);
  ASSERT_NE(gradients, nullptr);
  EXPECT_NEAR(gradients->bytes, p.parameters * 2 * 7 / 8, 1);
}

// Sixteen replicas on two nodes: of a ring's sixteen steps two leave a node.
TEST(LinkUse, ARingOverTwoNodesLeavesEachOnce) {
  const Simulated p = simulated(split_plan(1, 1, 16), "dgx-a100-80gb:2");
  const WireUse *inside = p.of(Wire::kInside), *network = p.of(Wire::kNetwork);
  ASSERT_TRUE(inside != nullptr && network != nullptr);
  const double all = p.parameters * 2 * 15 / 16;
  EXPECT_NEAR(Simulated::of(*network, Phase::kGradients, program::Group::kData)->bytes, all * 2 / 16, 1);
  EXPECT_NEAR(Simulated::of(*inside, Phase::kGradients, program::Group::kData)->bytes, all * 14 / 16, 1);
  EXPECT_DOUBLE_EQ(network->capacity.value(),
                   8 * hardware::load_cluster("dgx-a100-80gb:2").groups[0].node.network.bandwidth.value() / 8);
}

// Nodes of slower kinds once counted though no rank lay on them: busy wires used three times their rate.
TEST(LinkUse, IdleNodesHaveNoSay) {
  const Simulated alone = simulated(split_plan(1, 1, 16), "dgx-a100-80gb:2");
  const Simulated p = simulated(split_plan(1, 1, 16), "dgx-a100-80gb:2+dgx1-v100-32gb:2");
  for (const Wire wire : {Wire::kInside, Wire::kNetwork}) {
    ASSERT_TRUE(p.of(wire) != nullptr && alone.of(wire) != nullptr);
    EXPECT_DOUBLE_EQ(p.of(wire)->capacity.value(), alone.of(wire)->capacity.value());
    EXPECT_DOUBLE_EQ(p.of(wire)->filled(), alone.of(wire)->filled());
  }
}

// Eight ranks on a node of each kind: what wires could carry is told by rank.
TEST(LinkUse, NoWireCarriesMoreThanItCan) {
  const Simulated p = simulated(split_plan(1, 2, 8), "dgx-a100-80gb:1+dgx-h100-80gb:1");
  for (const WireUse& wire : p.wires) {
    EXPECT_GT(wire.filled(), 0);
    EXPECT_LE(wire.filled(), 1) << name_of(wire.wire);
    EXPECT_GE(wire.could, wire.busy_s * wire.capacity.value() * (1 - 1e-9));
  }
}

// Tensor ranks fill the nodes, so that a replica's counterpart is always on the other node: gradients use the network
// alone.
TEST(LinkUse, TensorRanksStayInsideAndTheirReplicasGoOut) {
  const Simulated p = simulated(split_plan(8, 1, 2), "dgx-a100-80gb:2");
  const WireUse *inside = p.of(Wire::kInside), *network = p.of(Wire::kNetwork);
  ASSERT_TRUE(inside != nullptr && network != nullptr);
  EXPECT_EQ(Simulated::of(*inside, Phase::kGradients, program::Group::kData), nullptr);
  EXPECT_NEAR(Simulated::of(*network, Phase::kGradients, program::Group::kData)->bytes, p.parameters, 1);
  EXPECT_NE(Simulated::of(*inside, Phase::kForward, program::Group::kTensor), nullptr);
  EXPECT_NE(Simulated::of(*inside, Phase::kBackward, program::Group::kTensor), nullptr);
  EXPECT_EQ(Simulated::of(*network, Phase::kForward, program::Group::kTensor), nullptr);
}

TEST(LinkUse, StagesOfTwoNodesSendOverTheNetwork) {
  const Simulated p = simulated(split_plan(8, 2, 1), "dgx-a100-80gb:2");
  const LinkUse* stages = Simulated::of(*p.of(Wire::kNetwork), Phase::kStages, program::Group::kPipeline);
  ASSERT_NE(stages, nullptr);
  EXPECT_GT(stages->bytes, 0);
  EXPECT_EQ(Simulated::of(*p.of(Wire::kInside), Phase::kStages, program::Group::kPipeline), nullptr);
}

TEST(LinkUse, CopiesGoToTheHost) {
  program::Plan plan = split_plan(1, 1, 8);
  plan.offload.activations = program::Storage::kHost;
  const Simulated p = simulated(plan, "dgx-a100-80gb:1");
  const WireUse* host = p.of(Wire::kHost);
  ASSERT_NE(host, nullptr);
  EXPECT_GT(host->bytes, 0);
  EXPECT_LE(host->filled(), 1 + 1e-6);
}

TEST(LinkUse, AddsUp) {
  std::vector<std::pair<program::Plan, const char*>> cases{{split_plan(2, 2, 4), "dgx-a100-80gb:2"},
                                                           {split_plan(4, 1, 4), "dgx-a100-80gb:2"},
                                                           {split_plan(1, 4, 4), "dgx-a100-80gb:2"}};
  cases.emplace_back(split_plan(2, 1, 8), "dgx-a100-80gb:2");
  cases.back().first.zero_stage = 3;
  cases.back().first.sequence_parallel = true;
  for (const auto& [plan, cluster] : cases) {
    const Simulated p = simulated(plan, cluster);
    double bytes = 0;
    for (const WireUse& wire : p.wires) {
      bytes += wire.bytes;
      EXPECT_GE(wire.busy_s, 0);
      EXPECT_LE(wire.busy_s, p.iteration_s * (1 + 1e-9));
      EXPECT_GE(wire.exposed_s, 0);
      EXPECT_LE(wire.exposed_s, wire.busy_s * (1 + 1e-9));
      double of_uses = 0, longest = 0;
      for (const LinkUse& use : wire.uses) {
        of_uses += use.busy_s;
        longest = std::max(longest, use.busy_s);
      }
      EXPECT_GE(of_uses, wire.busy_s * (1 - 1e-9));
      EXPECT_LE(longest, wire.busy_s * (1 + 1e-9));
    }
    EXPECT_NEAR(bytes, p.sent, p.sent * 1e-9);
  }
}

}  // namespace
}  // namespace trivium::simulator
