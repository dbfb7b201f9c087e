#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "models/load.h"

namespace trivium::models {
namespace {

using nlohmann::json;

Model read(const std::string& config) { return model_from_hugging_face(json::parse(config), "config.json"); }
std::int64_t total_of(const std::string& config) { return count_parameters(read(config)).total; }

std::string message_for(const std::string& config) {
  try {
    (void)read(config);
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    return failure.error().message;
  }
  return "nothing thrown";
}

// The expected totals are those of the published weights.

TEST(HuggingFace, Gpt2IsTheShippedOne) {
  EXPECT_EQ(total_of(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": null,
                         "n_positions": 1024, "vocab_size": 50257, "activation_function": "gelu_new"})"),
            124439808);
}

TEST(HuggingFace, GptNeoxKeepsTwoNormsInItsParallelBlock) {
  const Model model = read(R"({"model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144,
      "num_attention_heads": 64, "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048,
      "hidden_act": "gelu_fast", "tie_word_embeddings": false})");
  EXPECT_TRUE(model.parallel_block);
  EXPECT_EQ(model.norms_per_layer(), 2);
  EXPECT_EQ(model.positions, Positions::kRotary);
  // GPT-NeoX-20B: 44 x (12 x 6144^2 + 13 x 6144) + 2 x 50432 x 6144 + 2 x 6144
  EXPECT_EQ(count_parameters(model).total, 20554567680);
}

TEST(HuggingFace, GptNeoxWithoutParallelResidualIsSequential) {
  const Model model = read(R"({"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 100, "max_position_embeddings": 32,
      "use_parallel_residual": false})");
  EXPECT_FALSE(model.parallel_block);
  EXPECT_EQ(model.norms_per_layer(), 2);
}

TEST(HuggingFace, LlamaWithoutKeyHeadsHasOnePerQueryHead) {
  EXPECT_EQ(total_of(R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 2048,
      "hidden_act": "silu"})"),
            6738415616);
}

TEST(HuggingFace, MistralEndsWhereItsWindowEnds) {
  const Model model = read(R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
      "max_position_embeddings": 32768, "sliding_window": 4096, "hidden_act": "silu"})");
  EXPECT_EQ(count_parameters(model).total, 7241732096);
  EXPECT_EQ(model.max_sequence, 4096);
}

TEST(HuggingFace, Qwen2HasBiasesOnQueryKeyAndValueAlone) {
  // Qwen2-0.5B, tied
  EXPECT_EQ(total_of(R"({"model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896,
      "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
      "max_position_embeddings": 131072, "sliding_window": 131072, "use_sliding_window": false,
      "tie_word_embeddings": true})"),
            494032768);
}

TEST(HuggingFace, MixtralIsTheShippedOne) {
  const Model model = read(R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
      "max_position_embeddings": 32768, "sliding_window": null, "num_local_experts": 8, "num_experts_per_tok": 2})");
  EXPECT_EQ(count_parameters(model).active, 12879925248);
  EXPECT_EQ(model.max_sequence, 32768);
}

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

TEST(HuggingFace, UnsupportedTypesAndMissingMembersAreNamed) {
  EXPECT_EQ(message_for(R"({"model_type": "bert"})"),
            "config.json#/model_type: unknown value \"bert\"; known: gpt2, gpt_neox, llama, mistral, qwen2, mixtral, "
            "falcon");
  EXPECT_EQ(message_for(R"({"model_type": "gpt2"})"), "config.json#: missing \"n_layer\"; add it");
  EXPECT_EQ(message_for(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9,
                            "n_positions": 4, "activation_function": "silu"})"),
            "config.json#/activation_function: unsupported activation \"silu\"; supported here: gelu, relu");
  EXPECT_EQ(message_for(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
      "intermediate_size": 16, "vocab_size": 9, "max_position_embeddings": 4, "attention_bias": true})"),
            "config.json#: attention_bias and mlp_bias differ, which is not supported");
}

// What changes neither times nor sizes is not used, but a text or a negative number there shows a damaged file.
TEST(HuggingFace, MembersThatAreNotUsedKeepTheirTypes) {
  const std::string shape = R"({"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 8,
      "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 16, "vocab_size": 9,
      "max_position_embeddings": 4, )";
  EXPECT_EQ(message_for(shape + R"("rope_theta": 1e6, "rms_norm_eps": 1e-6, "sliding_window": null})"),
            "nothing thrown");
  EXPECT_EQ(message_for(shape + R"("rope_theta": "many"})"),
            "config.json#/rope_theta: expected a number, found text \"many\"");
  EXPECT_EQ(message_for(shape + R"("rms_norm_eps": -1})"), "config.json#/rms_norm_eps: must not be negative");
  EXPECT_EQ(message_for(shape + R"("sliding_window": [1]})"),
            "config.json#/sliding_window: expected a whole number, found an array");
}

TEST(HuggingFace, FilesAreToldApartByModelType) {
  const auto folder = std::filesystem::temp_directory_path() / "trivium_hugging_face_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"model_type": "gpt2", "_name_or_path": "mine", "n_layer": 2,
      "n_embd": 8, "n_head": 2, "vocab_size": 9, "n_positions": 4})";
  EXPECT_EQ(load_model((folder / "config.json").string()).name, "mine");
  EXPECT_EQ(load_model(folder.string()).layers, 2);  // a downloaded model's folder
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trivium::models
