#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/load.h"
#include "tests/input_error.h"
#include "tests/models/read_config.h"

namespace trivium::models {
namespace {

using nlohmann::json;

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

TEST(HuggingFace, MistralsLayersAllHaveItsWindow) {
  const Model model = read(R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
      "max_position_embeddings": 32768, "sliding_window": 4096, "hidden_act": "silu"})");
  EXPECT_EQ(count_parameters(model).total, 7241732096);
  EXPECT_EQ(model.max_sequence, 32768);
  EXPECT_EQ(model.window, (Window{.keys = 4096}));
  // transformers takes 4,096 where a file does not say, and none where it says null.
  const std::string rest = R"("model_type": "mistral", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 160, "vocab_size": 100,
      "max_position_embeddings": 32768})";
  EXPECT_EQ(read("{" + rest).window, (Window{.keys = 4096}));
  EXPECT_EQ(read(R"({"sliding_window": null, )" + rest).window, std::nullopt);
  EXPECT_EQ(read(R"({"sliding_window": 32768, )" + rest).window, std::nullopt);
}

// Layers are told one by one since transformers 5, before that by how many are full.
TEST(HuggingFace, WindowsAreOfTheLayersThatAreTold) {
  const std::string rest = R"(, "model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 160, "vocab_size": 100,
      "max_position_embeddings": 64, "sliding_window": 8})";
  const auto told = [&](const std::string& members) { return read("{" + members + rest).window; };
  const std::string full = R"("full_attention")", sliding = R"("sliding_attention")";
  EXPECT_EQ(told(R"("layer_types": [)" + full + ", " + full + "]"), std::nullopt);
  EXPECT_EQ(told(R"("layer_types": [)" + sliding + ", " + sliding + "]"), (Window{.keys = 8}));
  EXPECT_EQ(told(R"("layer_types": [)" + full + ", " + sliding + "]"), (Window{.keys = 8, .first_layer = 1}));
  EXPECT_EQ(told(R"("layer_types": [)" + sliding + ", " + full + "]"), (Window{.keys = 8, .full_every = 2}));
  EXPECT_EQ(told(R"("use_sliding_window": true, "max_window_layers": 1)"), (Window{.keys = 8, .first_layer = 1}));
  EXPECT_EQ(told(R"("use_sliding_window": true)"), std::nullopt);  // from layer 28 on
  EXPECT_EQ(told(R"("max_window_layers": 0)"), std::nullopt);
  EXPECT_THAT(message_for(R"({"layer_types": ["linear_attention"])" + rest), testing::HasSubstr("#/layer_types/0"));
  EXPECT_THAT(message_for(R"({"layer_types": ["full_attention"])" + rest),
              testing::HasSubstr("1 entries for 2 layers"));
}

TEST(HuggingFace, LayersThatFollowNoPatternAreRefused) {
  EXPECT_THAT(message_for(R"({"model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 160, "vocab_size": 100,
      "max_position_embeddings": 64, "sliding_window": 8,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]})"),
              testing::HasSubstr("#/layer_types: layer 3 breaks the pattern of those before"));
}

constexpr const char* kNemotron = R"("model_type": "nemotron", "num_hidden_layers": 32, "hidden_size": 6144,
      "num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 24576, "vocab_size": 256000,
      "max_position_embeddings": 4096})";

TEST(HuggingFace, NemotronIsTheShippedOne) {
  Model model = read("{" + std::string(kNemotron));
  Model shipped = load_model("nemotron4-15b");
  model.name = shipped.name, model.source = shipped.source;
  EXPECT_EQ(model, shipped);
}

TEST(HuggingFace, Phi3IsTheShippedOne) {
  Model model = read(R"({"model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072,
      "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32064,
      "max_position_embeddings": 4096, "original_max_position_embeddings": 4096, "rope_scaling": null,
      "rope_theta": 10000.0, "sliding_window": 2047, "embd_pdrop": 0.0})");
  Model shipped = load_model("phi3-mini");
  model.name = shipped.name, model.source = shipped.source;
  EXPECT_EQ(model, shipped);
}

