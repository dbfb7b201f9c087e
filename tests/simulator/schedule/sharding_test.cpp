// What gathers and reductions of sharded plans cost, by hand: every kernel segment takes C, a gather G, a reduction R.
#include <gtest/gtest.h>

#include "program/lower/lower.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {
namespace {

constexpr std::int64_t kC = 10, kG = 3, kR = 2;

// Two layers on four replicas, one micro-batch: embedding, two layers and head, forward and backward, are 8 C.
program::Job sharded_job(int stage, bool overlap) {
  program::Job job;
  job.model.layers = 2;
  job.model.hidden = 32;
  job.model.heads = job.model.kv_heads = 4;
  job.model.head_dim = 8;
  job.model.ffn_hidden = 128;
  job.model.vocab = 64;
  job.model.max_sequence = job.training.sequence = 16;
  job.training.global_batch = 4;
  job.plan.data = 4;
  job.plan.zero_stage = stage;
  job.plan.overlap.parameter_gather = job.plan.overlap.gradient_reduction = overlap;
  return job;
}

std::int64_t iteration(const program::Job& job, bool lanes = true) {
  const auto program = std::get<program::Program>(program::lower(job));
  CostedProgram costed;
  costed.program = &program;
  costed.asynchronous_lanes = lanes;
  costed.op_ps.resize(1);
  for (std::size_t b = 0; b < program.bodies.size(); ++b) {
    const program::Body& body = program.bodies[b];
    auto& times = costed.op_ps[0].emplace_back(body.ops.size(), 0);
    const int index = static_cast<int>(b);
    const program::ChunkTemplate& kind = program.kinds[0];
    for (const program::Segment& segment : body.segments) {
      if (index == kind.forward || index == kind.backward) times[static_cast<std::size_t>(segment.begin)] = kC;
    }
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      if (body.ops[i].kind == program::OpKind::kAllGather) times[i] = kG;
      if (body.ops[i].kind == program::OpKind::kReduceScatter) times[i] = kR;
    }
  }
  const auto by_segment = list_schedule(costed, Granularity::kSegment), by_op = list_schedule(costed, Granularity::kOp);
  EXPECT_EQ(by_segment.value().makespan_ps, by_op.value().makespan_ps);
  EXPECT_EQ(list_schedule_makespan(costed).value_or_throw(), by_op.value().makespan_ps);
  return by_op.value().makespan_ps;
}

TEST(ShardedIteration, WithoutOverlapIsASum) {
  // ZeRO-3 gathers four buckets forward and, the ends being kept, two backward: 8 C + 6 G + 4 R.
  EXPECT_EQ(iteration(sharded_job(3, false)), 8 * kC + 6 * kG + 4 * kR);
  // ZeRO-2 and ZeRO-1 gather four buckets after the step.
  EXPECT_EQ(iteration(sharded_job(2, false)), 8 * kC + 4 * kG + 4 * kR);
  EXPECT_EQ(iteration(sharded_job(1, false)), 8 * kC + 4 * kG + 4 * kR);
}

TEST(ShardedIteration, WithOverlapShowsTheFirstGatherAndTheLastReductionAlone) {
  // G + R < C: a layer hides the next one's gather and the last one's reduction.
  for (const int stage : {1, 2, 3}) EXPECT_EQ(iteration(sharded_job(stage, true)), 8 * kC + kG + kR) << stage;
}

TEST(ShardedIteration, OnOneLaneIsASumWhateverOverlaps) {
  EXPECT_EQ(iteration(sharded_job(3, true), false), 8 * kC + 6 * kG + 4 * kR);
  EXPECT_EQ(iteration(sharded_job(3, false), false), 8 * kC + 6 * kG + 4 * kR);
  EXPECT_EQ(iteration(sharded_job(2, true), false), 8 * kC + 4 * kG + 4 * kR);
}

// Three micro-batches: all of it three times, but that ZeRO-2 gathers once.
TEST(ShardedIteration, EveryMicroBatchGathersAndReduces) {
  program::Job job = sharded_job(3, false);
  job.training.global_batch = 12;
  EXPECT_EQ(iteration(job), 3 * (8 * kC + 6 * kG + 4 * kR));
  job.plan.zero_stage = 2;
  EXPECT_EQ(iteration(job), 3 * (8 * kC + 4 * kR) + 4 * kG);
  job.plan.zero_stage = 1;  // reduces once
  EXPECT_EQ(iteration(job), 3 * 8 * kC + 4 * kR + 4 * kG);
}

}  // namespace
}  // namespace trivium::simulator
