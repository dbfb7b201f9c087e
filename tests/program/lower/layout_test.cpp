#include "program/lower/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::ElementsAre;

Job with_chunks(int layers, int pipeline) {
  Job job = tiny_job(layers);
  job.plan.pipeline = pipeline;
  return job;
}

TEST(ChunkLayers, DivideEvenly) { EXPECT_THAT(chunk_layers(with_chunks(12, 4)), ElementsAre(3, 3, 3, 3)); }

TEST(ChunkLayers, PutTheRemainderBehindTheFirstChunk) {
  EXPECT_THAT(chunk_layers(with_chunks(7, 3)), ElementsAre(2, 3, 2));
  EXPECT_THAT(chunk_layers(with_chunks(11, 4)), ElementsAre(2, 3, 3, 3));
}

TEST(ChunkLayers, TakeThePlansOwnCounts) {
  Job job = with_chunks(7, 3);
  job.plan.stage_layers = {1, 2, 4};
  EXPECT_THAT(chunk_layers(job), ElementsAre(1, 2, 4));
}

TEST(ChunkLayers, MegatronDeepSpeedCountsTheEndsAsALayerEach) {
  // BLOOM: 70 layers and two ends are 72 = 12 x 6; the first and last stage give one of their six to an end.
  Job job = with_chunks(70, 12);
  job.plan.stack = "megatron-deepspeed";
  EXPECT_THAT(chunk_layers(job), ElementsAre(5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5));
  job.plan.pipeline = 10;  // 70 = 10 x 7 divides without that
  EXPECT_THAT(chunk_layers(job), ElementsAre(7, 7, 7, 7, 7, 7, 7, 7, 7, 7));
}

TEST(ChunkLayers, AlwaysHoldEveryLayerAndNeverNone) {
  for (const char* stack : {"trivium", "megatron-deepspeed"}) {
    for (int layers = 1; layers <= 40; ++layers) {
      for (int pipeline = 1; pipeline <= layers; ++pipeline) {
        Job job = with_chunks(layers, pipeline);
        job.plan.stack = stack;
        const auto counts = chunk_layers(job);
        int sum = 0;
        for (const int n : counts) sum += n;
        ASSERT_EQ(sum, layers);
        ASSERT_GE(*std::min_element(counts.begin(), counts.end()), 1) << layers << " over " << pipeline;
      }
    }
  }
}

TEST(PaddedVocabulary, IsAMultipleOfTensorAndOfTheStacksOwn) {
  Job job = tiny_job();
  job.model.vocab = 50257;
  EXPECT_EQ(padded_vocabulary(job), 50257);
  job.plan.tensor = 4;
  EXPECT_EQ(padded_vocabulary(job), 50260);  // 4 x 12565
  job.plan.stack = "megatron";
  EXPECT_EQ(padded_vocabulary(job), 50688);  // Megatron: multiple of 128 x 4 = 512: 99 x 512
  job.plan.tensor = 1;
  EXPECT_EQ(padded_vocabulary(job), 50304);  // 393 x 128, the number everyone knows
}

TEST(LayerParameters, ReplicatedOnesComeFirst) {
  Job job = tiny_job();
  job.plan.tensor = 2;
  for (const auto& model : {tiny_model(), tiny_llama()}) {
    job.model = model;
    bool split_seen = false;
    for (const Parameter& p : layer_parameters(job, 0)) {
      if (p.split != Split::kReplicated) split_seen = true;
      EXPECT_FALSE(split_seen && p.split == Split::kReplicated) << p.name;
    }
  }
}

TEST(LayerParameters, OnlyMatricesDecay) {
  for (const Parameter& p : layer_parameters(tiny_job(), 0)) EXPECT_EQ(p.decayed, p.rows > 1) << p.name;
}

TEST(LayerParameters, ResidualProjectionsStartSmaller) {
  // GPT-2: 0.02 / sqrt(2 x 4 layers) = 0.02 / 2.8284271 = 0.00707107
  for (const Parameter& p : layer_parameters(tiny_job(4), 0)) {
    const bool projects = p.name == "h.{}.attn.c_proj.weight" || p.name == "h.{}.mlp.c_proj.weight";
    EXPECT_NEAR(p.init_std, projects ? 0.00707107 : p.decayed ? 0.02 : 0, 1e-8) << p.name;
    EXPECT_EQ(p.init_value, p.name == "h.{}.ln_1.weight" || p.name == "h.{}.ln_2.weight" ? 1 : 0) << p.name;
  }
}