constexpr const char* kGptOss = R"("model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
      "vocab_size": 201088, "max_position_embeddings": 131072, "initial_context_length": 4096, "rope_theta": 150000,
      "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                       "original_max_position_embeddings": 4096},
      "num_local_experts": 32, "num_experts_per_tok": 4, "experts_per_token": 4, "sliding_window": 128,
      "attention_bias": true, "hidden_act": "silu", "rms_norm_eps": 1e-05})";

TEST(HuggingFace, GptOssIsTheShippedOne) {
  Model model = read(R"({"swiglu_limit": 7.0, "tie_word_embeddings": false, )" + std::string(kGptOss));
  Model shipped = load_model("gpt-oss-20b");
  model.name = shipped.name, model.source = shipped.source;
  EXPECT_EQ(model, shipped);
  // The library's own scaling where the file has none.
  model = read(R"({"model_type": "gpt_oss", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "vocab_size": 100})");
  EXPECT_EQ(model.rotary, shipped.rotary);
  EXPECT_EQ(model.experts->count, 128);
  EXPECT_EQ(model.window, shipped.window);
}

TEST(HuggingFace, GemmasAreTheShippedOnes) {
  Model model = read(R"({"model_type": "gemma2", "num_hidden_layers": 46, "hidden_size": 4608,
      "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 36864,
      "vocab_size": 256000, "max_position_embeddings": 8192, "query_pre_attn_scalar": 144, "sliding_window": 4096,
      "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "hidden_act": "gelu_pytorch_tanh",
      "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 10000.0, "cache_implementation": "hybrid"})");
  Model shipped = load_model("gemma2-27b");
  model.name = shipped.name, model.source = shipped.source;
  EXPECT_EQ(model, shipped);
  const std::string third = R"("model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152,
      "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912,
      "vocab_size": 262144, "max_position_embeddings": 32768, "query_pre_attn_scalar": 256, "sliding_window": 512,
      "attn_logit_softcapping": null, "final_logit_softcapping": null, "sliding_window_pattern": 6)";
  shipped = load_model("gemma3-1b");
  for (const char* rotary : {R"("rope_theta": 1000000, "rope_local_base_freq": 10000, "rope_scaling": null)",
                             R"("rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000},
                                "full_attention": {"rope_type": "default", "rope_theta": 1000000}})"}) {
    model = read("{" + third + ", " + rotary + "}");
    model.name = shipped.name, model.source = shipped.source;
    EXPECT_EQ(model, shipped) << rotary;
  }
  EXPECT_THAT(message_for("{" + third + R"(, "use_bidirectional_attention": true})"),
              testing::HasSubstr("#/use_bidirectional_attention: is not supported"));
}

TEST(HuggingFace, OtherFormulasThanGptOssesAreRefused) {
  EXPECT_THAT(message_for(R"({"swiglu_limit": 5.0, )" + std::string(kGptOss)),
              testing::HasSubstr("#/swiglu_limit: is not supported but 7"));
}

TEST(HuggingFace, MembersThatMayChangeWhatIsComputedAreRefusedByName) {
  EXPECT_THAT(message_for(R"({"residual_multiplier": 0.2, )" + std::string(kNemotron)),
              testing::HasSubstr("config.json#/residual_multiplier: not known of model_type \"nemotron\": "
                                 "residual_multiplier; take out"));
  EXPECT_THAT(message_for(R"({"b": 2, "a": true, )" + std::string(kNemotron)), testing::HasSubstr(": a, b; take out"));
  const auto with = [&](const std::string& more) {
    return read_hugging_face(json::parse("{" + more + ", " + kNemotron), "config.json").ignored;
  };
  EXPECT_THAT(with(R"("residual_multiplier": null, "use_cache": true, "torch_dtype": "bfloat16")"),
              testing::ElementsAre("residual_multiplier", "torch_dtype", "use_cache"));
}

