// Programs with one thing broken: verify must say what and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Two stages, two micro-batches. Stage 0: 0 F0, 1 send, 2 F1, 3 send, 4 recv, 5 B0, 6 recv, 7 B1, 8 reduce, 9 norm, …
/// Stage 1: 0 recv, 1 F0, 2 B0, 3 send, 4 recv, 5 F1, 6 B1, 7 send, 8 reduce, 9 norm, …
Program two_stages() {
  Job job = tiny_job();
  job.training.global_batch = 2;
  job.plan.pipeline = 2;
  return lowered(job);
}

Task& task_of(Program& program, std::size_t stage, std::size_t task) { return program.roles[stage].tasks[task]; }
Body& body_of(Program& program, int body) { return program.bodies[static_cast<std::size_t>(body)]; }

TEST(VerifyMutation, TheProgramThatTheyAllStartFromIsClean) { EXPECT_THAT(verify(two_stages()), IsEmpty()); }

// Regression: sizes agree and no cycle arises, so only what is carried tells.
TEST(VerifyMutation, TwoReceivesWithTheirTransfersSwapped) {
  Program program = two_stages();
  std::swap(task_of(program, 1, 0).transfer, task_of(program, 1, 4).transfer);
  const auto problems = verify(program);
  EXPECT_THAT(problems,
              Contains("transfer 0: stage 0 sends the forward of micro-batch 0 after chunk 0, stage 1 receives the "
                       "forward of micro-batch 1 after chunk 0"));
  EXPECT_THAT(problems, Contains(HasSubstr("transfer 1: stage 0 sends the forward of micro-batch 1")));
}

TEST(VerifyMutation, AForwardAndABackwardTransferSwapped) {
  Program program = two_stages();
  std::swap(task_of(program, 0, 1).transfer, task_of(program, 0, 4).transfer);
  // The send is now number 2, which stage 1 sends too; number 0 is received at both ends.
  const auto problems = verify(program);
  EXPECT_THAT(problems, Contains("transfer 2 has 2 sends and 0 receives"));
  EXPECT_THAT(problems, Contains("transfer 0 is received by stage 0 and never sent"));
}

TEST(VerifyMutation, ADroppedSend) {
  Program program = two_stages();
  task_of(program, 0, 3).transfer = -1;
  EXPECT_THAT(verify(program), Contains("transfer 1 is received by stage 1 and never sent"));
}

TEST(VerifyMutation, ADroppedReceive) {
  Program program = two_stages();
  task_of(program, 1, 4).transfer = -1;
  EXPECT_THAT(verify(program), Contains("transfer 1 has 1 sends and 0 receives"));
}

TEST(VerifyMutation, ATransferToTheWrongStage) {
  Program program = two_stages();
  task_of(program, 0, 1).peer_stage = 0;
  EXPECT_THAT(verify(program), Contains(AllOf(HasSubstr("transfer 0: stage 0 sends 512 elements to 0"),
                                              HasSubstr("stage 1 receives 512 from 0"))));  // 16 tokens x 32
}

TEST(VerifyMutation, ATransferOfAnotherSize) {
  Program program = two_stages();
  body_of(program, task_of(program, 1, 0).body).ops[0].elements = 511;
  EXPECT_THAT(verify(program), Contains(HasSubstr("stage 1 receives 511 from 0")));
}

TEST(VerifyMutation, ABackwardTwice) {
  Program program = two_stages();
  program.roles[0].tasks.push_back(task_of(program, 0, 7));
  EXPECT_THAT(verify(program), Contains("stage 0: backward of chunk 0 micro-batch 1 occurs 2 times"));
}

TEST(VerifyMutation, AForwardThatIsMissing) {
  Program program = two_stages();
  task_of(program, 1, 5).kind = TaskKind::kOptimizer;
  const auto problems = verify(program);
  EXPECT_THAT(problems, Contains("stage 1: forward of chunk 0 micro-batch 1 occurs 0 times"));
  EXPECT_THAT(problems, Contains("stage 1 task 6 (backward chunk 0 micro-batch 1) comes before its forward"));
}

