// Layers of several kinds: which there are, how many of each, and which runs of them are alike.
#include <gtest/gtest.h>

#include "models/model.h"

namespace trivium::models {
namespace {

Model every_third_a_mixture(std::int64_t layers) {
  Model model;
  model.layers = layers;
  model.experts = Experts{.count = 4, .top_k = 1, .every = 3};
  return model;
}

TEST(LayerKinds, OfAModelOfLikeLayersThereIsOne) {
  Model model;
  model.layers = 5;
  ASSERT_EQ(layer_kinds(model).size(), 1u);
  EXPECT_EQ(layer_kinds(model)[0].count, 5);
  EXPECT_EQ(first_alike(model, 3, 2), 0);
}

// Layers 2 and 5 of 0 to 7.
TEST(LayerKinds, AreCountedInTheOrderOfTheirFirst) {
  const auto kinds = layer_kinds(every_third_a_mixture(8));
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].kind, LayerKind{});
  EXPECT_EQ(kinds[0].first, 0);
  EXPECT_EQ(kinds[0].count, 6);
  EXPECT_EQ(kinds[1].kind, LayerKind{.mixture = true});
  EXPECT_EQ(kinds[1].first, 2);
  EXPECT_EQ(kinds[1].count, 2);
}

// Layers 2, 3 and 5 of 0 to 5 have windows: from layer 2 on, but for every fifth.
TEST(LayerKinds, WindowsMayBeginLaterAndLeaveOutEveryFewLayers) {
  Model model;
  model.layers = 6;
  model.window = Window{.keys = 8, .first_layer = 2, .full_every = 5};
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < 6; ++layer) windows.push_back(model.layer_kind(layer).window);
  EXPECT_EQ(windows, (std::vector<std::int64_t>{0, 0, 8, 8, 0, 8}));
  ASSERT_EQ(layer_kinds(model).size(), 2u);
  EXPECT_EQ(layer_kinds(model)[1].count, 3);
}

// Heads of layers that see all keys may not turn, and are not normalised there then.
TEST(LayerKinds, FullLayersMayHaveNoPositions) {
  Model model;
  model.layers = 4;
  model.positions = Positions::kRotary;
  model.plain_head_norms = true;
  model.window = Window{.keys = 8, .full_every = 4, .chunked = true, .plain_full = true};
  EXPECT_TRUE(model.turns(model.layer_kind(2)));
  EXPECT_TRUE(model.norms_heads(model.layer_kind(2)));
  EXPECT_FALSE(model.turns(model.layer_kind(3)));
  EXPECT_FALSE(model.norms_heads(model.layer_kind(3)));
}

// Of 20 tokens chunks of 8 see 4 in the mean, the last of 4 see 2: (8 · 4 + 8 · 4 + 4 · 2) / 20.
TEST(LayerKinds, ChunksSeeTheTrianglesOnTheDiagonal) {
  EXPECT_EQ(keys_seen(16, 8, true), 4);
  EXPECT_NEAR(keys_seen(20, 8, true), 3.6, 1e-12);
  EXPECT_EQ(keys_seen(8, 8, true), 4);
}

// Dense, dense, mixture, ...: one layer from 4 on is as layer 0, two are as 1 and 2, and three from 5 on as 2, 3 and 4.
TEST(LayerKinds, RunsOfEqualKindsBeginWhereTheFirstOfThemDoes) {
  const Model model = every_third_a_mixture(9);
  EXPECT_EQ(first_alike(model, 4, 1), 0);
  EXPECT_EQ(first_alike(model, 4, 2), 1);
  EXPECT_EQ(first_alike(model, 5, 3), 2);
}

}  // namespace
}  // namespace trivium::models
