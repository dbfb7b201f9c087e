// ZB-H1: the backward in two halves, and what has to stay until the second has run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "program/lower/sharding.h"
#include "program/schedules/slots.h"
#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text_of(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ",
                        slot.forward   ? 'F'
                        : slot.weights ? 'W'
                                       : 'B',
                        slot.micro_batch);
  }
  return text;
}

Job split_job(int pipeline, std::int64_t micro_batches) {
  Job job = tiny_job();
  job.plan.pipeline = pipeline;
  job.plan.schedule = Schedule::kZeroBubble;
  job.training.global_batch = micro_batches;
  return job;
}

// Stage s: p - 1 - s forwards of warm-up, and the second halves s micro-batches late.
TEST(ZeroBubble, SecondHalvesComeAsLateAsTheStageIsDeep) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kZeroBubble, 0, 3, 1, 4)), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(text_of(schedule_of(Schedule::kZeroBubble, 1, 3, 1, 4)), "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  EXPECT_EQ(text_of(schedule_of(Schedule::kZeroBubble, 2, 3, 1, 4)), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST(ZeroBubble, FewerMicroBatchesThanStages) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kZeroBubble, 3, 4, 1, 2)), "F0 B0 F1 B1 W0 W1");
}

// As many in flight on every stage as on the first stage of 1F1B; of these s + 1 between their halves.
TEST(ZeroBubble, EveryStageHasAsManyFramesAsThereAreStages) {
  for (int stage = 0; stage < 4; ++stage) {
    const auto slots = schedule_of(Schedule::kZeroBubble, stage, 4, 1, 16);
    EXPECT_EQ(frames_needed(slots, 0), 4) << stage;
    const int chunk = 0;
    EXPECT_EQ(deferred_frames_needed(slots, std::span(&chunk, 1)), stage + 1) << stage;
  }
  const int chunk = 0;
  EXPECT_EQ(deferred_frames_needed(schedule_of(Schedule::k1f1b, 1, 4, 1, 16), std::span(&chunk, 1)), 0);
}

// What the halves do together is what the whole does, op for op.
TEST(ZeroBubble, TheHalvesDoTheWorkOfTheWhole) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const bool sequence_parallel : {false, true}) {
      Job job = split_job(2, 4);
      job.plan.tensor = 2;
      job.plan.sequence_parallel = sequence_parallel;
      job.plan.recompute = recompute;
      const auto count = [](const Program& program) {
        std::map<std::pair<OpKind, Pass>, double> flops_and_ops;
        for_each_op(program, [&](const Role&, const Task&, const Op& op) {
          flops_and_ops[{op.kind, op.pass}] += op.flops + 1;
        });
        return flops_and_ops;
      };
      const auto split = count(lowered(job));
      job.plan.schedule = Schedule::k1f1b;
      EXPECT_EQ(split, count(lowered(job)));
    }
  }
}

TEST(ZeroBubble, MatrixGradientsAreAllInTheSecondHalf) {
  const Program program = lowered(split_job(2, 4));
  for_each_op(program, [](const Role&, const Task& task, const Op& op) {
    const bool second = op.kind == OpKind::kMatmulWgrad || op.kind == OpKind::kEmbeddingBackward ||
                        op.kind == OpKind::kPositionBackward;
    if (op.pass != Pass::kBackward || is_communication(op.kind) || op.kind == OpKind::kAdd) return;
    EXPECT_EQ(task.kind, second ? TaskKind::kBackwardWeights : TaskKind::kBackward) << name_of(op.kind);
  });
}

// Regression: during the backward of a stage with the embedding, which the second half alone adds to, a bucket was
// reduced one segment too early.
TEST(ZeroBubble, BucketsAreReducedBehindTheLastSegmentThatAddsToThem) {
  Job job = split_job(2, 4);
  job.plan.data = 2;
  job.plan.overlap.gradient_reduction = true;
  const Program program = lowered(job);
  int checked = 0;
  for (const Role& role : program.roles) {
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(role.chunks[0].kind)];
    for (const Task& task : role.tasks) {
      if (task.kind != TaskKind::kReduceGradients) continue;
      const auto bucket = std::find(kind.reduce.begin(), kind.reduce.end(), task.body) - kind.reduce.begin();
      const Task& half = role.tasks[static_cast<std::size_t>(task.after[0].task)];
      ASSERT_EQ(half.kind, TaskKind::kBackwardWeights);
      const auto writers = gradient_writers(program, program.body_of(half));
      EXPECT_EQ(task.after[0].segment, writers[static_cast<std::size_t>(bucket)].last);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2 * 3);
}

