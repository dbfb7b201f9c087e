// Schedules whose chunks lie in a V: what passes on a stage from chunk to chunk, and both ends of the model on one
// stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Job v_job(int pipeline, std::int64_t micro_batches, Schedule schedule = Schedule::kZbv) {
  Job job = tiny_job(2 * pipeline);
  job.plan.pipeline = pipeline;
  job.plan.virtual_stages = 2;
  job.plan.schedule = schedule;
  job.training.global_batch = micro_batches;
  return job;
}

const ChunkTemplate& kind_of(const Program& program, const Chunk& chunk) {
  return program.kinds[static_cast<std::size_t>(chunk.kind)];
}

// Four layers on two stages: layers 0 and 3, embedding and head, on stage 0; 1 and 2 on stage 1.
TEST(VSchedule, BothEndsOfTheModelAreOnStageZero) {
  const Program program = lowered(v_job(2, 4));
  const auto layers = [&](int stage) {
    std::vector<int> first;
    for (const Chunk& chunk : program.roles[static_cast<std::size_t>(stage)].chunks) first.push_back(chunk.first_layer);
    return first;
  };
  EXPECT_EQ(layers(0), (std::vector{0, 3}));
  EXPECT_EQ(layers(1), (std::vector{1, 2}));
  EXPECT_TRUE(kind_of(program, program.roles[0].chunks[0]).embedding);
  EXPECT_TRUE(kind_of(program, program.roles[0].chunks[1]).head);
}

// Of three boundaries between four chunks two are crossed, in both directions, by each of four micro-batches; the one
// on stage 1 is not.
TEST(VSchedule, NothingIsSentBetweenChunksOfOneStage) {
  const Program program = lowered(v_job(2, 4));
  for (const Role& role : program.roles) {
    int sends = 0, receives = 0;
    for (const Task& task : role.tasks) {
      if (task.transfer < 0) continue;
      EXPECT_EQ(task.peer_stage, 1 - role.stage);
      ++(task.kind == TaskKind::kSend ? sends : receives);
    }
    EXPECT_EQ(sends, 2 * 4) << role.stage;
    EXPECT_EQ(receives, 2 * 4) << role.stage;
  }
}

// Every pass of stage 1's second chunk finds its input where the first chunk's forward of that micro-batch left it.
TEST(VSchedule, TheNextChunkReadsItsInputWhereItIs) {
  const Program program = lowered(v_job(2, 4));
  const Role& last = program.roles[1];
  EXPECT_EQ(last.chunks[0].input_from, -1);
  EXPECT_EQ(last.chunks[1].input_from, 0);
  int found = 0;
  for (const Task& task : last.tasks) {
    if (task.input_frame < 0) continue;
    EXPECT_EQ(task.chunk, 1);
    const auto left = std::find_if(last.tasks.begin(), last.tasks.end(), [&](const Task& other) {
      return other.kind == TaskKind::kForward && other.chunk == 0 && other.micro_batch == task.micro_batch;
    });
    EXPECT_EQ(task.input_frame, left->frame);
    ++found;
  }
  EXPECT_EQ(found, 2 * 4);  // forwards, and first halves of backwards
}

// Stage 0 has a chunk of either end: 2p frames and one, of half a stage each. The others' chunks are alike and share
// 2p.
TEST(VSchedule, StagesHoldAsMuchAsThePipelineIsLong) {
  const Program program = lowered(v_job(4, 16));
  EXPECT_EQ(program.roles[0].chunks[0].frames, 8);
  EXPECT_EQ(program.roles[0].chunks[1].frames, 1);
  for (std::size_t stage = 1; stage < 4; ++stage) {
    for (const Chunk& chunk : program.roles[stage].chunks) {
      EXPECT_EQ(chunk.frames, 8) << stage;
      EXPECT_EQ(chunk.deferred_frames, 2 * static_cast<int>(stage) + 1);
    }
  }
}

// Both copies of a tied weight are on stage 0: their gradients are added there, and no stage talks to another of them.
TEST(VSchedule, TiedGradientsAreAddedOnTheirStage) {
  for (const bool tied : {true, false}) {
    Job job = v_job(2, 4);
    job.plan.data = 2;
    job.model.tied_embeddings = tied;
    const Program program = lowered(job);
    int exchanges = 0, added = 0;
    for_each_op(program, [&](const Role& role, const Task& task, const Op& op) {
      if (op.group == Group::kEmbedding) ++exchanges;
      if (op.kind != OpKind::kAdd || program.body_of(task).name != "tie") return;
      EXPECT_EQ(role.stage, 0);
      EXPECT_EQ(op.elements, 64 * 32);
      ++added;
    });
    EXPECT_EQ(exchanges, 0);
    EXPECT_EQ(added, tied ? 2 : 0);
    EXPECT_THAT(verify(program), IsEmpty());
  }
}