TEST(HuggingFace, Qwen2HasBiasesOnQueryKeyAndValueAlone) {
  // Qwen2-0.5B, tied
  EXPECT_EQ(total_of(R"({"model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896,
      "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
      "max_position_embeddings": 131072, "sliding_window": 131072, "use_sliding_window": false,
      "tie_word_embeddings": true})"),
            494032768);
}

TEST(HuggingFace, Qwen3NormalisesItsHeads) {
  const Model model = read(R"({"model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
      "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1000000, "tie_word_embeddings": true})");
  EXPECT_TRUE(model.head_norms);
  EXPECT_EQ(count_parameters(model).total, 596049920);  // Qwen3-0.6B
}

TEST(HuggingFace, Qwen3sMixturesAreOfEveryLayer) {
  const std::string shape = R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048,
      "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
      "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
      "max_position_embeddings": 40960)";
  EXPECT_EQ(total_of(shape + R"(, "norm_topk_prob": true, "mlp_only_layers": [], "decoder_sparse_step": 1})"),
            30532122624);  // Qwen3-30B-A3B
  EXPECT_EQ(message_for(shape + R"(, "norm_topk_prob": true, "mlp_only_layers": [3]})"),
            "config.json#/mlp_only_layers: is not supported but empty: dense layers among mixtures");
  EXPECT_FALSE(read(shape + R"(, "norm_topk_prob": false})").experts->normalised);
}

// What transformers trains: no token is dropped, and balance counts in the loss where router logits are asked for.
TEST(HuggingFace, MixturesDropNoTokenAndAreBalancedWhereTold) {
  const std::string shape = R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 16,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32, "vocab_size": 99,
      "max_position_embeddings": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02)";
  EXPECT_TRUE(read(shape + "}").experts->dropless);
  EXPECT_EQ(read(shape + "}").experts->balance_loss, 0);
  EXPECT_EQ(read(shape + R"(, "output_router_logits": true})").experts->balance_loss, 0.02);
}

/// The released description of DeepSeek-V3, with 61 layers by default, and other members appended.
std::string deepseek_v3_with(const std::string& members, int layers = 61) {
  return R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
      "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "vocab_size": 129280,
      "max_position_embeddings": 163840, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
      "n_group": 8, "topk_group": 4, "first_k_dense_replace": 3, "routed_scaling_factor": 2.5, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1,
      "scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": true, "ep_size": 1, "seq_aux": true,
      "aux_loss_alpha": 0.001, "num_nextn_predict_layers": 1, "rope_theta": 10000, "rope_scaling": {"type": "yarn",
      "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
      "original_max_position_embeddings": 4096}, "num_hidden_layers": )" +
         std::to_string(layers) + members + "}";
}

TEST(HuggingFace, DeepSeekV3IsTheShippedOne) {
  Model model = read(deepseek_v3_with("")), shipped = load_model("deepseek-v3");
  EXPECT_NEAR(model.attention_scale, shipped.attention_scale, 1e-15);
  EXPECT_EQ(model.experts->balance_loss, 0);
  model.attention_scale = shipped.attention_scale, model.experts->balance_loss = shipped.experts->balance_loss;
  model.name = shipped.name, model.source = shipped.source;
  EXPECT_EQ(model, shipped);
}

TEST(HuggingFace, ModulesOfMultiTokenPredictionAreLeftOutAndCounted) {
  const HuggingFaceModel model = read_hugging_face(json::parse(deepseek_v3_with("")), "config.json");
  EXPECT_FALSE(model.model.mtp);
  EXPECT_EQ(model.modules, 1);
}

TEST(HuggingFace, WhatDeepSeeksFilesMayNotSayIsNamed) {
  EXPECT_EQ(message_for(deepseek_v3_with(R"(, "rope_interleave": false)")),
            "config.json#/rope_interleave: is not supported but true");
  EXPECT_EQ(message_for(deepseek_v3_with(R"(, "attention_bias": true)")),
            "config.json#/attention_bias: is not supported but false");
  EXPECT_EQ(message_for(deepseek_v3_with("", 3)),
            "config.json#: dense_layers (3) is below layers (3), and stands where every is 1");
}

