// What every collective sends, by hand.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/replay/replay_program.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

/// A layer's kind of communication: who takes part, and what happens.
using What = std::pair<program::Group, OpKind>;

/// Bytes that rank 0 sends in one step, by what it sends them for.
std::map<What, double> sent_by_first_stage(const program::Job& job, const hardware::Cluster& cluster) {
  const auto program = order(std::get<program::Program>(program::lower(job)), cluster).value_or_throw();
  const CostedProgram costed = cost(program, cluster);
  const ReplayProgram made = compile_replay(costed, {Granularity::kOp, Ranks::kEvery, true}).value_or_throw();
  std::map<What, double> sent;
  const program::Role& role = program.roles[0];
  for (const auto& stream : made.streams_by_role[0].streams) {
    for (const Instruction& in : stream) {
      const program::Body& body = program.body_of(role.tasks[static_cast<std::size_t>(in.task)]);
      for (int s = 0; s < in.steps; ++s) {
        const Step& step = made.streams_by_role[0].steps[static_cast<std::size_t>(in.first_step + s)];
        const program::Op& op = body.ops[static_cast<std::size_t>(step.op)];
        if (program::is_communication(op.kind)) sent[{op.group, op.kind}] += step.wire;
      }
    }
  }
  return sent;
}

// h = 2048, 24 layers, 2 bytes an element, one micro-batch of 1,024 tokens: a layer's activations are b s h 2 = 4 MiB.
constexpr double kActivations = 1024.0 * 2048 * 2;
constexpr int kLayers = 24;

program::Job small_job(int tensor, int pipeline, int data) {
  program::Job job;
  job.model = models::load_model("gpt3-1.3b");
  job.training.sequence = 1024;
  job.training.global_batch = data;
  job.plan.tensor = tensor;
  job.plan.pipeline = pipeline;
  job.plan.data = data;
  return job;
}

const hardware::Cluster& node() {
  static const hardware::Cluster kNode = hardware::load_cluster("dgx-a100-80gb:1");
  return kNode;
}

// Shoeybi et al. 2019, section 3: two all-reduces a layer in the forward and two in the backward, 2 (t-1)/t of the
// activations each; and the embedding's forward one. The loss exchanges a few bytes a token.
TEST(WireBytes, TensorParallelLayersReduceTwiceEachWay) {
  const auto sent = sent_by_first_stage(small_job(4, 2, 1), node());  // the first of two stages: 12 layers, no head
  EXPECT_EQ(sent.at({program::Group::kTensor, OpKind::kAllReduce}), (12 * 4 + 1) * kActivations * 2 * 3 / 4);
}

// Korthikanti et al. 2022, section 4.2.2: an all-gather and a reduce-scatter for every all-reduce; (t-1)/t each. The
// backward gathers what it multiplies by once more where the input was kept as a shard.
TEST(WireBytes, SequenceParallelMovesAnAllReduceInTwoHalves) {
  program::Job job = small_job(4, 2, 1);
  job.plan.sequence_parallel = true;
  const auto sent = sent_by_first_stage(job, node());
  const double part = kActivations * 3 / 4;
  const double gathers = sent.at({program::Group::kTensor, OpKind::kAllGather}) / part;
  const double scatters = sent.at({program::Group::kTensor, OpKind::kReduceScatter}) / part;
  EXPECT_EQ(scatters, 12 * 4 + 1);  // after the embedding too
  EXPECT_EQ(gathers, 12 * 6 + 1);   // two forward, two backward and the two inputs again; the embedding's backward
  // A transfer carries a tensor rank's part.
  EXPECT_EQ(sent.at({program::Group::kPipeline, OpKind::kSend}), kActivations / 4);
}

TEST(WireBytes, TransfersCarryTheActivationsOfAMicroBatch) {
  program::Job job = small_job(2, 2, 1);
  job.training.global_batch = 3;
  const auto sent = sent_by_first_stage(job, node());
  EXPECT_EQ(sent.at({program::Group::kPipeline, OpKind::kSend}), 3 * kActivations);
  EXPECT_EQ(sent.at({program::Group::kPipeline, OpKind::kRecv}), 3 * kActivations);  // gradients come back
}

// Scatter-gather (2104.04473, section 4.1): half of them leaves each of two tensor ranks, and of the gradients that
// come back, likewise in halves, each rank sends its own to the other.
TEST(WireBytes, TransfersInPartsCarryATensorRanksPart) {
  program::Job job = small_job(2, 2, 1);
  job.training.global_batch = 3;
  job.plan.scatter_gather = program::ScatterGather::kOn;
  const auto sent = sent_by_first_stage(job, node());
  EXPECT_EQ(sent.at({program::Group::kPipeline, OpKind::kSend}), 3 * kActivations / 2);
  EXPECT_EQ(sent.at({program::Group::kPipeline, OpKind::kRecv}), 3 * kActivations / 2);
  EXPECT_EQ(sent.at({program::Group::kTensor, OpKind::kAllGather}), 3 * kActivations * 1 / 2);
}

