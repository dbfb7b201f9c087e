// ZeRO 2 and 3 as tasks, collectives and memory.
#include "program/lower/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two layers on four replicas, `batches` micro-batches each.
Job sharded_job(int stage, int batches = 1) {
  Job job = tiny_job(2);
  job.training.global_batch = 4 * batches;
  job.plan.data = 4;
  job.plan.zero_stage = stage;
  return job;
}

std::int64_t bytes_of(const Program& program, Space space) {
  return program.roles[0].bytes[static_cast<std::size_t>(space)];
}

/// "gather_parameters 1 < 0.2": bucket and what it waits for.
std::vector<std::string> collectives(const Program& program) {
  std::vector<std::string> lines;
  for (const Task& task : program.roles[0].tasks) {
    if (task.kind != TaskKind::kGatherParameters && task.kind != TaskKind::kReduceGradients) continue;
    int bucket = -1;
    for (const Op& op : program.body_of(task).ops) bucket = std::max<int>(bucket, op.bucket);
    std::string line = std::string(task.kind == TaskKind::kReduceGradients ? "reduce " : "gather ");
    line += std::to_string(bucket);
    for (const Dependency& d : task.after) {
      line += " < " + std::to_string(d.task) + (d.segment == kWholeTask ? "" : "." + std::to_string(d.segment));
    }
    lines.push_back(line);
  }
  return lines;
}

double payload(const Program& program, OpKind kind) {
  double bytes = 0;
  for_each_op(program, [&](const Role&, const Task&, const Op& op) {
    if (op.kind == kind) bytes += op.bytes;
  });
  return bytes;
}

// Elements, padded to 4 ranks x 16: embedding 2,560, layers 12,736 (12,704 = 198.5 x 64), head 64.
constexpr std::int64_t kEmbedding = 2560, kLayer = 12736, kHead = 64;
constexpr std::int64_t kAll = kEmbedding + 2 * kLayer + kHead;

TEST(ZeroThree, KeepsOneShardOfEverythingAndRoomForTheBucketsAtWork) {
  // fp32: a shard of parameters and of gradients is a quarter each. Whole while at work: the ends and one layer of
  // parameters; likewise of gradients.
  const Program program = lowered(sharded_job(3));
  EXPECT_EQ(bytes_of(program, Space::kParameter), kAll);
  EXPECT_EQ(bytes_of(program, Space::kOptimizer), 2 * kAll);
  // Gradients: the shard, and the tied weight's use in the head apart: 64 x 32 numbers.
  EXPECT_EQ(bytes_of(program, Space::kGradient), kAll + 4 * 2048);
  EXPECT_EQ(bytes_of(program, Space::kGathered), 2 * 4 * (kEmbedding + kLayer + kHead));
}

TEST(ZeroThree, PrefetchAndOverlapTakeASlotMoreEach) {
  Job job = sharded_job(3);
  job.plan.overlap.parameter_gather = true;
  const std::int64_t ends = kEmbedding + kHead;
  EXPECT_EQ(bytes_of(lowered(job), Space::kGathered), 4 * (ends + 2 * kLayer) + 4 * (ends + kLayer));
  job.plan.overlap.gradient_reduction = true;
  EXPECT_EQ(bytes_of(lowered(job), Space::kGathered), 2 * 4 * (ends + 2 * kLayer));
  // With accumulation the sum of one micro-batch has a place of its own: a quarter of the widest bucket.
  job.training.global_batch = 8;
  EXPECT_EQ(bytes_of(lowered(job), Space::kGathered), 2 * 4 * (ends + 2 * kLayer) + kLayer);
}

TEST(ZeroTwo, KeepsParametersWholeAndGradientsAsShards) {
  const Program program = lowered(sharded_job(2));
  EXPECT_EQ(bytes_of(program, Space::kParameter), 4 * kAll);
  EXPECT_EQ(bytes_of(program, Space::kGradient), kAll + 4 * 2048);
  EXPECT_EQ(bytes_of(program, Space::kGathered), 4 * (kEmbedding + kLayer + kHead));
}

// Forward segments: embedding 0, layers 1 2, head 3; backward: head 0, layers 1 2, embedding 3. Buckets alike: the
// embedding is bucket 0, the head 3.
TEST(ZeroThree, GathersWhenItIsReachedAndReducesBeforeItGoesOn) {
  // 0 F, 1-4 its gathers; 5 B, 6 7 the layers' gathers (the ends are kept), 8-11 reductions.
  const Program program = lowered(sharded_job(3));
  EXPECT_THAT(collectives(program), ElementsAre("gather 0", "gather 1 < 0.0", "gather 2 < 0.1 < 0.1", "gather 3 < 0.2",
                                                "gather 2 < 5.0 < 0.2", "gather 1 < 5.1 < 5.1", "reduce 3 < 5.0",
                                                "reduce 2 < 5.1", "reduce 1 < 5.2", "reduce 0 < 5.3"));
  // The backward waits at every layer for its gather and, not overlapping, for the reduction before it; layers share a
  // slot, so layer 0 (segment 2) waits for layer 1's reduction twice.
  std::vector<std::string> waits;
  for (const Dependency& d : program.roles[0].tasks[5].after) {
    waits.push_back(std::to_string(d.before) + " < " + std::to_string(d.task));
  }
  EXPECT_THAT(waits, ElementsAre("1 < 6", "2 < 7", "1 < 8", "2 < 9", "2 < 9", "3 < 10"));
}