// The other copy's gradient, named from the embedding's chunk, is where the last chunk has it.
TEST(VSchedule, TheOtherCopyIsReachedWhereItLies) {
  const Program program = lowered(v_job(2, 4));
  const Role& role = program.roles[0];
  const ChunkTemplate &first = kind_of(program, role.chunks[0]), &last = kind_of(program, role.chunks[1]);
  const auto space = static_cast<std::size_t>(Space::kGradient);
  const auto copy =
      std::find_if(last.parameters.begin(), last.parameters.end(), [](const Parameter& p) { return p.tied_copy; });
  EXPECT_EQ(role.chunks[0].base[space] + first.buffers[static_cast<std::size_t>(first.tied_elsewhere)].offset,
            role.chunks[1].base[space] + last.buffers[static_cast<std::size_t>(copy->gradient)].offset);
}

TEST(VSchedule, RandomJobsPassTheVerifier) {
  RandomJobs jobs(29);
  int checked = 0;
  for (int i = 0; i < 400; ++i) {
    Job job = jobs.next();
    job.plan.virtual_stages = 2;
    job.plan.schedule = i % 3 == 0 ? Schedule::kDualPipeV : Schedule::kZbv;
    if (check(job)) continue;
    EXPECT_THAT(verify(lowered(job)), IsEmpty()) << summary(job.plan);
    ++checked;
  }
  EXPECT_GT(checked, 60);
}

TEST(VSchedule, HasTwoChunksAStage) {
  Job job = v_job(2, 4);
  job.plan.virtual_stages = 1;
  EXPECT_EQ(check(job).value().rule, "v-schedule-has-two-chunks");
  job.plan.virtual_stages = 3;
  job.model.layers = 6;
  EXPECT_EQ(check(job).value().reason, "schedule zbv has virtual_stages 2; there are 3");
}

TEST(VSchedule, TakesAnyNumberOfMicroBatches) {
  for (const std::int64_t micro_batches : {1, 2, 3, 5, 7}) {
    for (const Schedule schedule : {Schedule::kZbv, Schedule::kDualPipeV}) {
      EXPECT_THAT(verify(lowered(v_job(4, micro_batches, schedule))), IsEmpty()) << micro_batches;
    }
  }
}

TEST(VSchedule, KeepsGradientsOfTiedEmbeddingsOnTheDevice) {
  Job job = v_job(2, 4);
  job.plan.offload.gradients = Storage::kHost;
  EXPECT_THAT(check(job).value().reason, HasSubstr("both copies of a tied embedding on one stage"));
  job.model.tied_embeddings = false;
  EXPECT_TRUE(!check(job));
}

/// Of the last of two stages, by kind, chunk and micro-batch.
Task& task_of(Program& program, TaskKind kind, int chunk, int micro_batch) {
  auto& tasks = program.roles[1].tasks;
  return *std::find_if(tasks.begin(), tasks.end(), [&](const Task& t) {
    return t.kind == kind && t.chunk == chunk && t.micro_batch == micro_batch;
  });
}

TEST(VSchedule, VerifierSeesAnInputInAnotherFrame) {
  Program program = lowered(v_job(2, 4));
  task_of(program, TaskKind::kForward, 1, 1).input_frame = task_of(program, TaskKind::kForward, 0, 0).frame;
  EXPECT_THAT(verify(program), Contains(HasSubstr("reads its input in frame 0, which is not that of chunk 0")));
}

TEST(VSchedule, VerifierSeesAPassThatStartsFromNothing) {
  Program program = lowered(v_job(2, 4));
  program.roles[1].chunks[1].input_from = -1;
  EXPECT_THAT(verify(program), Contains(HasSubstr("starts from nothing")));
}

TEST(VSchedule, VerifierSeesAPassThatDoesNotWaitForItsInput) {
  Program program = lowered(v_job(2, 4));
  task_of(program, TaskKind::kForward, 1, 2).after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("(forward chunk 1 micro-batch 2) does not wait for task")));
}

TEST(VSchedule, VerifierSeesABackwardThatDoesNotWaitForItsGradient) {
  Program program = lowered(v_job(2, 4));
  task_of(program, TaskKind::kBackward, 0, 2).after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("(backward chunk 0 micro-batch 2) does not wait for task")));
}

}  // namespace
}  // namespace trivium::program