// Members of the released files: of the whole, and of its text model.
constexpr const char* kLlama4 = R"("model_type": "llama4_text", "attention_bias": false, "attention_chunk_size": 8192,
      "attention_dropout": 0.0, "bos_token_id": 200000, "for_llm_compressor": false, "head_dim": 128,
      "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
      "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
      "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "router_aux_loss_coef": 0.001,
      "router_jitter_noise": 0.0, "vocab_size": 202048, "_attn_implementation_autoset": true)";
const std::string kScout = std::string(kLlama4) + R"(, "max_position_embeddings": 10485760, "num_local_experts": 16,
      "interleave_moe_layer_step": 1, "no_rope_layers": [], "use_qk_norm": true, "rope_scaling": {"factor": 16.0,
      "high_freq_factor": 1.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
      "rope_type": "llama3"})";
const std::string kMaverick = std::string(kLlama4) + R"(, "max_position_embeddings": 1048576,
      "num_local_experts": 128, "interleave_moe_layer_step": 2, "use_qk_norm": false, "rope_scaling": null)";

TEST(HuggingFace, Llama4sTextModelsAreTheShippedOnes) {
  for (const auto& [text, name] : {std::pair(kScout, "llama4-scout"), std::pair(kMaverick, "llama4-maverick")}) {
    const HuggingFaceModel whole =
        read_hugging_face(json::parse(R"({"model_type": "llama4", "boi_token_index": 200080, "vision_config":
                                          {"hidden_size": 1408}, "text_config": {)" +
                                      text + "}}"),
                          "config.json");
    Model model = whole.model;
    const Model shipped = load_model(name);
    model.name = shipped.name, model.source = shipped.source;
    EXPECT_EQ(model, shipped);
    EXPECT_THAT(whole.ignored,
                testing::IsSupersetOf({"vision_config", "boi_token_index", "text_config.attention_dropout"}));
    Model alone = read("{" + text + "}");
    alone.name = shipped.name, alone.source = shipped.source;
    EXPECT_EQ(alone, shipped);
  }
}

TEST(HuggingFace, Llama4sLayersAreThoseThatAreTold) {
  const auto with = [&](const std::string& more) {
    return R"({"model_type": "llama4_text", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
               "num_key_value_heads": 2, "num_hidden_layers": 4, "max_position_embeddings": 64, "vocab_size": 100, )" +
           more + "}";
  };
  const Model model = read(with(R"("no_rope_layers": [1, 0, 1, 0], "moe_layers": [1, 3], "attn_scale": 0.2,
                                   "floor_scale": 16, "attention_chunk_size": 8)"));
  EXPECT_EQ(model.window, (Window{.keys = 8, .full_every = 2, .chunked = true, .plain_full = true}));
  EXPECT_EQ(model.temperature, (Temperature{.slope = 0.2, .run = 16}));
  EXPECT_EQ(model.experts->every, 2);
  EXPECT_EQ(read(with(R"("attn_temperature_tuning": 0)")).temperature, std::nullopt);
  EXPECT_FALSE(read(with(R"("no_rope_layers": [1, 1, 1, 1])")).window->plain_full);
  const auto expect_refused = [&](const char* more, const char* why) {
    EXPECT_THAT(message_for(with(more)), testing::HasSubstr(why));
  };
  expect_refused(R"("no_rope_layers": [1, 0, 1, 1])", "#/no_rope_layers: layer 3 breaks the pattern");
  expect_refused(R"("no_rope_layers": [0, 0, 0, 0])", "#/no_rope_layers: leaves no layer whose heads turn");
  expect_refused(R"("moe_layers": [0, 3])", "#/moe_layers: is not supported but the last of every so many layers");
  expect_refused(R"("moe_layers": [])", "#/moe_layers: is not supported but");
  expect_refused(R"("layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"])",
                 "#/layer_types: is not supported but \"chunked_attention\" in the layers whose heads turn");
  expect_refused(R"("attention_chunk_size": null)", "#/attention_chunk_size: ");
  expect_refused(R"("attention_bias": true)", "#/attention_bias: is not supported but false");
  expect_refused(R"("use_qk_norm": true, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                     "original_max_position_embeddings": 16})",
                 "#/use_qk_norm: is not supported with rotary positions that lengthen heads (YaRN)");
}

