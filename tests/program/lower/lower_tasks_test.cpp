#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "program/ir/text.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::ElementsAre;

/// "forward chunk 0 micro-batch 1 < 2 3": what the task is and which tasks it waits for ("2.0": a segment of one).
std::vector<std::string> lines_of(const Role& role) {
  std::vector<std::string> lines;
  for (const Task& task : role.tasks) {
    std::string line = describe(task);
    for (std::size_t i = 0; i < task.after.size(); ++i) {
      line += (i == 0 ? " < " : " ") + std::to_string(task.after[i].task);
      if (task.after[i].segment != kWholeTask) line += "." + std::to_string(task.after[i].segment);
    }
    lines.push_back(line);
  }
  return lines;
}

Job two_stages() {
  Job job = tiny_job();
  job.training.global_batch = 2;
  job.plan.pipeline = 2;
  return job;
}

TEST(RoleTasks, OfTheFirstOfTwoStagesByHand) {
  // F0 F1 B0 B1. The gradient comes back into the buffer that the output left, so its receive waits for that send. Only
  // the tied embedding is reduced.
  EXPECT_THAT(lines_of(lowered(two_stages()).roles[0]),
              ElementsAre("forward chunk 0 micro-batch 0",       // 0
                          "send chunk 0 micro-batch 0 < 0",      // 1
                          "forward chunk 0 micro-batch 1",       // 2
                          "send chunk 0 micro-batch 1 < 2",      // 3
                          "recv chunk 0 micro-batch 0 < 1",      // 4
                          "backward chunk 0 micro-batch 0 < 4",  // 5
                          "recv chunk 0 micro-batch 1 < 3",      // 6
                          "backward chunk 0 micro-batch 1 < 6",  // 7
                          "reduce_gradients chunk 0 < 7",        // 8
                          "gradient_norm chunk 0 < 8 7",         // 9
                          "norm_reduce chunk 0 < 9", "optimizer chunk 0 < 10"));
}

TEST(RoleTasks, OfTheLastOfTwoStagesByHand) {
  // F0 B0 F1 B1 in one frame: the second receive waits until the first gradient has left that frame.
  EXPECT_THAT(lines_of(lowered(two_stages()).roles[1]),
              ElementsAre("recv chunk 0 micro-batch 0",         // 0
                          "forward chunk 0 micro-batch 0 < 0",  // 1
                          "backward chunk 0 micro-batch 0",     // 2
                          "send chunk 0 micro-batch 0 < 2",     // 3
                          "recv chunk 0 micro-batch 1 < 3",     // 4
                          "forward chunk 0 micro-batch 1 < 4",  // 5
                          "backward chunk 0 micro-batch 1",     // 6
                          "send chunk 0 micro-batch 1 < 6",     // 7
                          "reduce_gradients chunk 0 < 6",       // 8
                          "gradient_norm chunk 0 < 8 6",        // 9
                          "norm_reduce chunk 0 < 9", "optimizer chunk 0 < 10"));
}

// The first ten tasks of each: between a receive and its pass the tensor ranks gather what each received.
TEST(RoleTasks, OfTwoStagesThatTransferInPartsByHand) {
  Job job = two_stages();
  job.plan.tensor = 2;
  job.plan.scatter_gather = ScatterGather::kOn;
  const Program program = lowered(job);
  const auto passes_of = [&](std::size_t stage) {
    auto lines = lines_of(program.roles[stage]);
    lines.resize(10);
    return lines;
  };
  EXPECT_THAT(passes_of(0),
              ElementsAre("forward chunk 0 micro-batch 0", "send chunk 0 micro-batch 0 < 0",
                          "forward chunk 0 micro-batch 1", "send chunk 0 micro-batch 1 < 2",
                          "recv chunk 0 micro-batch 0 < 1", "gather_received chunk 0 micro-batch 0 < 4",
                          "backward chunk 0 micro-batch 0 < 5", "recv chunk 0 micro-batch 1 < 3",
                          "gather_received chunk 0 micro-batch 1 < 7", "backward chunk 0 micro-batch 1 < 8"));
  EXPECT_THAT(passes_of(1),
              ElementsAre("recv chunk 0 micro-batch 0", "gather_received chunk 0 micro-batch 0 < 0",
                          "forward chunk 0 micro-batch 0 < 1", "backward chunk 0 micro-batch 0",
                          "send chunk 0 micro-batch 0 < 3", "recv chunk 0 micro-batch 1 < 4",
                          "gather_received chunk 0 micro-batch 1 < 5", "forward chunk 0 micro-batch 1 < 6",
                          "backward chunk 0 micro-batch 1", "send chunk 0 micro-batch 1 < 8"));
}

