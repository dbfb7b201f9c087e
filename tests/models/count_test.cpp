#include <gtest/gtest.h>

#include "models/load.h"
#include "models/model.h"

namespace trivium::models {
namespace {

/// Two layers, width 8, everything small enough to count by hand.
Model small() {
  Model model;
  model.layers = 2;
  model.hidden = 8;
  model.heads = 4;
  model.kv_heads = 4;
  model.head_dim = 2;
  model.ffn_hidden = 32;
  model.vocab = 10;
  model.max_sequence = 6;
  return model;
}

TEST(ParameterCount, CountsEveryPartOfASmallGpt) {
  const ParameterCount count = count_parameters(small());
  EXPECT_EQ(count.token_embedding, 80);     // 10 x 8
  EXPECT_EQ(count.position_embedding, 48);  // 6 x 8
  EXPECT_EQ(count.attention, 576);          // 2 layers x (q, k, v, o: 4 x (8 x 8 + 8))
  EXPECT_EQ(count.mlp, 1104);               // 2 layers x (8 x 32 + 32 + 32 x 8 + 8)
  EXPECT_EQ(count.norms, 80);               // (2 layers x 2 + 1 final) x (scale 8 + shift 8)
  EXPECT_EQ(count.head, 0);                 // tied
  EXPECT_EQ(count.total, 1888);             // their sum
  EXPECT_EQ(count.active, 1888);
}

TEST(ParameterCount, UntiedHeadIsAMatrixOfItsOwn) {
  Model model = small();
  model.tied_embeddings = false;
  EXPECT_EQ(count_parameters(model).head, 80);
  EXPECT_EQ(count_parameters(model).total, 1968);  // 1888 + 80
}

TEST(ParameterCount, SharedKeysAndValuesAreNarrower) {
  Model model = small();
  model.kv_heads = 2;  // k and v are 4 wide: q 8x8+8, k and v 2 x (8x4+4), o 8x8+8 = 72 + 72 + 72
  EXPECT_EQ(count_parameters(model).attention, 432);
  model.qkv_bias = false;  // 16 fewer in each of two layers
  EXPECT_EQ(count_parameters(model).attention, 400);
  model.linear_bias = false;  // the output projection's 8 in each
  EXPECT_EQ(count_parameters(model).attention, 384);
}

TEST(ParameterCount, HeadDimensionMayDifferFromHiddenOverHeads) {
  Model model = small();
  model.head_dim = 4;  // 16 wide: q, k, v 3 x (8 x 16 + 16), o 16 x 8 + 8 = 432 + 136 = 568 per layer
  EXPECT_EQ(count_parameters(model).attention, 1136);
}

TEST(ParameterCount, GatedMlpHasThreeMatrices) {
  Model model = small();
  model.activation = Activation::kSwiglu;  // 3 x 8 x 32 + biases 32 + 32 + 8 = 840 per layer
  EXPECT_EQ(count_parameters(model).mlp, 1680);
  model.linear_bias = false;
  EXPECT_EQ(count_parameters(model).mlp, 1536);
}

TEST(ParameterCount, ParallelBlockHasOneNormUnlessNotShared) {
  Model model = small();
  model.parallel_block = true;
  EXPECT_EQ(count_parameters(model).norms, 48);  // (2 x 1 + 1) x 16
  model.shared_norm = false;
  EXPECT_EQ(count_parameters(model).norms, 80);  // (2 x 2 + 1) x 16
  model.norm = Norm::kRmsNorm;                   // no shift
  EXPECT_EQ(count_parameters(model).norms, 40);
}

TEST(ParameterCount, OnlyLearnedPositionsAreParameters) {
  Model model = small();
  model.positions = Positions::kRotary;
  EXPECT_EQ(count_parameters(model).position_embedding, 0);
}

TEST(ParameterCount, ExpertsAreCountedAllAndActive) {
  Model model = small();
  model.experts = Experts{.count = 4, .top_k = 1, .every = 2, .capacity_factor = 1.25};
  const ParameterCount count = count_parameters(model);
  // One dense layer 552; one mixture 4 x 552 + router 4 x 8 and its bias of 4 = 2244.
  EXPECT_EQ(count.mlp, 2796);
  EXPECT_EQ(count.total, 3580);   // 1888 - 1104 + 2796
  EXPECT_EQ(count.active, 1924);  // three experts less: 3580 - 1656
}

TEST(FlopsPerToken, Gpt2SmallFollowsThePublishedForm) {
  // l = 12, h = 768, s = 1024, V = 50257:
  //   72 l h^2 = 509,607,936 · 12 l s h = 113,246,208 · 6 h V = 231,584,256
  const FlopsPerToken flops = flops_per_token(load_model("gpt2-124m"), 1024);
  EXPECT_EQ(flops.model, 854438400.0);  // the sum
  // 96 l h^2 (1 + s/(6h) + V/(16 l h)) = 4/3 of the first two, and the third
  EXPECT_EQ(flops.hardware_full, 1062056448.0);
  // 72 l h^2 (1 + s/(3h) + V/(12 l h)): the second twice
  EXPECT_EQ(flops.hardware_selective, 967684608.0);
}

TEST(FlopsPerToken, HeadCountDoesNotMatter) {
  Model model = load_model("gpt2-124m");
  model.heads = model.kv_heads = 6;
  model.head_dim = 128;
  EXPECT_EQ(flops_per_token(model, 1024).model, 854438400.0);
}

TEST(FlopsPerToken, UntyingTheHeadChangesNothing) {
  Model model = load_model("gpt2-124m");
  model.tied_embeddings = false;
  EXPECT_EQ(flops_per_token(model, 1024).model, 854438400.0);
}

TEST(FlopsPerToken, SelectiveRecomputationReproducesPublishedHfuOverMfu) {
  // Korthikanti et al. 2022, Table 5, 175B: HFU 52.8%, MFU 51.4%. Both are printed to 0.1, so the ratio is known to
  // 0.002.
  const FlopsPerToken flops = flops_per_token(load_model("gpt3-175b"), 2048);
  EXPECT_NEAR(flops.hardware_selective / flops.model, 52.8 / 51.4, 0.002);
}

TEST(FlopsPerToken, GroupedQueriesAndGatedMlpAreCountedOpByOp) {
  // LLaMA-2 70B, s = 4096, forward of one layer:
  //   q and o 2 x 2 x 8192 x 8192 = 268,435,456 · k and v 2 x 2 x 8192 x 1024 = 33,554,432
  //   MLP 3 x 2 x 8192 x 28672 = 1,409,286,144 · core 4 x 4096 x 8192 = 134,217,728 · sum 1,845,493,760
  // 80 layers 147,639,500,800 and logits 2 x 8192 x 32000 = 524,288,000: 148,163,788,800
  const FlopsPerToken flops = flops_per_token(load_model("llama2-70b"), 4096);
  EXPECT_EQ(flops.model, 444491366400.0);          // x 3
  EXPECT_EQ(flops.hardware_full, 592130867200.0);  // and the layers once more
  // 3 x 80 x 134,217,728 = 32,212,254,720 more
  EXPECT_EQ(flops.hardware_selective, 476703621120.0);
}

TEST(FlopsPerToken, MixturesCountTheRouterAndTheVisitedExperts) {
  // Mixtral 8x7B, s = 4096, forward of one layer:
  //   q and o 67,108,864 · k and v 16,777,216 · router 2 x 4096 x 8 = 65,536
  //   two experts 2 x 3 x 2 x 4096 x 14336 = 704,643,072 · core 4 x 4096 x 4096 = 67,108,864 · sum 855,703,552
  // 32 layers 27,382,513,664 and logits 2 x 4096 x 32000 = 262,144,000: 27,644,657,664
  EXPECT_EQ(flops_per_token(load_model("mixtral-8x7b"), 4096).model, 82933972992.0);
}

// The small model with s = 6, its second layer with a window of 2 keys: of the square's 36, twice the band's
// 2 x 6 - 2 = 10. Core 4 x 6 x 8 = 192 and 4 x 20 / 6 x 8 = 106.67 instead of twice 192; forward without a window
// 2 x (512 + 192 + 1024) + 160 = 3616, three times that 10,848, and 3 x 85.33 less with it.
TEST(FlopsPerToken, WindowsCountTheirBand) {
  Model model = small();
  EXPECT_EQ(flops_per_token(model, 6).model, 10848.0);
  model.window = Window{.keys = 2, .first_layer = 1};
  EXPECT_NEAR(flops_per_token(model, 6).model, 10848 - 256, 1e-9);
  model.window->keys = 6;
  EXPECT_EQ(flops_per_token(model, 6).model, 10848.0);
}

TEST(FlopsPerToken, DenseLayersBetweenMixturesVisitOneMlp) {
  // The small model with s = 6: attention 4 x 2 x 8 x 8 = 512, core 4 x 6 x 8 = 192, MLP 2 x 2 x 8 x 32 = 1024 a layer;
  // the mixture layer visits two experts after a router of 2 x 8 x 4 = 64; logits 2 x 8 x 10 = 160.
  // Forward: 2 x (512 + 192) + 1024 + (64 + 2048) + 160 = 4704.
  Model model = small();
  model.experts = Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 1.25};
  EXPECT_EQ(flops_per_token(model, 6).model, 14112.0);
}

// A module in addition to the small model's layers of 288 + 552 + 32: norms of its input, of embeddings and of its own
// output, 3 x 16, and a projection of 2 x 8 x 8. Forward FLOPs of one token with s = 6: its layer's 512 + 192 + 1024,
// the projection's 2 x 16 x 8 = 256 and logits of 160 more, three times; once more the layer's where it is recomputed.
TEST(MultiToken, ModulesAreLayersWithAProjectionAndLogitsOfTheirOwn) {
  Model model = small();
  model.positions = Positions::kRotary;
  const std::int64_t plain = count_parameters(model).total;
  const FlopsPerToken without = flops_per_token(model, 6);
  model.mtp = MultiToken{.depth = 1};
  EXPECT_EQ(count_parameters(model).mtp, 872 + 48 + 128);
  EXPECT_EQ(count_parameters(model).total, plain + 1048);
  EXPECT_EQ(flops_per_token(model, 6).model, without.model + 3 * (1728 + 256 + 160));
  EXPECT_EQ(flops_per_token(model, 6).hardware_full, without.hardware_full + 3 * (1728 + 256 + 160) + 1728);
  model.mtp->depth = 3;
  EXPECT_EQ(count_parameters(model).mtp, 3 * 1048);
}

// README_WEIGHTS.md of the release: 11.5B parameters of its own, and 0.9B each of the embedding and the output matrix
// that it shares; with these the file has 685B.
TEST(MultiToken, DeepSeekV3sModuleHasThePrintedSize) {
  Model model = load_model("deepseek-v3");
  const ParameterCount plain = count_parameters(model);
  model.mtp = MultiToken{};
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.mtp, 11610068224);
  EXPECT_EQ(count.total, plain.total + count.mtp);
  EXPECT_NEAR(static_cast<double>(count.total + count.token_embedding + count.head) / 1e9, 685, .6);
  // Eight of 256 experts of 3 x 7168 x 2048.
  EXPECT_EQ(count.active - plain.active, count.mtp - std::int64_t{248} * 3 * 7168 * 2048);
}

}  // namespace
}  // namespace trivium::models