TEST(ZeroThree, PrefetchGathersOneBucketBeyondTheOneInUse) {
  Job job = sharded_job(3);
  job.plan.overlap.parameter_gather = job.plan.overlap.gradient_reduction = true;
  // The second bucket starts at once, the third when the second is reached; layer 2 has a slot of its own.
  EXPECT_THAT(collectives(lowered(job)), ElementsAre("gather 0", "gather 1", "gather 2 < 0.0", "gather 3 < 0.1",
                                                     "gather 2 < 0 < 0.2", "gather 1 < 5.0 < 0.1", "reduce 3 < 5.0",
                                                     "reduce 2 < 5.1", "reduce 1 < 5.2", "reduce 0 < 5.3"));
}

TEST(ZeroThree, MovesSixBytesAParameterAndPassPairInHalfPrecisionAndEightWithFp32Reduction) {
  Job job = sharded_job(3, 3);
  job.plan.precision = DType::kBf16;
  job.plan.reduce_dtype = DType::kBf16;
  job.plan.stack = "deepspeed-zero3";  // gathers the ends in both passes
  const auto elements = [](const Program& program) {
    return std::accumulate(program.kinds[0].buckets.begin(), program.kinds[0].buckets.end(), std::int64_t{0},
                           [](std::int64_t sum, const Bucket& bucket) { return sum + bucket.elements; });
  };
  Program program = lowered(job);
  EXPECT_EQ(payload(program, OpKind::kAllGather), 3 * 4.0 * static_cast<double>(elements(program)));
  EXPECT_EQ(payload(program, OpKind::kReduceScatter), 3 * 2.0 * static_cast<double>(elements(program)));
  job.plan.reduce_dtype = DType::kFp32;
  EXPECT_EQ(payload(lowered(job), OpKind::kReduceScatter), 3 * 4.0 * static_cast<double>(elements(program)));
  // Four products a layer, each by itself.
  const Body& gather = program.bodies[static_cast<std::size_t>(program.kinds[0].gather[1])];
  EXPECT_EQ(gather.ops.size(), 4u);
  EXPECT_EQ(gather.ops[0].elements * 4, program.kinds[0].buckets[1].elements);
}

TEST(ZeroTwo, WithoutAccumulationReducesStraightIntoTheShard) {
  const auto kinds_of = [](const Job& job) {
    const Program program = lowered(job);
    std::vector<OpKind> kinds;
    for (const Op& op : program.bodies[static_cast<std::size_t>(program.kinds[0].reduce[1])].ops)
      kinds.push_back(op.kind);
    return kinds;
  };
  EXPECT_THAT(kinds_of(sharded_job(2)), ElementsAre(OpKind::kReduceScatter, OpKind::kZeroGradients));
  EXPECT_THAT(kinds_of(sharded_job(2, 2)), ElementsAre(OpKind::kReduceScatter, OpKind::kAdd, OpKind::kZeroGradients));
}

TEST(HybridSharding, ReducesInsideTheGroupEveryMicroBatchAndOverGroupsOnce) {
  Job job = sharded_job(3, 2);
  job.plan.shard_group = 2;
  const Program program = lowered(job);
  EXPECT_EQ(program.kinds[0].buckets[1].shard * 2, program.kinds[0].buckets[1].elements);
  int inside = 0, over = 0;
  for_each_op(program, [&](const Role&, const Task&, const Op& op) {
    inside += op.group == Group::kShard && op.kind == OpKind::kReduceScatter;
    over += op.group == Group::kReplica && op.kind == OpKind::kAllReduce;
    EXPECT_NE(op.group, Group::kData);
  });
  EXPECT_EQ(inside, 2 * 4);
  EXPECT_EQ(over, 4);
}

TEST(HybridSharding, OfTheOptimizerAddsTheGroupsPartsInPlace) {
  Job job = sharded_job(1);
  job.plan.shard_group = 2;
  const Program program = lowered(job);
  const auto& ops = program.bodies[static_cast<std::size_t>(program.kinds[0].reduce[1])].ops;
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].group, Group::kShard);
  EXPECT_EQ(ops[1].group, Group::kReplica);
  EXPECT_EQ(ops[1].elements, program.kinds[0].buckets[1].shard);
}