// Per layer and micro-batch between the halves, (T, .) values: gradients of the MLP's inner width 128, of qkv 96, and
// of the residual stream 32 after attention and, for all but the stage's first layer, at the input.
TEST(ZeroBubble, KeepsTheGradientsThatTheSecondHalfReads) {
  const Program program = lowered(split_job(2, 4));
  const std::int64_t tokens = 16, size = 4;
  const std::int64_t first = tokens * size * (2 * (128 + 96 + 32) + 32);
  const std::int64_t last = first + tokens * size * 32;  // and the gradient that the head hands down
  EXPECT_EQ(program.roles[0].bytes[static_cast<std::size_t>(Space::kDeferred)], first);
  EXPECT_EQ(program.roles[1].bytes[static_cast<std::size_t>(Space::kDeferred)], 2 * last);
}

// With full recomputation also what was computed again: the inputs of the four matrices, 32 + 32 + 32 + 128 wide.
TEST(ZeroBubble, KeepsWhatWasRecomputedForTheSecondHalf) {
  Job job = split_job(2, 4);
  const auto delayed = [&] { return lowered(job).roles[0].bytes[static_cast<std::size_t>(Space::kDeferred)]; };
  const std::int64_t kept = delayed();
  job.plan.recompute = Recompute::kFull;
  EXPECT_EQ(delayed(), kept + 2 * 16 * 4 * (32 + 32 + 32 + 128));
}

TEST(ZeroBubble, RandomJobsPassTheVerifier) {
  RandomJobs jobs(23);
  int split = 0;
  for (int i = 0; i < 400; ++i) {
    Job job = jobs.next();
    job.plan.virtual_stages = 1;
    job.plan.schedule = Schedule::kZeroBubble;
    if (check(job)) continue;
    EXPECT_THAT(verify(lowered(job)), IsEmpty()) << summary(job.plan);
    ++split;
  }
  EXPECT_GT(split, 150);
}

TEST(ZeroBubble, NeedsStagesOfOneChunk) {
  Job job = split_job(2, 4);
  job.plan.virtual_stages = 2;
  EXPECT_EQ(check(job).value().rule, "interleaved-needs-virtual-stages");
}

/// Stage 1 of two with four micro-batches; tasks by kind and micro-batch.
Task& task_of(Program& program, TaskKind kind, int micro_batch) {
  auto& tasks = program.roles[1].tasks;
  return *std::find_if(tasks.begin(), tasks.end(),
                       [&](const Task& t) { return t.kind == kind && t.micro_batch == micro_batch; });
}

TEST(ZeroBubble, VerifierMissesADroppedSecondHalf) {
  Program program = lowered(split_job(2, 4));
  auto& tasks = program.roles[0].tasks;
  Task& second = *std::find_if(tasks.begin(), tasks.end(), [](const Task& t) {
    return t.kind == TaskKind::kBackwardWeights && t.micro_batch == 2;
  });
  second.micro_batch = 1;
  EXPECT_THAT(verify(program), Contains(HasSubstr("backward_weights of chunk 0 micro-batch 2 occurs 0 times")));
}

TEST(ZeroBubble, VerifierSeesAFrameTakenBeforeTheSecondHalfRan) {
  Program program = lowered(split_job(2, 4));
  task_of(program, TaskKind::kForward, 1).frame = task_of(program, TaskKind::kForward, 0).frame;
  EXPECT_THAT(verify(program), Contains(HasSubstr("takes frame 0 while chunk 0 micro-batch 0 needs it")));
}

TEST(ZeroBubble, VerifierSeesKeptGradientsOverwritten) {
  Program program = lowered(split_job(2, 4));
  Task& later = task_of(program, TaskKind::kBackward, 1);
  later.deferred_frame = task_of(program, TaskKind::kBackward, 0).deferred_frame;
  EXPECT_THAT(verify(program), Contains(HasSubstr("takes frame 0 while chunk 0 micro-batch 0 needs it")));
}

TEST(ZeroBubble, VerifierSeesAReceiveThatDoesNotWaitForTheSecondHalf) {
  Program program = lowered(split_job(2, 4));
  const int second = static_cast<int>(&task_of(program, TaskKind::kBackwardWeights, 0) - &program.roles[1].tasks[0]);
  for (Task& task : program.roles[1].tasks) {
    if (task.kind == TaskKind::kRecv) std::erase_if(task.after, [&](const Dependency& d) { return d.task == second; });
  }
  EXPECT_THAT(verify(program), Contains(HasSubstr("(backward_weights chunk 0 micro-batch 0), which reads its frame")));
}

TEST(ZeroBubble, VerifierSeesASecondHalfBeforeTheFirst) {
  Program program = lowered(split_job(2, 4));
  std::swap(task_of(program, TaskKind::kBackward, 0).kind, task_of(program, TaskKind::kBackwardWeights, 0).kind);
  EXPECT_THAT(verify(program), Contains(HasSubstr("comes before its first half")));
}

}  // namespace
}  // namespace trivium::program