TEST(VerifyMutation, TheEmbeddingReductionDroppedOnOneStage) {
  for (const std::size_t stage : {0u, 1u}) {
    Program program = two_stages();
    std::erase_if(body_of(program, task_of(program, stage, 8).body).ops,
                  [](const Op& op) { return op.group == Group::kEmbedding; });
    EXPECT_THAT(verify(program),
                Contains(AllOf(HasSubstr("stage 0 and stage 1 disagree on the collectives of group embedding"),
                               HasSubstr(stage == 0 ? "0 and 1 of them" : "1 and 0 of them"))));
  }
}

TEST(VerifyMutation, TheSharedGradientNormDroppedOnOneStage) {
  Program program = two_stages();
  program.roles[1].tasks.erase(program.roles[1].tasks.begin() + 10);
  program.roles[1].tasks.back().after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("stage 0 and stage 1 disagree on the collectives of group model")));
}

// Two key heads on four tensor ranks: 32 x 16 gradients of k and v a layer, in combination with context ranks.
TEST(VerifyMutation, KeysThatAreNotSummedOverTheRanksThatShareThem) {
  Job job = tiny_job();
  job.model = tiny_llama();
  job.plan.tensor = 4, job.plan.context = 2, job.plan.attention = Attention::kFlash;
  Program program = lowered(job);
  EXPECT_THAT(verify(program), IsEmpty());
  auto& ops = body_of(program, program.kinds[0].reduce[1]).ops;
  std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.group == Group::kKeys; })->group = Group::kTensor;
  EXPECT_THAT(verify(program),
              Contains("bucket 1: 0 gradients of key heads that tensor ranks share are summed, not 512"));
}

// Of four tensor ranks two split an expert: each has 4 experts' 3 rows of 32, and gathers its neighbour's.
TEST(VerifyMutation, RowsGatheredFromRanksThatHoldOtherExperts) {
  Job job = tiny_job();
  job.model = tiny_llama();
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 1.25};
  job.plan.tensor = 4, job.plan.expert = 2, job.plan.expert_tensor = 2;
  Program program = lowered(job);
  EXPECT_THAT(verify(program), IsEmpty());
  auto& ops = body_of(program, program.kinds[0].forward).ops;
  std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.group == Group::kExpertTensor; })->group =
      Group::kTensor;
  EXPECT_THAT(verify(program),
              Contains(HasSubstr("(all_gather): 768 elements are not 4 parts of 384 over group tensor")));
}

TEST(VerifyMutation, ACycleIsNamedTaskByTask) {
  // The first forward of stage 0 waits for its own gradient: F0 -> send -> F0 of stage 1 -> B0 -> send -> B0 -> F0.
  Program program = two_stages();
  task_of(program, 0, 0).after.push_back({5, kWholeTask, 0});
  const auto problems = verify(program);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], HasSubstr("wait for each other"));
  EXPECT_THAT(problems[0], HasSubstr("stage 0 task 0 (forward chunk 0 micro-batch 0)"));
}

// Regression: the first stuck segments were named, which need not lie on the cycle.
TEST(VerifyMutation, OnlyTheCycleIsNamed) {
  Program program = two_stages();
  // On stage 1 the optimizer's norm waits for the optimizer; stage 0's norm waits with it, its forwards do not.
  task_of(program, 1, 10).after.push_back({11, kWholeTask, 0});
  const auto problems = verify(program);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], HasSubstr("stage 1 task 11 (optimizer chunk 0)"));
  EXPECT_THAT(problems[0], Not(HasSubstr("stage 0 task 11")));
}

