// Rules of check that concern pipeline, batch and devices.
#include <gtest/gtest.h>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

/// "rule: reason", or "fits".
std::string verdict_of(const Job& job, int ranks = 0) {
  const auto no = check(job, ranks);
  return no ? no->rule + ": " + no->reason : "fits";
}

Job with(auto change) {
  Job job = tiny_job();
  change(job);
  return job;
}

TEST(CheckPipeline, EveryChunkNeedsALayer) {
  EXPECT_EQ(verdict_of(with([](Job& j) { j.plan.pipeline = 5; })),
            "layers-fill-stages: 4 layers cannot fill pipeline 5 x virtual_stages 1 = 5 chunks; where embedding and "
            "head have chunks to themselves, stage_layers says it: 0,1,…,1,0");
  EXPECT_EQ(verdict_of(with([](Job& j) {
              j.plan.pipeline = 2, j.plan.virtual_stages = 3, j.plan.schedule = Schedule::kInterleaved;
            })),
            "layers-fill-stages: 4 layers cannot fill pipeline 2 x virtual_stages 3 = 6 chunks; where embedding and "
            "head have chunks to themselves, stage_layers says it: 0,1,…,1,0");
}

// Regression: 2^20 stages x 2^13 virtual stages overflowed to 0 chunks.
TEST(CheckPipeline, ManyChunksDoNotOverflow) {
  EXPECT_EQ(verdict_of(with([](Job& j) {
              j.plan.pipeline = 1 << 20, j.plan.virtual_stages = 1 << 13, j.plan.schedule = Schedule::kInterleaved;
            })),
            "layers-fill-stages: 4 layers cannot fill pipeline 1048576 x virtual_stages 8192 = 8589934592 chunks");
}

TEST(CheckPipeline, VirtualStagesAndTheInterleavedScheduleNeedEachOther) {
  EXPECT_EQ(verdict_of(with([](Job& j) { j.plan.pipeline = 2, j.plan.virtual_stages = 2; })),
            "interleaved-needs-virtual-stages: virtual_stages 2 with schedule 1f1b: virtual stages and the interleaved "
            "schedule need each other");
  EXPECT_EQ(verdict_of(with([](Job& j) { j.plan.pipeline = 2, j.plan.schedule = Schedule::kInterleaved; })),
            "interleaved-needs-virtual-stages: virtual_stages 1 with schedule interleaved: virtual stages and the "
            "interleaved schedule need each other");
  EXPECT_EQ(verdict_of(with([](Job& j) { j.plan.virtual_stages = 2, j.plan.schedule = Schedule::kInterleaved; })),
            "virtual-stages-need-pipeline: virtual_stages above 1 need pipeline 2 or more");
}

TEST(CheckPipeline, StageLayersMustMatchStagesAndLayers) {
  const auto layers = [](std::vector<int> counts) {
    return with([&](Job& j) { j.plan.pipeline = 2, j.plan.stage_layers = counts; });
  };
  EXPECT_EQ(verdict_of(layers({1, 1, 2})),
            "stage-layers-count: stage_layers has 3 entries; pipeline x virtual_stages is 2");
  EXPECT_EQ(verdict_of(layers({0, 4})), "fits");  // the embedding alone
  EXPECT_EQ(verdict_of(with([](Job& j) {
              j.plan.pipeline = 3, j.plan.stage_layers = {2, 0, 2};
            })),
            "stage-layers-positive: every entry of stage_layers must be 1 or more, the first and the last 0 or more");
  EXPECT_EQ(verdict_of(layers({4, 0})), "fits");  // the head alone
  EXPECT_EQ(verdict_of(with([](Job& j) {
              j.plan.pipeline = 2, j.plan.stage_layers = {0, 4}, j.plan.schedule = Schedule::kZeroBubble;
            })),
            "stage_layers-supported: stage_layers is not implemented: schedule zero_bubble splits the backward, of "
            "which an embedding alone has only one half; give the first chunk a layer");
  EXPECT_EQ(verdict_of(layers({5, -1})).substr(0, 21), "stage-layers-positive");
  EXPECT_EQ(verdict_of(layers({1, 2})), "stage-layers-sum: stage_layers add up to 3, the model has 4 layers");
  EXPECT_EQ(verdict_of(layers({1, 3})), "fits");
}

TEST(CheckPipeline, StageRecomputeHasOneEntryForEveryChunk) {
  const std::string verdict = verdict_of(with([](Job& j) {
    j.plan.pipeline = 2;
    j.plan.stage_recompute = {Recompute::kFull};
  }));
  EXPECT_EQ(verdict.substr(0, verdict.find(':')), "stage-recompute-count");
  EXPECT_NE(verdict.find(" 1 entries"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find(" 2"), std::string::npos) << verdict;
}

TEST(CheckBatch, IsAMultipleOfReplicasTimesMicroBatch) {
  EXPECT_EQ(verdict_of(with([](Job& j) { j.plan.data = 2, j.plan.micro_batch = 3; })),
            "batch-divides: global_batch 8 is not a multiple of data 2 x micro_batch 3 = 6");
}

TEST(CheckBatch, InterleavedRunsInRoundsOfThePipeline) {
  EXPECT_EQ(verdict_of(with([](Job& j) {
              j.model.layers = 6, j.plan.pipeline = 3, j.plan.virtual_stages = 2,
              j.plan.schedule = Schedule::kInterleaved;
            })),
            "interleaved-rounds: the interleaved schedule needs micro-batches in multiples of pipeline 3; there are 8");
}

// Regression: frames are numbered in 16 bits, and GPipe with more micro-batches wrapped around.
TEST(CheckBatch, MicroBatchesFitTheNumbersOfFrames) {
  EXPECT_EQ(verdict_of(with([](Job& j) { j.training.global_batch = 32768; })),
            "micro-batches-in-range: 32768 micro-batches a step and replica are more than 32767");
  EXPECT_EQ(verdict_of(with([](Job& j) { j.training.global_batch = 32767; })), "fits");
}

TEST(CheckBatch, LearnedPositionsEnd) {
  EXPECT_EQ(verdict_of(with([](Job& j) { j.training.sequence = 17; })),
            "sequence-has-positions: sequence 17 is longer than the 16 learned positions of tiny");
  EXPECT_EQ(verdict_of(with([](Job& j) { j.model = tiny_llama(), j.training.sequence = 17; })), "fits");
}

TEST(CheckDevices, AreAsManyAsRanks) {
  const Job job = with([](Job& j) { j.plan.tensor = j.plan.pipeline = j.plan.data = 2; });
  EXPECT_EQ(verdict_of(job, 4),
            "ranks-match: tensor 2 x context 1 x pipeline 2 x data 2 = 8 ranks; there are 4 devices");
  EXPECT_EQ(verdict_of(job, 8), "fits");
  EXPECT_EQ(verdict_of(job), "fits");
}

}  // namespace
}  // namespace trivium::program
