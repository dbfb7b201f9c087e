#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

/// How often each kind of collective of a group runs in one layer (or, with -1, in the ends), by pass.
using Counts = std::map<std::tuple<Pass, OpKind>, int>;

Counts count_in(const Program& program, int body, Group group, int layer) {
  Counts counts;
  for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
    if (is_communication(op.kind) && op.group == group && op.layer == layer) ++counts[{op.pass, op.kind}];
  }
  return counts;
}

// Micro-batches of b = 2, s = 16, h = 32 in bf16: 2 b s h = 2048 bytes.
Job tensor_job() {
  Job job = tiny_job();
  job.plan.tensor = 2;
  job.plan.micro_batch = 2;
  job.plan.precision = DType::kBf16;
  return job;
}

TEST(TensorCollectives, TwoAllReducesForwardAndTwoBackwardInALayer) {
  const Program program = lowered(tensor_job());
  const ChunkTemplate& kind = program.kinds[0];
  for (int layer = 0; layer < 4; ++layer) {
    EXPECT_EQ(count_in(program, kind.forward, Group::kTensor, layer),
              (Counts{{{Pass::kForward, OpKind::kAllReduce}, 2}}));
    EXPECT_EQ(count_in(program, kind.backward, Group::kTensor, layer),
              (Counts{{{Pass::kBackward, OpKind::kAllReduce}, 2}}));
  }
}

TEST(TensorCollectives, FullRecomputationRepeatsTheTwoForwardOnes) {
  Job job = tensor_job();
  job.plan.recompute = Recompute::kFull;
  const Program program = lowered(job);
  EXPECT_EQ(count_in(program, program.kinds[0].backward, Group::kTensor, 1),
            (Counts{{{Pass::kRecompute, OpKind::kAllReduce}, 2}, {{Pass::kBackward, OpKind::kAllReduce}, 2}}));
}

TEST(TensorCollectives, SelectiveRecomputationRepeatsNone) {
  Job job = tensor_job();
  job.plan.recompute = Recompute::kSelective;
  const Program program = lowered(job);
  EXPECT_EQ(count_in(program, program.kinds[0].backward, Group::kTensor, 1),
            (Counts{{{Pass::kBackward, OpKind::kAllReduce}, 2}}));
}

TEST(TensorCollectives, OfTheEndsByHand) {
  // Embedding sum; the loss's maximum and sums; the gradient of the final norm. The tied weights are not split further.
  const Program program = lowered(tensor_job());
  EXPECT_EQ(count_in(program, program.kinds[0].forward, Group::kTensor, -1),
            (Counts{{{Pass::kForward, OpKind::kAllReduce}, 3}}));
  EXPECT_EQ(count_in(program, program.kinds[0].backward, Group::kTensor, -1),
            (Counts{{{Pass::kBackward, OpKind::kAllReduce}, 1}}));
}

TEST(TensorCollectives, MoveTwoBytesForEveryTokenAndChannel) {
  for (const bool sequence_parallel : {false, true}) {
    Job job = tensor_job();
    job.plan.sequence_parallel = sequence_parallel;
    job.plan.recompute = Recompute::kFull;
    const Program program = lowered(job);
    for (const int body : {program.kinds[0].forward, program.kinds[0].backward}) {
      for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
        if (!is_communication(op.kind) || op.layer < 0) continue;
        EXPECT_EQ(op.bytes, 2048) << name_of(op.kind);
      }
    }
  }
}

TEST(TensorCollectives, OfTheLossMoveThreeNumbersForEveryToken) {
  // 32 tokens: the maximum, 4 bytes each, as a maximum; two sums, 8 bytes, as a sum.
  const Program program = lowered(tensor_job());
  std::vector<std::pair<Reduction, double>> found;
  for (const Op& op : program.bodies[static_cast<std::size_t>(program.kinds[0].forward)].ops) {
    if (op.kind == OpKind::kAllReduce && op.layer < 0) found.emplace_back(op.reduction, op.bytes);
  }
  const std::vector<std::pair<Reduction, double>> expected{
      {Reduction::kSum, 2048}, {Reduction::kMax, 128}, {Reduction::kSum, 256}};
  EXPECT_EQ(found, expected);
}

