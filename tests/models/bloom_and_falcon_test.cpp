// Families with ALiBi. The expected totals are those of the published weights.
#include <gtest/gtest.h>

#include <string>

#include "tests/models/read_config.h"

namespace trivium::models {
namespace {

TEST(HuggingFace, FalconsOfBothArchitecturesAreRead) {
  EXPECT_EQ(total_of(R"({"model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544,
      "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true, "parallel_attn": true, "bias": false,
      "alibi": false, "new_decoder_architecture": false})"),
            6921720704);
  EXPECT_EQ(total_of(R"({"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192,
      "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "bias": false, "alibi": false,
      "new_decoder_architecture": true})"),
            41303293952);
  // Falcon-RW-1B: biases, ALiBi, sequential: 24 x (12 x 2048^2 + 13 x 2048) + 50304 x 2048 + 2 x 2048
  EXPECT_EQ(total_of(R"({"model_type": "falcon", "num_hidden_layers": 24, "hidden_size": 2048,
      "num_attention_heads": 32, "vocab_size": 50304, "multi_query": false, "parallel_attn": false, "bias": true,
      "alibi": true, "new_decoder_architecture": false})"),
            1311625216);
}

// Released weights of bigscience/bloom-560m, bloom-7b1 and bloom: 24, 30 and 70 layers of 12 h^2 + 13 h, the embedding
// of 250,880 words, the norms behind it and at the end. The last file's names are those of its first release.
TEST(HuggingFace, BloomsAreRead) {
  EXPECT_EQ(total_of(R"({"model_type": "bloom", "n_layer": 24, "hidden_size": 1024, "n_head": 16,
      "vocab_size": 250880, "seq_length": 2048, "offset_alibi": 100, "pretraining_tp": 1})"),
            559214592);
  EXPECT_EQ(total_of(R"({"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32,
      "vocab_size": 250880, "attention_softmax_in_fp32": true, "unk_token_id": 0, "slow_but_exact": false})"),
            7069016064);
  const char* whole = R"({"model_type": "bloom", "n_layer": 70, "n_embed": 14336, "num_attention_heads": 112,
      "vocab_size": 250880, "apply_residual_connection_post_layernorm": false, "layer_norm_epsilon": 1e-05,
      "masked_softmax_fusion": true, "skip_bias_add": true, "skip_bias_add_qkv": false, "bias_dropout_fusion": true})";
  EXPECT_EQ(total_of(whole), 176247271424);
  const Model model = read(whole);
  EXPECT_EQ(model.positions, Positions::kAlibi);
  EXPECT_TRUE(model.embedding_norm);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.max_sequence, 2048);
  EXPECT_NE(message_for(R"({"model_type": "bloom", "n_layer": 1, "hidden_size": 8, "n_head": 2, "vocab_size": 9,
      "apply_residual_connection_post_layernorm": true})")
                .find("apply_residual_connection_post_layernorm"),
            std::string::npos);
}

}  // namespace
}  // namespace trivium::models