// But for key heads that several ranks hold: 2 over 4 ranks are there twice.
TEST(GlobalPlace, LocalPiecesTileEveryGlobalMatrixExactlyOnce) {
  for (const auto& model : {tiny_model(), tiny_llama()}) {
    for (const int tensor : {1, 2, 4}) {
      Job job = tiny_job();
      job.model = model;
      job.model.vocab = 61;  // pads to 62 and 64
      job.plan.tensor = tensor;
      auto parameters = layer_parameters(job, 0);
      for (auto& p : embedding_parameters(job)) parameters.push_back(p);
      for (auto& p : head_parameters(job, false)) parameters.push_back(p);
      for (const Parameter& p : parameters) {
        std::map<std::pair<std::int64_t, std::int64_t>, int> covered;
        for (int rank = 0; rank < tensor; ++rank) {
          for (std::int64_t row = 0; row < p.local_rows; ++row) {
            for (std::int64_t column = 0; column < p.local_columns; ++column) {
              if (const auto at = global_place(p, row, column, rank, tensor)) ++covered[*at];
            }
          }
        }
        const std::int64_t query = p.sections.empty() ? p.columns : p.sections[0];
        ASSERT_EQ(static_cast<std::int64_t>(covered.size()), p.rows * p.columns) << p.name;
        for (const auto& [at, count] : covered) {
          const bool of_keys = p.key_ranks > 1 && at.second >= query;
          ASSERT_EQ(count, p.split == Split::kReplicated ? tensor : of_keys ? 2 : 1) << p.name;
          ASSERT_TRUE(at.first >= 0 && at.first < p.rows && at.second >= 0 && at.second < p.columns) << p.name;
        }
      }
    }
  }
}

TEST(GlobalPlace, QueriesKeysAndValuesAreCutOneByOne) {
  // 4 query and 2 key-value heads of 8: q 32 | k 16 | v 16 columns. Rank 1 of 2 holds q 16..31, k 32+8.., v 48+8..
  Job job = tiny_job();
  job.model = tiny_llama();
  job.plan.tensor = 2;
  const auto parameters = layer_parameters(job, 0);
  const auto qkv = std::find_if(parameters.begin(), parameters.end(),
                                [](const Parameter& p) { return p.name == "h.{}.attn.c_attn.weight"; });
  ASSERT_NE(qkv, parameters.end());
  EXPECT_EQ(qkv->local_columns, 32);
  EXPECT_EQ(global_place(*qkv, 5, 0, 1, 2), (std::pair<std::int64_t, std::int64_t>{5, 16}));
  EXPECT_EQ(global_place(*qkv, 5, 15, 1, 2), (std::pair<std::int64_t, std::int64_t>{5, 31}));
  EXPECT_EQ(global_place(*qkv, 5, 16, 1, 2), (std::pair<std::int64_t, std::int64_t>{5, 40}));
  EXPECT_EQ(global_place(*qkv, 5, 24, 1, 2), (std::pair<std::int64_t, std::int64_t>{5, 56}));
}

// One head of 8 each for queries, k and v on every rank: ranks 2 and 3 hold the second key head.
TEST(GlobalPlace, FewerKeyHeadsThanRanksAreHeldByNeighbours) {
  Job job = tiny_job();
  job.model = tiny_llama();
  job.plan.tensor = 4;
  EXPECT_EQ(key_ranks(job), 2);
  const auto parameters = layer_parameters(job, 0);
  const auto qkv = std::find_if(parameters.begin(), parameters.end(),
                                [](const Parameter& p) { return p.name == "h.{}.attn.c_attn.weight"; });
  ASSERT_NE(qkv, parameters.end());
  EXPECT_EQ(qkv->local_columns, 24);
  EXPECT_EQ(qkv->key_columns, 16);
  for (const int rank : {2, 3}) {
    EXPECT_EQ(global_place(*qkv, 5, 0, rank, 4), (std::pair<std::int64_t, std::int64_t>{5, rank * 8}));
    EXPECT_EQ(global_place(*qkv, 5, 8, rank, 4), (std::pair<std::int64_t, std::int64_t>{5, 40}));
    EXPECT_EQ(global_place(*qkv, 5, 23, rank, 4), (std::pair<std::int64_t, std::int64_t>{5, 63}));
  }
}

TEST(GlobalName, NumbersTheLayerInTheModel) {
  const auto parameters = layer_parameters(tiny_job(), 1);
  EXPECT_EQ(global_name(parameters.front(), 6), "h.7.ln_1.weight");
  EXPECT_EQ(global_name(embedding_parameters(tiny_job()).back(), 6), "wte.weight");
}

TEST(HeadParameters, ATiedHeadOfAnotherChunkHoldsACopy) {
  const auto copy = head_parameters(tiny_job(), false);
  EXPECT_EQ(copy.back().name, "wte.weight");
  EXPECT_TRUE(copy.back().tied_copy);
  EXPECT_EQ(head_parameters(tiny_job(), true).back().name, "ln_f.bias");  // the embedding of its own chunk
  Job job = tiny_job();
  job.model.tied_embeddings = false;
  EXPECT_EQ(head_parameters(job, false).back().name, "lm_head.weight");
}

}  // namespace
}  // namespace trivium::program
