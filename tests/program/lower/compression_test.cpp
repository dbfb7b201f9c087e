// Gradients in 16 bits between replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/verify/verify.h"
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
  const ChunkTemplate& kind = program.kinds[0];
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

// A tenth of each parameter, rounded up: of fp32 gradients 8 bytes an element go to the other replica.
TEST(Compression, TheLargestOfEveryParameterAreGathered) {
  Job job = job_of_two_replicas(Compression::kTopK);
  job.plan.top_k_share = 0.1;
  const Program program = lowered(job);
  const ChunkTemplate& kind = program.kinds[0];
  for (std::size_t b = 1; b + 1 < kind.buckets.size(); ++b) {  // layers: the ends may share a tied weight
    const Body& body = program.bodies[static_cast<std::size_t>(kind.reduce[b])];
    std::int64_t sent = 0;
    for (const Op& op : body.ops) {
      EXPECT_EQ(op.lane, Lane::kData);
      if (op.kind != OpKind::kCompress) continue;
      EXPECT_EQ(op.k, (op.elements + 9) / 10);
      sent += op.k;
    }
    const Op& gather = body.ops[body.ops.size() - 2];
    EXPECT_EQ(gather.kind, OpKind::kAllGather);
    EXPECT_EQ(gather.bytes, 2.0 * 8.0 * static_cast<double>(sent));
    EXPECT_EQ(body.ops.back().kind, OpKind::kDecompress);
    EXPECT_EQ(body.ops.back().k, sent);
  }
  EXPECT_THAT(verify(program), ::testing::IsEmpty());
}

// What is not sent is kept with the optimizer's state, in the gradients' type.
TEST(Compression, EveryReplicaKeepsWhatItHasNotSent) {
  const auto state = [](Compression compression) {
    return lowered(job_of_two_replicas(compression)).roles[0].bytes[static_cast<std::size_t>(Space::kOptimizer)];
  };
  std::int64_t parameters = 0;
  const Program plain = lowered(job_of_two_replicas(Compression::kNone));
  for (const Parameter& p : plain.kinds[0].parameters) parameters += p.local_rows * p.local_columns;
  EXPECT_EQ(state(Compression::kTopK) - state(Compression::kNone), 4 * parameters);
}

TEST(Compression, OneReplicaHasNothingToSend) {
  Job job = job_of_two_replicas(Compression::kFp16);
  job.plan.data = 1;
  for_each_op(lowered(job), [](const Role&, const Task&, const Op& op) { EXPECT_NE(op.kind, OpKind::kCompress); });
}

}  // namespace
}  // namespace trivium::program