TEST(HuggingFace, Grok1IsTheShippedOne) {
  const std::string shape = R"({"model_type": "grok-1", "vocab_size": 131072, "hidden_size": 6144,
      "intermediate_size": 32768, "num_hidden_layers": 64, "num_attention_heads": 48, "num_key_value_heads": 8,
      "attn_output_multiplier": 0.08838834764831845, "max_attn_value": 30.0, "max_position_embeddings": 8192,
      "embedding_multiplier_scale": 78.38367176906169, "rms_norm_eps": 1e-05, "num_experts_per_tok": 2,
      "num_experts": 8, "output_router_logits": false, "router_aux_loss_coef": 0.001)";
  Model model = read(shape + R"(, "output_multiplier_scale": 0.5773502691896257})");
  const Model shipped = load_model("grok-1");
  model.name = shipped.name, model.source = shipped.source;
  EXPECT_EQ(model, shipped);
  EXPECT_THAT(message_for(shape + "}"), testing::HasSubstr("output_multiplier_scale"));
}

// Kimi K2's description is V3's by another name; its YaRN ramp begins where it ends.
TEST(HuggingFace, KimiK2IsReadAsV3) {
  const Model model = read(R"({"model_type": "kimi_k2", "num_hidden_layers": 61, "hidden_size": 7168,
      "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 18432,
      "moe_intermediate_size": 2048, "vocab_size": 163840, "max_position_embeddings": 131072,
      "n_routed_experts": 384, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
      "first_k_dense_replace": 1, "routed_scaling_factor": 2.827, "q_lora_rank": 1536, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "rope_theta": 50000, "rope_scaling":
      {"type": "yarn", "factor": 32, "beta_fast": 1, "beta_slow": 1, "mscale": 1, "mscale_all_dim": 1,
      "original_max_position_embeddings": 4096}})");
  EXPECT_EQ(count_parameters(model).total, count_parameters(load_model("kimi-k2")).total);
  EXPECT_EQ(model.rotary, load_model("kimi-k2").rotary);
}

TEST(HuggingFace, MixtralIsTheShippedOne) {
  const Model model = read(R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
      "max_position_embeddings": 32768, "sliding_window": null, "num_local_experts": 8, "num_experts_per_tok": 2})");
  EXPECT_EQ(count_parameters(model).active, 12879925248);
  EXPECT_EQ(model.max_sequence, 32768);
}

TEST(HuggingFace, UnsupportedTypesAndMissingMembersAreNamed) {
  EXPECT_EQ(message_for(R"({"model_type": "bert"})"),
            "config.json#/model_type: \"bert\" is no family that is read; docs/reference/models.md lists them, "
            "family-files.md says how to describe one");
  EXPECT_EQ(message_for(R"({"model_type": "gpt2"})"), "config.json#: missing \"n_layer\"; add it");
  EXPECT_EQ(message_for(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9,
                            "n_positions": 4, "activation_function": "silu"})"),
            "config.json#/activation_function: unsupported activation \"silu\"; supported here: gelu, gelu_new, "
            "relu, relu2");
  EXPECT_EQ(message_for(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
      "intermediate_size": 16, "vocab_size": 9, "max_position_embeddings": 4, "attention_bias": true})"),
            "config.json#: attention_bias and mlp_bias differ, which is not supported");
}

/// A small llama with members of its own.
std::string llama_with(const std::string& members) {
  return R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 4,
      "intermediate_size": 16, "vocab_size": 9, "max_position_embeddings": 131072)" +
         members + "}";
}

TEST(HuggingFace, NormsTakeTheLibrarysEpsilonUnlessTold) {
  EXPECT_EQ(read(llama_with("")).norm_epsilon, 1e-6);
  EXPECT_EQ(read(llama_with(R"(, "rms_norm_eps": 1e-5)")).norm_epsilon, 1e-5);
  EXPECT_EQ(read(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9, "n_positions": 4,
                     "layer_norm_epsilon": 1e-3})")
                .norm_epsilon,
            1e-3);
}

