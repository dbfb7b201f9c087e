// Pipeline transfers in parts: every tensor rank sends its own, and who received one gathers the others'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/lower/layout.h"
#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Micro-batches of b = 2, s = 16, h = 32 in bf16: 2 b s h = 2048 bytes.
Job job_of(int tensor, int pipeline, int virtual_stages = 1) {
  Job job = tiny_job();
  job.plan.tensor = tensor;
  job.plan.pipeline = pipeline;
  job.plan.virtual_stages = virtual_stages;
  job.plan.schedule = virtual_stages > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
  job.plan.micro_batch = 2;
  job.plan.precision = DType::kBf16;
  job.plan.scatter_gather = ScatterGather::kOn;
  return job;
}

// 3 boundaries x 4 micro-batches x 2 directions, both for 4 stages and for 2 stages of 2 chunks.
TEST(ScatterGather, EveryTransferIsAPartAndEveryReceiveIsGathered) {
  for (const int virtual_stages : {1, 2}) {
    for (const int tensor : {2, 4}) {
      const Program program = lowered(job_of(tensor, 4 / virtual_stages, virtual_stages));
      EXPECT_THAT(verify(program), IsEmpty());
      int sends = 0, receives = 0, gathers = 0;
      for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
        sends += op.kind == OpKind::kSend;
        receives += op.kind == OpKind::kRecv;
        if (op.group == Group::kPipeline) {
          EXPECT_EQ(op.bytes, 2048.0 / tensor);
        }
        if (task.kind != TaskKind::kGatherReceived) return;
        ++gathers;
        EXPECT_EQ(op.kind, OpKind::kAllGather);
        EXPECT_EQ(op.group, Group::kTensor);
        EXPECT_EQ(op.lane, Lane::kPipeline);
        EXPECT_EQ(op.bytes, 2048);
      });
      EXPECT_EQ(sends, 24);
      EXPECT_EQ(receives, 24);
      EXPECT_EQ(gathers, 24);
    }
  }
}

// Parts lie where they belong in what is read: nothing is kept twice.
TEST(ScatterGather, TakesNoMemory) {
  Job job = job_of(2, 2);
  const Program parts = lowered(job);
  job.plan.scatter_gather = ScatterGather::kOff;
  const Program whole = lowered(job);
  for (std::size_t stage = 0; stage < 2; ++stage) EXPECT_EQ(parts.roles[stage].bytes, whole.roles[stage].bytes);
}

TEST(ScatterGather, IsAHabitOfMegatronThatThePlanOverrules) {
  Job job = job_of(2, 2);
  job.plan.scatter_gather = ScatterGather::kStack;
  EXPECT_EQ(transfer_parts(job), 1);
  job.plan.stack = "megatron";
  EXPECT_EQ(transfer_parts(job), 2);
  job.plan.scatter_gather = ScatterGather::kOff;
  EXPECT_EQ(transfer_parts(job), 1);
}

TEST(ScatterGather, HasNothingToSplitWhereTensorRanksHoldUnlikePartsOrNoneAreThere) {
  Job job = job_of(2, 2);
  job.plan.sequence_parallel = true;
  EXPECT_EQ(transfer_parts(job), 1);
  EXPECT_EQ(transfer_parts(job_of(1, 2)), 1);
  EXPECT_EQ(transfer_parts(job_of(2, 1)), 1);
}

// 2 x 16 tokens x 32 = 1024 elements do not fall into three parts.
TEST(ScatterGather, OfElementsThatTensorDoesNotDivideIsRefusedAndNoStackDoesIt) {
  Job job = job_of(3, 2);
  job.model.heads = job.model.kv_heads = 3;
  job.model.ffn_hidden = 96;
  const auto verdict = check(job);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rule, "tensor-divides-transfers");
  EXPECT_EQ(verdict->reason, "scatter_gather on: tensor 3 does not divide the 1024 elements of a transfer; use off");
  job.plan.scatter_gather = ScatterGather::kStack;
  job.plan.stack = "megatron";
  EXPECT_TRUE(!check(job));
  EXPECT_EQ(transfer_parts(job), 1);
}

/// Two tensor ranks, two stages, two micro-batches of one sample. Stage 1: 0 recv, 1 gather, 2 F0, 3 B0, 4 send, …
Program scattered_stages() {
  Job job = job_of(2, 2);
  job.plan.micro_batch = 1;
  job.training.global_batch = 2;
  return lowered(job);
}

Task& task_of(Program& program, std::size_t task) { return program.roles[1].tasks[task]; }
Op& op_of(Program& program, const Task& task) {
  return program.bodies[static_cast<std::size_t>(task.body)].ops.front();
}

TEST(ScatterGatherMutation, AForwardThatWaitsForItsPartAlone) {
  Program program = scattered_stages();
  task_of(program, 2).after = {{0, kWholeTask, 0}};
  EXPECT_THAT(verify(program), Contains("stage 1 task 2 (forward chunk 0 micro-batch 0) does not wait for task 1 "
                                        "(gather_received chunk 0 micro-batch 0)"));
}

TEST(ScatterGatherMutation, AGatherThatDoesNotWaitForItsPart) {
  Program program = scattered_stages();
  task_of(program, 1).after.clear();
  EXPECT_THAT(verify(program), Contains("stage 1 task 1 (gather_received chunk 0 micro-batch 0) does not wait for task "
                                        "0 (recv chunk 0 micro-batch 0)"));
}

TEST(ScatterGatherMutation, AGatherThatIsMissing) {
  Program program = scattered_stages();
  task_of(program, 1).micro_batch = 7;
  EXPECT_THAT(verify(program),
              Contains("stage 1 task 0 (recv chunk 0 micro-batch 0) receives a part, and nothing gathers the others"));
}

TEST(ScatterGatherMutation, ABodyThatReadsAPartAsTheWhole) {
  Program program = scattered_stages();
  for (ChunkTemplate& kind : program.kinds) kind.gather_forward = -1;
  EXPECT_THAT(verify(program), Contains("body \"forward\" op 0 (norm) reads \"chunk input\" before anything wrote it"));
}

TEST(ScatterGatherMutation, AGatherOfHalfTheParts) {
  Program program = scattered_stages();
  op_of(program, task_of(program, 1)).elements /= 2;
  EXPECT_THAT(
      verify(program),
      Contains("stage 1 task 1 (gather_received chunk 0 micro-batch 0) gathers 256 elements, not the parts that "
               "task 0 (recv chunk 0 micro-batch 0) received"));
}

TEST(ScatterGatherMutation, PartsThatLeaveSomethingOut) {
  Program program = scattered_stages();
  op_of(program, task_of(program, 0)).elements = op_of(program, program.roles[0].tasks[1]).elements = 128;
  const auto problems = verify(program);
  EXPECT_THAT(problems, Contains(HasSubstr("moves 128 of the 512 elements of \"chunk input\" as one of 2 parts")));
  EXPECT_THAT(problems, Contains(HasSubstr("moves 128 of the 512 elements of \"chunk output\" as one of 2 parts")));
}

TEST(ScatterGatherMutation, AGatherInAnotherFrame) {
  Program program = scattered_stages();
  task_of(program, 1).frame = 1;
  EXPECT_THAT(verify(program),
              Contains("stage 1 task 1 (gather_received chunk 0 micro-batch 0) is in frame 1, its pass "
                       "in frame 0"));
}

}  // namespace
}  // namespace trivium::program