TEST(TensorCollectives, SequenceParallelSplitsEachAllReduceInTwoAndGathersInputsAgain) {
  // Korthikanti et al. 2022, §4.2.2: g and its conjugate around both halves; backward gathers the two norms' outputs
  // again for the weight gradients.
  Job job = tensor_job();
  job.plan.sequence_parallel = true;
  const Program program = lowered(job);
  const ChunkTemplate& kind = program.kinds[0];
  EXPECT_EQ(count_in(program, kind.forward, Group::kTensor, 2),
            (Counts{{{Pass::kForward, OpKind::kAllGather}, 2}, {{Pass::kForward, OpKind::kReduceScatter}, 2}}));
  EXPECT_EQ(count_in(program, kind.backward, Group::kTensor, 2),
            (Counts{{{Pass::kBackward, OpKind::kAllGather}, 2 + 2}, {{Pass::kBackward, OpKind::kReduceScatter}, 2}}));
  job.plan.recompute = Recompute::kFull;
  const Program again = lowered(job);
  EXPECT_EQ(count_in(again, again.kinds[0].backward, Group::kTensor, 2),
            (Counts{{{Pass::kRecompute, OpKind::kAllGather}, 2},
                    {{Pass::kRecompute, OpKind::kReduceScatter}, 2},
                    {{Pass::kBackward, OpKind::kAllGather}, 4},
                    {{Pass::kBackward, OpKind::kReduceScatter}, 2}}));
}

TEST(TensorCollectives, SequenceParallelSumsTheGradientsOfReplicasOverTheTensorGroup) {
  // One range a segment: wpe 512, each layer's norms and output biases 4 x 32 + 2 x 32 = 192, the final norm 64.
  Job job = tensor_job();
  job.plan.sequence_parallel = true;
  const Program program = lowered(job);
  std::vector<std::int64_t> sizes;
  for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
    if (task.kind == TaskKind::kReduceGradients && op.group == Group::kTensor) sizes.push_back(op.elements);
  });
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{64, 192, 192, 192, 192, 512}));
}

TEST(TensorCollectives, StandOnTheComputeLaneUnlessThePlanOverlapsThem) {
  for (const bool overlap : {false, true}) {
    Job job = tensor_job();
    job.plan.overlap.tensor = overlap;
    for_each_op(lowered(job), [&](const Role&, const Task& task, const Op& op) {
      if (op.group == Group::kTensor && (task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward)) {
        EXPECT_EQ(op.lane, overlap ? Lane::kTensor : Lane::kCompute);
      }
    });
  }
}

TEST(TensorCollectives, WithOneTensorRankThereAreNone) {
  for_each_op(lowered(tiny_job()), [](const Role&, const Task&, const Op& op) { EXPECT_NE(op.group, Group::kTensor); });
}

TEST(PipelineTransfers, CrossEveryBoundaryOnceEachWay) {
  // 3 boundaries x 4 micro-batches x 2 directions, both for 4 stages and for 2 stages of 2 chunks.
  for (const int virtual_stages : {1, 2}) {
    for (const bool sequence_parallel : {false, true}) {
      Job job = tensor_job();
      job.plan.pipeline = 4 / virtual_stages, job.plan.virtual_stages = virtual_stages;
      job.plan.schedule = virtual_stages > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
      job.plan.sequence_parallel = sequence_parallel;
      int sends = 0, receives = 0;
      for_each_op(lowered(job), [&](const Role&, const Task&, const Op& op) {
        sends += op.kind == OpKind::kSend;
        receives += op.kind == OpKind::kRecv;
        if (op.group != Group::kPipeline) return;
        EXPECT_EQ(op.bytes, sequence_parallel ? 1024 : 2048);  // 2 b s h, over t with SP
      });
      EXPECT_EQ(sends, 24);
      EXPECT_EQ(receives, 24);
    }
  }
}

TEST(PipelineTransfers, OfTheInterleavedScheduleWrapAroundTheStages) {
  // Chunks 0 1 2 3 lie on stages 0 1 0 1: the boundary 1|2 leads from stage 1 back to stage 0.
  Job job = tiny_job();
  job.plan.pipeline = 2, job.plan.virtual_stages = 2, job.plan.schedule = Schedule::kInterleaved;
  const Program program = lowered(job);
  int wrapped = 0;
  for (const Task& task : program.roles[1].tasks) {
    if (task.kind == TaskKind::kSend && task.chunk == 0) {
      EXPECT_EQ(task.peer_stage, 0);
      ++wrapped;
    }
  }
  EXPECT_EQ(wrapped, 16);  // 8 micro-batches: activations of chunk 1 forward, gradients of chunk 1 to chunk 0
}

}  // namespace
}  // namespace trivium::program
