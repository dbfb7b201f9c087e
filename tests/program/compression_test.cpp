// Gradients in 16 bits between replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::ElementsAre;

Job job_of_two_replicas(Compression compression) {
  Job job = tiny_job();
  job.plan.data = 2;
  job.plan.compression = compression;
  return job;
}

TEST(Compression, EveryBucketIsRoundedSummedAndWidenedOnTheDataLane) {
  const Program program = lowered(job_of_two_replicas(Compression::kFp16));
  const ChunkKind& kind = program.kinds[0];
  for (std::size_t b = 1; b < kind.buckets.size(); ++b) {
    const Body& body = program.bodies[static_cast<std::size_t>(kind.reduce[b])];
    std::vector<OpKind> kinds;
    for (const Op& op : body.ops) {
      kinds.push_back(op.kind);
      EXPECT_EQ(op.lane, Lane::kData);
      EXPECT_EQ(op.elements, kind.buckets[b].elements);
    }
    EXPECT_THAT(kinds, ElementsAre(OpKind::kCompress, OpKind::kAllReduce, OpKind::kDecompress));
    EXPECT_EQ(body.ops[1].dtype, DType::kFp16);
    EXPECT_EQ(body.ops[1].bytes, 2.0 * static_cast<double>(kind.buckets[b].elements));
    EXPECT_EQ(body.ops[0].bytes, (4.0 + 2.0) * static_cast<double>(kind.buckets[b].elements));
  }
  EXPECT_THAT(verify(program), ::testing::IsEmpty());
}

// One bucket at a time is on the wire: the widest, in 16 bits.
TEST(Compression, TakesRoomForOneBucket) {
  const Program program = lowered(job_of_two_replicas(Compression::kFp16));
  std::int64_t widest = 0;
  for (const Bucket& bucket : program.kinds[0].buckets) widest = std::max(widest, bucket.elements);
  EXPECT_EQ(program.roles[0].bytes[static_cast<std::size_t>(Space::kGathered)], 2 * widest);
  const Program plain = lowered(job_of_two_replicas(Compression::kNone));
  EXPECT_EQ(program.roles[0].total_bytes(), plain.roles[0].total_bytes() + 2 * widest);
}

TEST(Compression, OneReplicaHasNothingToSend) {
  Job job = job_of_two_replicas(Compression::kFp16);
  job.plan.data = 1;
  for_each_op(lowered(job), [](const Role&, const Task&, const Op& op) { EXPECT_NE(op.kind, OpKind::kCompress); });
}

}  // namespace
}  // namespace trivium::program