// A ring over n replicas sends 2 (n-1)/n of the gradients, once a step however many micro-batches there are.
TEST(WireBytes, ReplicasReduceTheirGradientsOnce) {
  program::Job job = small_job(1, 1, 8);
  job.training.global_batch = 32;
  const auto program = std::get<program::Program>(program::lower(job));
  double gradients = 0;  // as the buckets hold them, padding included
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) {
      if (op.group == program::Group::kData && op.kind == OpKind::kAllReduce) gradients += op.bytes;
    }
  }
  // 1.3 billion parameters, 4 bytes each; padding is less than a thousandth.
  const double parameters = static_cast<double>(models::count_parameters(job.model).total);
  EXPECT_NEAR(gradients, 4 * parameters, 4e-3 * parameters);
  const auto sent = sent_by_first_stage(job, node());
  EXPECT_EQ(sent.at({program::Group::kData, OpKind::kAllReduce}), gradients * 2 * 7 / 8);
}

// ZeRO-1 (Rajbhandari et al. 2020, section 7.1): a reduce-scatter of gradients and an all-gather of parameters,
// (n-1)/n each.
TEST(WireBytes, ShardedOptimizersScatterGradientsAndGatherParameters) {
  program::Job job = small_job(1, 1, 8);
  const auto plain = sent_by_first_stage(job, node());
  job.plan.zero_stage = 1;
  const auto sent = sent_by_first_stage(job, node());
  const double gradients = plain.at({program::Group::kData, OpKind::kAllReduce}) / 2;
  EXPECT_NEAR(sent.at({program::Group::kData, OpKind::kReduceScatter}), gradients, 1e-3 * gradients);
  EXPECT_NEAR(sent.at({program::Group::kData, OpKind::kAllGather}), gradients / 2, 1e-3 * gradients);  // 2 bytes each
}

// Keys and values of a block go round the ring: b s/c h 2 bytes each of them, c - 1 times forward; the backward sends
// them again, and their gradients all the way home (c times, in fp32 sums or as they are).
TEST(WireBytes, RingAttentionPassesKeysAndValuesOn) {
  program::Job job = small_job(1, 1, 1);
  job.plan.context = 4;
  job.plan.attention = program::Attention::kFlash;
  const auto sent = sent_by_first_stage(job, node());
  const double block = 2 * kActivations / 4;
  EXPECT_GE(sent.at({program::Group::kContext, OpKind::kRingShift}), kLayers * block * (3 + 3 + 4));
  EXPECT_LE(sent.at({program::Group::kContext, OpKind::kRingShift}), kLayers * block * (3 + 3 + 8));
}

// Ulysses (Jacobs et al. 2023, section 3.2): of a rank's queries, keys, values and outputs, b s/c h each, (c-1)/c go to
// the others; in the backward their gradients, the other way.
TEST(WireBytes, AnAllToAllOverHeadsSendsWhatTheOthersHold) {
  program::Job job = small_job(1, 1, 1);
  job.plan.context = 4;
  job.plan.context_method = program::ContextMethod::kAllToAll;
  job.plan.attention = program::Attention::kFlash;
  const auto sent = sent_by_first_stage(job, node());
  EXPECT_EQ(sent.at({program::Group::kContext, OpKind::kAllToAll}), kLayers * 2 * 4 * (kActivations / 4) * 3 / 4);
}

// Adam on the host: of an offloaded step the links carry fp32 gradients there and 16-bit parameters back, for every
// parameter of the first stage, in whatever time the copies take: no link looks faster than it is.
TEST(NetworkBytes, CopiesOfAStepOnTheHostAreGradientsAndParameters) {
  program::Job job = small_job(1, 1, 8);
  job.plan.stack = "megatron-core";
  job.plan.zero_stage = 1;
  job.plan.offload.optimizer = program::Storage::kHost;
  const auto program = order(std::get<program::Program>(program::lower(job)), node()).value_or_throw();
  const CostedProgram costed = cost(program, node());
  const ReplayProgram made = compile_replay(costed, {Granularity::kOp, Ranks::kEvery, true}).value_or_throw();
  const double link = node().groups.front().node.host_link.value() / node().groups.front().node.devices_per_host_link;
  double fetched = 0, stored = 0;
  for (const auto& stream : made.streams_by_role[0].streams) {
    for (const Instruction& in : stream) {
      const program::Body& body = program.body_of(program.roles[0].tasks[static_cast<std::size_t>(in.task)]);
      for (int s = 0; s < in.steps; ++s) {
        const Step& step = made.streams_by_role[0].steps[static_cast<std::size_t>(in.first_step + s)];
        const program::Op& op = body.ops[static_cast<std::size_t>(step.op)];
        if (!program::is_copy(op.kind)) continue;
        (op.kind == OpKind::kFetch ? fetched : stored) += step.wire;
        EXPECT_LE(step.wire, 1.001 * link * static_cast<double>(in.ps) * 1e-12);
      }
    }
  }
  EXPECT_NEAR(fetched, 2 * stored, 1e-6 * fetched);  // 4 and 2 bytes a parameter
  const double parameters = static_cast<double>(models::count_parameters(job.model).total);
  EXPECT_NEAR(fetched, 4 * parameters / 8, .01 * fetched);
}

}  // namespace
}  // namespace trivium::simulator