TEST(RoleTasks, TransfersOfTwoStagesByHand) {
  // (2 boundary + direction) x 2 micro-batches + micro-batch: forwards 0 and 1, backwards 2 and 3.
  const Program program = lowered(two_stages());
  const auto transfers_of = [&](std::size_t stage) {
    std::vector<int> transfers;
    for (const Task& task : program.roles[stage].tasks) {
      if (task.transfer < 0) continue;
      transfers.push_back(task.transfer);
      EXPECT_EQ(task.peer_stage, stage == 0 ? 1 : 0);
    }
    return transfers;
  };
  EXPECT_THAT(transfers_of(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(transfers_of(1), ElementsAre(0, 2, 1, 3));
}

Job replicated(bool overlap) {
  Job job = tiny_job(2);
  job.training.global_batch = 2;
  job.plan.data = 2;
  job.plan.overlap.gradient_reduction = overlap;
  return job;
}

TEST(RoleTasks, ReduceFromTheLastBucketToTheFirstAfterTheLastBackward) {
  EXPECT_THAT(
      lines_of(lowered(replicated(false)).roles[0]),
      ElementsAre("forward chunk 0 micro-batch 0", "backward chunk 0 micro-batch 0", "reduce_gradients chunk 0 < 1",
                  "reduce_gradients chunk 0 < 1", "reduce_gradients chunk 0 < 1", "reduce_gradients chunk 0 < 1",
                  "gradient_norm chunk 0 < 2 3 4 5 1", "optimizer chunk 0 < 6"));
}

TEST(RoleTasks, WithOverlapReduceAsSoonAsTheBackwardLeavesABucket) {
  // Backward segments: head 0, layer 1, layer 0, embedding 3.
  EXPECT_THAT(
      lines_of(lowered(replicated(true)).roles[0]),
      ElementsAre("forward chunk 0 micro-batch 0", "backward chunk 0 micro-batch 0", "reduce_gradients chunk 0 < 1.0",
                  "reduce_gradients chunk 0 < 1.1", "reduce_gradients chunk 0 < 1.2", "reduce_gradients chunk 0 < 1.3",
                  "gradient_norm chunk 0 < 2 3 4 5 1", "optimizer chunk 0 < 6"));
}

TEST(RoleTasks, WithOverlapAMergedBucketWaitsForItsFirstSegment) {
  // 20,000 bytes: head 256 + layer 1 in one bucket, layer 0 alone, the embedding alone.
  Job job = replicated(true);
  job.plan.bucket_bytes = 20'000;
  EXPECT_THAT(
      lines_of(lowered(job).roles[0]),
      ElementsAre("forward chunk 0 micro-batch 0", "backward chunk 0 micro-batch 0", "reduce_gradients chunk 0 < 1.1",
                  "reduce_gradients chunk 0 < 1.2", "reduce_gradients chunk 0 < 1.3", "gradient_norm chunk 0 < 2 3 4 1",
                  "optimizer chunk 0 < 5"));
}

TEST(RoleTasks, GatherEveryBucketOnceItsOptimizerSegmentIsDone) {
  Job job = replicated(false);
  job.plan.zero_stage = 1, job.plan.bucket_bytes = 20'000;
  const auto lines = lines_of(lowered(job).roles[0]);
  // 0 F, 1 B, 2-4 reductions, 5 norm, 6 its reduction over the world, 7 optimizer
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines[7], "optimizer chunk 0 < 6");
  EXPECT_EQ(lines[8], "gather_parameters chunk 0 < 7.0");
  EXPECT_EQ(lines[10], "gather_parameters chunk 0 < 7.2");
}

TEST(RoleTasks, FramesAreTakenByOneMicroBatchAtATime) {
  RandomJobs jobs(29);
  for (int i = 0; i < 100; ++i) {
    for (const Role& role : lowered(jobs.next()).roles) {
      std::map<std::pair<int, int>, int> occupant;
      for (const Task& task : role.tasks) {
        const std::pair<int, int> frame{task.chunk, task.frame};
        if (task.kind == TaskKind::kForward) {
          ASSERT_LT(task.frame, role.chunks[static_cast<std::size_t>(task.chunk)].frames);
          ASSERT_TRUE(occupant.try_emplace(frame, task.micro_batch).second);
        } else if (task.kind == TaskKind::kBackward) {
          ASSERT_EQ(occupant.at(frame), task.micro_batch);
          occupant.erase(frame);
        }
      }
    }
  }
}

TEST(Lower, GivesTheReasonWhereThereIsNoProgram) {
  Job job = tiny_job();
  job.plan.tensor = 3;
  const auto result = lower(job);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  EXPECT_EQ(std::get<Infeasible>(result).rule, "tensor-divides-heads");
}

TEST(Lower, WiderTypesReduceInTheirOwn) {
  Job job = tiny_job();
  job.plan.precision = DType::kFp64;
  EXPECT_EQ(lowered(job).job.plan.reduce_dtype, DType::kFp64);
}

TEST(BodyLanes, OpsOnOtherLanesWaitForWhatTheyReadAndWrite) {
  // Megatron's overlap: the backward all-reduce of a layer's input gradient runs during the weight gradient.
  Job job = tiny_job();
  job.plan.tensor = 2, job.plan.overlap.tensor = true;
  const Program program = lowered(job);
  const Body& body = program.bodies[static_cast<std::size_t>(program.kinds[0].backward)];
  int seen = 0;
  for (std::size_t i = 1; i + 2 < body.ops.size(); ++i) {
    if (body.ops[i].kind != OpKind::kAllReduce || body.ops[i].layer < 0) continue;
    EXPECT_EQ(body.ops[i - 1].kind, OpKind::kMatmulDgrad);
    EXPECT_EQ(body.ops[i].after[0], static_cast<int>(i) - 1);
    EXPECT_EQ(body.ops[i + 1].kind, OpKind::kMatmulWgrad);
    EXPECT_EQ(body.ops[i + 1].after[0], -1);
    EXPECT_EQ(body.ops[i + 2].kind, OpKind::kNormBackward);
    EXPECT_EQ(body.ops[i + 2].after[0], static_cast<int>(i));
    ++seen;
  }
  EXPECT_EQ(seen, 8);  // 2 in each of 4 layers
}

// Regression: a gather of what the forward kept waited for nothing, and wrote where the compute lane still read.
TEST(BodyLanes, AGatherWaitsForTheLastUserOfTheMemoryItFills) {
  RandomJobs jobs(31);
  for (int round = 0; round < 60; ++round) {
    Job job = jobs.next();
    if (job.plan.tensor == 1) continue;
    job.plan.sequence_parallel = job.plan.overlap.tensor = true;
    const Program program = lowered(job);
    for (const Body& body : program.bodies) {
      const auto& buffers = program.kind_of(body).buffers;
      const auto uses = [&](const Op& op, const Buffer& memory) {
        const auto hits = [&](int b) {
          if (b == kNoBuffer) return false;
          const Buffer& other = buffers[static_cast<std::size_t>(b)];
          return other.space == Space::kWorkspace && other.offset < memory.offset + memory.bytes() &&
                 memory.offset < other.offset + other.bytes();
        };
        return std::any_of(op.in.begin(), op.in.end(), hits) || std::any_of(op.out.begin(), op.out.end(), hits);
      };
      for (std::size_t i = 0; i < body.ops.size(); ++i) {
        const Op& op = body.ops[i];
        if (op.lane != Lane::kTensor || op.out[0] == kNoBuffer) continue;
        const Buffer& filled = buffers[static_cast<std::size_t>(op.out[0])];
        if (filled.space != Space::kWorkspace) continue;
        for (std::size_t j = i; j-- > 0;) {
          if (body.ops[j].lane != Lane::kCompute || !uses(body.ops[j], filled)) continue;
          ASSERT_GE(*std::max_element(op.after.begin(), op.after.end()), static_cast<int>(j))
              << body.name << " op " << i;
          break;
        }
      }
    }
  }
}

}  // namespace
}  // namespace trivium::program