TEST(VerifyMutation, TransfersThatCrossInOneOrder) {
  // Both hosts receive before they send: stage 0 waits for B0 before it sends F1, and stage 1 for F1 before it sends
  // B0.
  Program program = two_stages();
  task_of(program, 0, 3).after.push_back({4, kWholeTask, 0});
  task_of(program, 1, 3).after.push_back({4, kWholeTask, 0});
  task_of(program, 1, 4).after = {{2, kWholeTask, 0}};  // for B0 itself, not for its send
  const auto problems = verify(program);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], AllOf(HasSubstr("wait for each other"), HasSubstr("(send chunk 0")));
}

TEST(VerifyMutation, TwoTemporariesAtOnePlace) {
  // The first temporary of the last stage's backward is the gradient, alive to its end: another is laid over it.
  Program program = two_stages();
  ChunkTemplate& kind = program.kinds[1];
  Body& body = body_of(program, kind.backward);
  std::vector<std::int32_t> temporaries;
  for (const Op& op : body.ops) {
    const std::int32_t b = op.out[0];
    if (b != kNoBuffer && kind.buffers[static_cast<std::size_t>(b)].space == Space::kWorkspace)
      temporaries.push_back(b);
  }
  ASSERT_GT(temporaries.size(), 2u);
  Buffer& first = kind.buffers[static_cast<std::size_t>(temporaries[0])];
  Buffer& second = kind.buffers[static_cast<std::size_t>(temporaries[1])];
  ASSERT_NE(first.name, second.name);
  second.offset = first.offset;
  EXPECT_THAT(verify(program),
              Contains(AllOf(HasSubstr("body \"backward\""), HasSubstr("\"" + first.name + "\""),
                             HasSubstr("\"" + second.name + "\""), HasSubstr("share memory while both live"))));
}

TEST(VerifyMutation, ABufferReadBeforeItIsWritten) {
  // Layer 0's norm and the product that reads it, swapped in the forward of stage 1.
  Program program = two_stages();
  Body& body = body_of(program, program.kinds[1].forward);
  ASSERT_EQ(body.ops[0].kind, OpKind::kNorm);
  std::swap(body.ops[0], body.ops[1]);
  EXPECT_THAT(verify(program),
              Contains("body \"forward\" op 0 (matmul) reads \"layer 0 norm1\" before anything wrote it"));
}

TEST(VerifyMutation, AProductWithoutAnOperand) {
  Program program = two_stages();
  Body& body = body_of(program, program.kinds[1].forward);
  ASSERT_EQ(body.ops[1].kind, OpKind::kMatmul);
  body.ops[1].in[0] = kNoBuffer;
  EXPECT_THAT(verify(program), Contains("body \"forward\" op 1 (matmul) has no buffer for an operand"));
}

TEST(VerifyMutation, ATemporaryReadBeforeItIsWritten) {
  Program program = two_stages();
  Body& body = body_of(program, program.kinds[1].forward);
  const auto is_projection = [](const Op& op) { return op.kind == OpKind::kBiasResidual; };
  const auto use = std::find_if(body.ops.begin(), body.ops.end(), is_projection);
  ASSERT_NE(use, body.ops.end());
  std::swap(*use, *(use - 1));
  EXPECT_THAT(verify(program), Contains(AllOf(HasSubstr("(bias_residual) reads \"attention projection 0\""),
                                              HasSubstr("before anything wrote it"))));
}

// Regression: neither end of a transfer had to be waited for.
TEST(VerifyMutation, AForwardThatDoesNotWaitForItsInput) {
  Program program = two_stages();
  task_of(program, 1, 5).after.clear();
  EXPECT_THAT(verify(program),
              Contains("stage 1 task 5 (forward chunk 0 micro-batch 1) does not wait for task 4 (recv chunk 0 "
                       "micro-batch 1)"));
}

TEST(VerifyMutation, ASendThatDoesNotWaitForItsPass) {
  Program program = two_stages();
  task_of(program, 1, 3).after.clear();
  EXPECT_THAT(verify(program),
              Contains("stage 1 task 3 (send chunk 0 micro-batch 0) does not wait for task 2 (backward chunk 0 "
                       "micro-batch 0)"));
}

}  // namespace
}  // namespace trivium::program