// Heads of 128 components, Llama 3.1's scaling: factor 8 from 8,192 tokens, bounds 1 and 4.
TEST(HuggingFace, ScaledFrequenciesAreThoseOfLlama31) {
  const Model model = read(llama_with(R"(, "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
      "rope_type": "llama3"})"));
  const std::vector<double> found = rotary_frequencies(model);
  ASSERT_EQ(found.size(), 64U);
  const auto plain = [](int i) { return std::pow(500000.0, -2.0 * i / 128); };
  EXPECT_DOUBLE_EQ(found[0], 1);
  EXPECT_DOUBLE_EQ(found[20], plain(20));      // wavelength 379, a 21st of the sequence: fast
  EXPECT_DOUBLE_EQ(found[63], plain(63) / 8);  // turns .0003 times
  const double turns = 8192 * plain(32) / (2 * std::numbers::pi), share = (turns - 1) / 3;  // 1.84: between
  EXPECT_DOUBLE_EQ(found[32], plain(32) * share + plain(32) / 8 * (1 - share));
}

// The same in transformers 5's spelling, with theta inside.
TEST(HuggingFace, RopeParametersSayWhatRopeScalingSaid) {
  const Model model = read(llama_with(R"(, "rope_parameters": {"rope_theta": 20000.0, "rope_type": "linear",
      "factor": 4.0})"));
  EXPECT_EQ(model.rotary.theta, 20000);
  EXPECT_DOUBLE_EQ(rotary_frequencies(model)[1], std::pow(20000.0, -2.0 / 128) / 4);
}

// arXiv 2309.00071, eq. 17 and 22: 32 turns of 4,096 tokens fall on pair 20.95, one turn on pair 45.03 of 64.
TEST(HuggingFace, YarnKeepsTheFastAndDividesTheSlow) {
  const Model model = read(llama_with(R"(, "rope_scaling": {"type": "yarn", "factor": 40.0,
      "original_max_position_embeddings": 4096})"));
  const std::vector<double> found = rotary_frequencies(model);
  const auto plain = [](int i) { return std::pow(10000.0, -2.0 * i / 128); };
  EXPECT_DOUBLE_EQ(found[20], plain(20));
  EXPECT_DOUBLE_EQ(found[46], plain(46) / 40);
  const double divided = (33.0 - 20) / (46 - 20);
  EXPECT_NEAR(found[33], plain(33) * (1 - divided) + plain(33) / 40 * divided, 1e-15);
  EXPECT_DOUBLE_EQ(model.rotary.amplitude, 0.1 * std::log(40.0) + 1);
  EXPECT_EQ(read(llama_with(R"(, "rope_scaling": {"type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0,
      "original_max_position_embeddings": 4096})"))
                .rotary.amplitude,
            1);
}

TEST(HuggingFace, GptNeoxTurnsAQuarterOfEachHead) {
  const Model model = read(R"({"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 256,
      "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 100, "max_position_embeddings": 32})");
  EXPECT_EQ(model.rotary_width(), 16);
  EXPECT_EQ(model.activation, Activation::kGeluErf);
}

TEST(HuggingFace, WhatWouldBeComputedOtherwiseIsRefused) {
  EXPECT_EQ(message_for(llama_with(R"(, "rope_scaling": {"type": "dynamic", "factor": 2.0})")),
            "config.json#/rope_scaling/type: unknown value \"dynamic\"; known: default, linear, llama3, yarn");
  EXPECT_EQ(message_for(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9,
                            "n_positions": 4, "scale_attn_by_inverse_layer_idx": true})"),
            "config.json#/scale_attn_by_inverse_layer_idx: is not supported: it changes what attention computes");
  EXPECT_EQ(read(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9, "n_positions": 4,
                     "scale_attn_weights": false})")
                .attention_scale,
            1);
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