TEST(ZeroOne, GathersBesideTheNextForwardWhereThePlanSaysSo) {
  Job job = sharded_job(1, 2);
  job.plan.overlap.parameter_gather = true;
  const Program program = lowered(job);
  // 0-3 gathers, at once; 4 the first forward, which waits for each where it reads it.
  const Task& forward = program.roles[0].tasks[4];
  ASSERT_EQ(forward.kind, TaskKind::kForward);
  std::vector<int> before;
  for (const Dependency& d : forward.after) before.push_back(d.before);
  EXPECT_THAT(before, ElementsAre(0, 1, 2, 3));
  int gathers = 0;
  for (const Task& task : program.roles[0].tasks) gathers += task.kind == TaskKind::kGatherParameters;
  EXPECT_EQ(gathers, 4);
}

TEST(ZeroThree, ATiedEmbeddingOfTwoStagesIsReducedOnceAndWhole) {
  Job job = sharded_job(3, 4);
  job.plan.pipeline = 2;
  const Program program = lowered(job);
  for (const ChunkTemplate& kind : program.kinds) {
    for (const Bucket& bucket : kind.buckets) {
      EXPECT_EQ(bucket.gradient_slot < 0, holds_end(kind, bucket));
      EXPECT_GE(bucket.parameter_slot, 0);
    }
  }
  int joint = 0;
  for_each_op(program, [&](const Role&, const Task&, const Op& op) { joint += op.group == Group::kEmbedding; });
  EXPECT_EQ(joint, 2);  // once on either stage
}

TEST(Sharding, SlotsOfBucketsInUseDoNotMeet) {
  RandomJobs jobs(41);
  int sharded = 0;
  for (int i = 0; i < 200; ++i) {
    const Program program = lowered(jobs.next());
    const DType type = program.job.plan.precision;
    for (const ChunkTemplate& kind : program.kinds) {
      // Ends have room of their own: no other bucket's slot, of parameters or gradients, meets it.
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      for (const Bucket& bucket : kind.buckets) {
        if (bucket.parameter_slot < 0) continue;
        const std::int64_t end = bucket.parameter_slot + bucket.elements * size_of(type);
        EXPECT_LE(end, kind.bytes[static_cast<std::size_t>(Space::kGathered)]);
        EXPECT_EQ(bucket.parameter_slot % 64, 0);
        ranges.emplace_back(bucket.parameter_slot, end);
        ++sharded;
      }
      for (const Bucket& bucket : kind.buckets) {
        if (bucket.gradient_slot < 0) continue;
        for (const auto& [begin, end] : ranges) EXPECT_GE(bucket.gradient_slot, end);
      }
    }
  }
  EXPECT_GT(sharded, 100);
}

/// Clean until one thing is broken; `problem` is what verify then says first.
void expect_problem(const std::function<void(Program&)>& spoil, const std::string& problem) {
  Job job = sharded_job(3, 2);
  job.plan.overlap.parameter_gather = job.plan.overlap.gradient_reduction = true;
  Program program = lowered(job);
  ASSERT_THAT(verify(program), IsEmpty());
  spoil(program);
  const auto problems = verify(program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.front(), problem);
}

/// Removes what `task` of stage 0 waits for where `chosen` says so.
void forget(Program& program, std::size_t task, const std::function<bool(const Dependency&)>& chosen) {
  ASSERT_GT(std::erase_if(program.roles[0].tasks[task].after, chosen), 0u);
}

// Tasks: 0 F0, 1-4 gathers, 5 B0, 6 7 gathers, 8-11 reductions, 12 F1, 13-16 gathers, 17 B1, 18 19 gathers, 20-23.
TEST(VerifySharding, AForwardThatDoesNotWaitForAGather) {
  expect_problem([](Program& p) { forget(p, 0, [](const Dependency& d) { return d.task == 2; }); },
                 "stage 0 task 0 (forward chunk 0 micro-batch 0) reads bucket 1 that nothing gathered");
}

TEST(VerifySharding, AForwardThatWaitsTooLate) {
  expect_problem([](Program& p) { p.roles[0].tasks[0].after[1].before = 2; },
                 "stage 0 task 0 (forward chunk 0 micro-batch 0) reads bucket 1 before it is gathered");
}

TEST(VerifySharding, AGatherThatOverwritesWhatIsRead) {
  expect_problem([](Program& p) { p.roles[0].tasks[7].after.clear(); },
                 "stage 0 task 7 (gather_parameters chunk 0 micro-batch 0) overwrites what task 0 still reads");
}

TEST(VerifySharding, AReductionThatDoesNotWaitForItsBackward) {
  expect_problem([](Program& p) { p.roles[0].tasks[9].after[0].segment = 0; },
                 "stage 0 task 5 (backward chunk 0 micro-batch 0) leaves gradients of bucket 2 that no reduction waits "
                 "for");
}

TEST(VerifySharding, ABackwardThatWritesWhereAReductionStillSums) {
  expect_problem([](Program& p) { forget(p, 17, [](const Dependency& d) { return d.task == 9; }); },
                 "stage 0 task 17 (backward chunk 0 micro-batch 1) writes gradients of bucket 2 where task 9 still "
                 "sums");
}

}  // namespace
}  // namespace trivium::program
