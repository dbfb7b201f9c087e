// Bytes that a micro-batch keeps, against Korthikanti et al. 2022 (arXiv 2205.05198), section 4.
#include <gtest/gtest.h>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

constexpr auto kFrame = static_cast<std::size_t>(Space::kFrame);

// s = 16, b = 2, h = 32, a = 4 in fp16 with dropout: s b h = 1024, a s^2 b = 2048.
Job dropout_job() {
  Job job = tiny_job();
  job.plan.micro_batch = 2;
  job.plan.precision = DType::kFp16;
  job.training.dropout = 0.1;
  return job;
}

/// Frame bytes that one layer more costs.
std::int64_t layer_bytes(Job job) {
  const std::int64_t before = lowered(job).kinds[0].bytes[kFrame];
  ++job.model.layers;
  return lowered(job).kinds[0].bytes[kFrame] - before;
}

// Beyond the paper every layer keeps mean and 1/sigma of two norms in fp32: 2 x 2 x 4 bytes for each of 32 tokens.
constexpr std::int64_t kStatistics = 512;

TEST(LayerActivations, AreThirtyFourBytesAndFiveScores) {
  // eq. 1: s b h (34 + 5 a s / h) = 34 x 1024 + 5 x 2048
  EXPECT_EQ(layer_bytes(dropout_job()), 34816 + 10240 + kStatistics);
}

TEST(LayerActivations, KeepTenBytesOnEveryTensorRank) {
  // eq. 2: s b h (10 + 24 / t + 5 a s / (h t)), t = 2
  Job job = dropout_job();
  job.plan.tensor = 2;
  EXPECT_EQ(layer_bytes(job), 10240 + 12288 + 5120 + kStatistics);
}

TEST(LayerActivations, AreCutWholeBySequenceParallel) {
  // eq. 4: s b h / t (34 + 5 a s / h), t = 2; the statistics too
  Job job = dropout_job();
  job.plan.tensor = 2, job.plan.sequence_parallel = true;
  EXPECT_EQ(layer_bytes(job), 17408 + 5120 + kStatistics / 2);
}

TEST(LayerActivations, WithSelectiveRecomputationDropTheScores) {
  // §5: 34 s b h / t
  Job job = dropout_job();
  job.plan.recompute = Recompute::kSelective;
  EXPECT_EQ(layer_bytes(job), 34816 + kStatistics);
}

TEST(LayerActivations, WithFullRecomputationAreTheLayersInput) {
  // Table 2: 2 s b h
  Job job = dropout_job();
  job.plan.recompute = Recompute::kFull;
  EXPECT_EQ(layer_bytes(job), 2048);
}

TEST(LayerActivations, OfFlashAttentionKeepOneNumberForEveryTokenAndHead) {
  // log-sum-exp: 4 bytes x 32 tokens x 4 heads = 512
  Job job = dropout_job();
  job.plan.attention = Attention::kFlash;
  EXPECT_EQ(layer_bytes(job), 34816 + 512 + kStatistics);
}

TEST(LayerActivations, WithoutDropoutKeepNoMasks) {
  // 32 of the 34 bytes, and of the 5 for the scores the 2 of the probabilities
  Job job = dropout_job();
  job.training.dropout = 0;
  EXPECT_EQ(layer_bytes(job), 32768 + 4096 + kStatistics);
}

TEST(LayerActivations, OfAGatedMlpKeepGateAndUp) {
  // SwiGLU, ffn = 3 h, 2 of 4 heads for keys and values, no dropout, in units of s b h = 1024:
  // input, middle and two norms 4 x 2, q 2, k and v 2 x 1, attended 2, gate and up 2 x 6, activated 6 = 32;
  // probabilities 4096
  Job job = dropout_job();
  job.training.dropout = 0;
  job.model = tiny_llama();
  EXPECT_EQ(layer_bytes(job), 32768 + 4096 + kStatistics);
}

TEST(Frames, OfOneForwardOneBackwardHoldTheMicroBatchesInFlight) {
  // p = 4, m = 8: stage i holds p - i frames.
  Job job = tiny_job();
  job.plan.pipeline = 4;
  const Program program = lowered(job);
  for (int stage = 0; stage < 4; ++stage) {
    const Role& role = program.roles[static_cast<std::size_t>(stage)];
    EXPECT_EQ(role.chunks[0].frames, 4 - stage);
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(role.chunks[0].kind)];
    EXPECT_EQ(role.bytes[kFrame], kind.bytes[kFrame] * (4 - stage));
  }
}

TEST(Frames, OfGpipeHoldEveryMicroBatch) {
  Job job = tiny_job();
  job.plan.pipeline = 4, job.plan.schedule = Schedule::kGpipe;
  for (const Role& role : lowered(job).roles) EXPECT_EQ(role.chunks[0].frames, 8);
}

TEST(RankMemory, OfTheParametersGradientsAndStateByPrecision) {
  // 4 layers x 12,704 + embeddings 2,560 + final norm 64 = 53,440 numbers, each part a multiple of 16.
  Job job = tiny_job();
  const auto bytes = [&](Space space) { return lowered(job).roles[0].bytes[static_cast<std::size_t>(space)]; };
  const std::int64_t n = 53440, as_head = 64 * 32;  // the head's use of the tied embedding has a gradient of its own
  EXPECT_EQ(bytes(Space::kParameter), 4 * n);
  EXPECT_EQ(bytes(Space::kGradient), 4 * (n + as_head));
  EXPECT_EQ(bytes(Space::kOptimizer), 8 * n);  // two moments
  job.plan.precision = DType::kBf16;
  EXPECT_EQ(bytes(Space::kParameter), 2 * n);
  EXPECT_EQ(bytes(Space::kGradient), 4 * (n + as_head));
  EXPECT_EQ(bytes(Space::kOptimizer), 12 * n);  // and the master copy
  // Megatron's README: 18 bytes a parameter with bf16 and fp32 gradients, 20 with fp16. The vocabulary pads from 64 to
  // 128.
  job.plan.stack = "megatron";
  const std::int64_t padded = n + as_head;
  const auto state = [&] { return bytes(Space::kParameter) + bytes(Space::kGradient) + bytes(Space::kOptimizer); };
  EXPECT_EQ(state(), 18 * padded);
  job.plan.precision = DType::kFp16;
  EXPECT_EQ(state(), 20 * padded);
}

TEST(RankMemory, TotalIsTheSumOfTheSpacesAndChunksLieApart) {
  Job job = tiny_job();
  job.plan.pipeline = 2, job.plan.virtual_stages = 2, job.plan.schedule = Schedule::kInterleaved;
  const Program program = lowered(job);
  const Role& role = program.roles[0];
  std::int64_t sum = 0;
  for (const std::int64_t bytes : role.bytes) sum += bytes;
  EXPECT_EQ(role.total_bytes(), sum);
  const auto parameter = static_cast<std::size_t>(Space::kParameter);
  const ChunkTemplate& first = program.kinds[static_cast<std::size_t>(role.chunks[0].kind)];
  EXPECT_EQ(role.chunks[1].base[parameter], first.bytes[parameter]);
  EXPECT_EQ(role.chunks[1].base[kFrame], first.bytes[kFrame] * role.chunks[0].frames);
  EXPECT_EQ(role.chunks[1].base[static_cast<std::size_t>(Space::kWorkspace)], 0);
}

}  // namespace
}  // namespace trivium::program
