// Recomputation that differs from chunk to chunk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

Job job_of_four_stages() {
  Job job = tiny_job();
  job.plan.pipeline = 4;
  job.plan.recompute = Recompute::kNone;
  job.plan.stage_recompute = {Recompute::kFull, Recompute::kSelective, Recompute::kNone, Recompute::kFull};
  return job;
}

TEST(StageRecompute, EveryStageRecomputesWhatItIsTold) {
  const Program program = lowered(job_of_four_stages());
  std::map<int, std::map<OpKind, int>> again;  // stage -> ops of one backward
  for (const Role& role : program.roles) {
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(role.chunks[0].kind)];
    for (const Op& op : program.bodies[static_cast<std::size_t>(kind.backward)].ops) {
      if (op.pass == Pass::kRecompute) ++again[role.stage][op.kind];
    }
  }
  EXPECT_EQ(again[0][OpKind::kMatmul], 4);  // the layer's matrices
  EXPECT_EQ(again[0][OpKind::kAttention], 1);
  EXPECT_EQ(again[1][OpKind::kMatmul], 0);
  EXPECT_EQ(again[1][OpKind::kAttention], 1);
  EXPECT_TRUE(again[2].empty());
  EXPECT_EQ(again[3][OpKind::kMatmul], 4);
  EXPECT_THAT(verify(program), ::testing::IsEmpty());
}

// A frame of a middle stage, T = 16 tokens in fp32: chunk input and output 32 wide each; kept of the layer 32 + 2 + 96
// + 4 heads x 16 probabilities + 32 + 32 + 32 + 2 + 128 + 128, without the probabilities when these are computed again.
TEST(StageRecompute, EveryStageKeepsWhatItDoesNotRecompute) {
  Job job = job_of_four_stages();
  const auto frame = [&](Recompute how) {
    job.plan.stage_recompute = {Recompute::kFull, how, how, Recompute::kFull};
    const Program program = lowered(job);
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(program.roles[1].chunks[0].kind)];
    return kind.bytes[static_cast<std::size_t>(Space::kFrame)];
  };
  constexpr std::int64_t kToken = 16 * 4;
  EXPECT_EQ(frame(Recompute::kFull), kToken * (32 + 32));
  EXPECT_EQ(frame(Recompute::kSelective), kToken * (32 + 32 + 484));
  EXPECT_EQ(frame(Recompute::kNone), kToken * (32 + 32 + 484 + 64));
}

TEST(StageRecompute, OneWordForAllIsTheSameAsAListOfIt) {
  Job job = job_of_four_stages();
  job.plan.stage_recompute = std::vector<Recompute>(4, Recompute::kFull);
  const Program listed = lowered(job);
  job.plan.stage_recompute.clear();
  job.plan.recompute = Recompute::kFull;
  const Program word = lowered(job);
  for (std::size_t stage = 0; stage < 4; ++stage) EXPECT_EQ(listed.roles[stage].bytes, word.roles[stage].bytes);
}

TEST(StageRecompute, AListMustNameEveryChunk) {
  Job job = job_of_four_stages();
  job.plan.stage_recompute.pop_back();
  EXPECT_EQ(check(job).value().reason, "stage_recompute has 3 entries; pipeline x virtual_stages is 4");
}

}  // namespace
}  // namespace trivium::program
