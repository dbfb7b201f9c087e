// Hugging Face config.json. Defaults of missing members are those of the transformers library's configuration classes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_reader.h"
#include "base/quote.h"
#include "models/family_files.h"
#include "models/family_reader.h"
#include "models/hugging_face_parts.h"
#include "models/load.h"
#include "models/validate.h"

namespace trivium::models {

using base::JsonReader;

namespace {

Model read_gpt2(const Config& config) {
  Model model;
  model.layers = config.at("n_layer").integer(1, kMostLayers);
  model.hidden = config.at("n_embd").integer(1, kMostWidth);
  model.heads = config.at("n_head").integer(1, kMostHeads);
  model.vocab = config.at("vocab_size").integer(1, kMostVocab);
  const std::string_view positions = given(config, "n_positions") ? "n_positions" : "n_ctx";
  model.max_sequence = config.at(positions).integer(1, kMostPositions);
  model.ffn_hidden = count_or(config, "n_inner", kMostWidth, 0);
  model.activation = activation_of(config, "activation_function", false, "gelu_new");
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  model.norm_epsilon = number_or(config, "layer_norm_epsilon", 1e-5);
  if (!flag_or(config, "scale_attn_weights", true)) model.attention_scale = 1;
  refuse_flag(config, "scale_attn_by_inverse_layer_idx");
  return model;
}

Model read_gpt_neox(const Config& config) {
  Model model;
  read_common(config, model);
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.ffn_hidden = config.at("intermediate_size").integer(1, kMostWidth);
  model.positions = Positions::kRotary;
  model.activation = activation_of(config, "hidden_act", false, "gelu");
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  model.parallel_block = flag_or(config, "use_parallel_residual", true);
  // Parallel or not, its layers keep both norms (input_layernorm, post_attention_layernorm).
  model.shared_norm = !model.parallel_block;
  model.norm_epsilon = number_or(config, "layer_norm_eps", 1e-5);
  read_rotary(config, model, given(config, "rope_theta") ? "rope_theta" : "rotary_emb_base",
              given(config, "partial_rotary_factor") ? "partial_rotary_factor" : "rotary_pct", 0.25);
  if (const auto bias = given(config, "attention_bias"); bias && !bias->boolean()) {
    bias->fail("biases in the MLP but not in attention are not supported");
  }
  return model;
}

/// Layers that look back no further than a window. Precondition: `layers` and `max_sequence` are known.
void read_windows(const Config& config, const std::string& type, Model& model) {
  const bool counts_layers = type == "qwen2" || type == "qwen3";
  const bool usual = type == "mistral" || type == "mixtral" || type == "phi3";
  const bool used = type != "llama" && flag_or(config, "use_sliding_window", usual);
  const auto first = counts_layers ? given(config, "max_window_layers") : std::nullopt;
  const auto types = counts_layers ? given(config, "layer_types") : std::nullopt;
  constexpr std::int64_t kMistrals = 4096;  // where the file says nothing, not even null
  const bool silent = type == "mistral" && !config.find("sliding_window");
  const std::int64_t keys = count_or(config, "sliding_window", kMostPositions, silent ? kMistrals : kMostPositions);
  if (keys >= model.max_sequence) return;  // sees all there is
  if (types) return read_layer_types(*types, model, keys);
  if (!used) return;
  Window window{.keys = keys};
  if (counts_layers) window.first_layer = first ? first->integer(0, kMostLayers) : 28;
  if (window.first_layer < model.layers) model.window = window;
}

/// llama, mistral, qwen2, qwen3, phi3 and the mixtures of two of them: RMS norms, rotary positions, a gated MLP.
Model read_llama(const Config& config, const std::string& type) {
  Model model;
  read_common(config, model);
  // The library's default differs by type (all heads, 8, 32), so only llama, older than the member, may leave it out.
  model.kv_heads = type == "llama" || type == "phi3" ? count_or(config, "num_key_value_heads", kMostHeads, 0)
                                                     : config.at("num_key_value_heads").integer(1, kMostHeads);
  const bool qwen3 = type == "qwen3" || type == "qwen3_moe";
  model.head_dim = count_or(config, "head_dim", kMostHeads, type == "qwen3" ? 128 : 0);
  model.head_norms = qwen3;
  model.ffn_hidden = config.at("intermediate_size").integer(1, kMostWidth);
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", type == "phi3" ? 1e-5 : 1e-6);
  model.positions = Positions::kRotary;
  if (type == "mixtral") model.rotary.theta = 1e6;
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
  model.activation = activation_of(config, "hidden_act", true, "silu");
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  model.qkv_bias = type == "qwen2";  // on q, k and v alone
  model.linear_bias = false;
  if (type == "llama" || qwen3) {
    // Here attention_bias also covers the output projection, so only both or none can be told.
    model.qkv_bias = flag_or(config, "attention_bias", false);
    model.linear_bias = flag_or(config, "mlp_bias", false);
    if (model.qkv_bias != model.linear_bias) config.fail("attention_bias and mlp_bias differ, which is not supported");
  }
  read_windows(config, type, model);
  if (type == "qwen3_moe") read_qwen3_experts(config, model);
  if (type == "mixtral") read_mixtral_experts(config, model);
  return model;
}

/// Nemotron-4: LayerNorm whose weights are stored less 1, half of each head turns, squared ReLU, no biases.
Model read_nemotron(const Config& config) {
  Model model;
  read_common(config, model);
  model.kv_heads = count_or(config, "num_key_value_heads", kMostHeads, 0);
  model.head_dim = count_or(config, "head_dim", kMostHeads, 0);
  model.ffn_hidden = config.at("intermediate_size").integer(1, kMostWidth);
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.norm_epsilon = number_or(config, "norm_eps", 1e-5);
  model.positions = Positions::kRotary;
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 0.5);
  model.activation = activation_of(config, "hidden_act", false, "relu2");
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  model.qkv_bias = flag_or(config, "attention_bias", false);
  model.linear_bias = flag_or(config, "mlp_bias", false);
  if (model.qkv_bias != model.linear_bias) config.fail("attention_bias and mlp_bias differ, which is not supported");
  return model;
}

Model read_falcon(const Config& config) {
  Model model;
  read_common(config, model);
  const bool newer = flag_or(config, "new_decoder_architecture", false);
  if (newer) {
    model.kv_heads = count_or(config, "num_kv_heads", kMostHeads, model.heads);
    model.parallel_block = true;
    model.shared_norm = count_or(config, "num_ln_in_parallel_attn", 2, 2) == 1;
  } else {
    model.kv_heads = flag_or(config, "multi_query", true) ? 1 : model.heads;
    count_or(config, "num_kv_heads", kMostHeads, 0);  // of newer ones alone
    model.parallel_block = flag_or(config, "parallel_attn", true);
  }
  model.ffn_hidden = count_or(config, "ffn_hidden_size", kMostWidth, 0);
  model.max_sequence = count_or(config, "max_position_embeddings", kMostPositions, 2048);
  model.positions = flag_or(config, "alibi", false) ? Positions::kAlibi : Positions::kRotary;
  if (model.positions == Positions::kRotary) read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
  model.norm_epsilon = number_or(config, "layer_norm_epsilon", 1e-5);
  model.activation = activation_of(config, "activation", false, "gelu");
  model.linear_bias = flag_or(config, "bias", false);
  model.qkv_bias = model.linear_bias;
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  flag_or(config, "rotary", true);
  refuse_flag(config, "apply_residual_connection_post_layernorm");
  return model;
}

/// BLOOM (arXiv 2211.05100, section 3.1): ALiBi, a norm behind the embedding, biases, a tied output matrix. Older
/// files call the layers and heads otherwise than newer ones, which name no longest sequence.
Model read_bloom(const Config& config) {
  Model model;
  const auto either = [&](const char* newer, const char* older) { return given(config, newer) ? newer : older; };
  model.layers = config.at(either("n_layer", "num_hidden_layers")).integer(1, kMostLayers);
  model.hidden = config.at(either("hidden_size", "n_embed")).integer(1, kMostWidth);
  model.heads = config.at(either("n_head", "num_attention_heads")).integer(1, kMostHeads);
  model.vocab = config.at("vocab_size").integer(1, kMostVocab);
  constexpr std::int64_t kTrainedOn = 2048;  // of all published ones; ALiBi has no longest
  model.max_sequence = count_or(config, "seq_length", kMostPositions, kTrainedOn);
  model.positions = Positions::kAlibi;
  model.embedding_norm = true;
  model.activation = Activation::kGelu;  // BloomGelu: by tanh
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  model.norm_epsilon = number_or(config, "layer_norm_epsilon", 1e-5);
  refuse_flag(config, "apply_residual_connection_post_layernorm");
  for (const char* no_effect :
       {"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi", "skip_bias_add",
        "skip_bias_add_qkv", "slow_but_exact", "unk_token_id"}) {
    given(config, no_effect);  // ways to compute the same
  }
  return model;
}

/// Members that say how weights were made, are stored or are used; not what is computed of them in training.
bool says_nothing_of_the_model(const std::string& key) {
  static const std::set<std::string> kKeys = {"_attn_implementation",
                                              "_attn_implementation_autoset",
                                              "_commit_hash",
                                              "_name_or_path",
                                              "architectures",
                                              "attention_dropout",
                                              "attn_pdrop",
                                              "boi_token_index",
                                              "auto_map",
                                              "aux_loss_alpha",
                                              "bos_token_id",
                                              "cache_implementation",
                                              "classifier_dropout",
                                              "dtype",
                                              "embd_pdrop",
                                              "eoi_token_index",
                                              "ep_size",
                                              "eos_token_id",
                                              "gradient_checkpointing",
                                              "hidden_dropout",
                                              "id2label",
                                              "image_token_index",
                                              "initial_context_length",
                                              "initializer_range",
                                              "keys_to_ignore_at_inference",
                                              "label2id",
                                              "language",
                                              "model_type",
                                              "original_max_position_embeddings",
                                              "output_router_logits",
                                              "pad_token_id",
                                              "pretraining_tp",
                                              "quantization_config",
                                              "reorder_and_upcast_attn",
                                              "resid_pdrop",
                                              "router_aux_loss_coef",
                                              "router_jitter_noise",
                                              "seq_aux",
                                              "task_specific_params",
                                              "tokenizer_class",
                                              "torch_dtype",
                                              "transformers_version",
                                              "use_cache",
                                              "vision_config"};
  return kKeys.contains(key) || key.starts_with("summary_");
}

/// null, false, 0, "" and the like: what a member says that is not used.
bool is_nothing(const nlohmann::json& value) {
  if (value.is_null() || value == false) return true;
  if (value.is_number()) return value == 0;
  return value.empty();
}

/// Members that were not asked for, in key order. Errors: Failure(kInput) at one that may change what is computed.
std::vector<std::string> judge_others(const Config& config, const std::string& type) {
  std::vector<std::string> ignored, unknown;
  for (const auto& [key, member] : config.members()) {
    if (config.asked(key)) continue;
    const bool harmless = says_nothing_of_the_model(key) || is_nothing(member.json());
    (harmless ? ignored : unknown).push_back(key);
  }
  if (unknown.empty()) return ignored;
  config.JsonReader::at(unknown.front())
      .fail(fmt::format("not known of model_type {}: {}; take out what does not change what is computed",
                        base::quote(type), base::one_line(fmt::format("{}", fmt::join(unknown, ", ")))));
}

/// Members that change neither times nor sizes are held to their types all the same: a file that has text there is
/// damaged, or of something else.
void check_what_is_not_used(const Config& config) {
  for (const char* key : {"rope_theta", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "initializer_range"}) {
    number_or(config, key, 0);
  }
  amount_or(config, "sliding_window", kMostPositions, kMostPositions);
}

/// Of multi-token prediction: DeepSeek-V3's and GLM-4.5's member, and that of DeepSeek's ports.
std::int64_t modules_of(const Config& config) {
  return std::max(amount_or(config, "num_nextn_predict_layers", kMostModules, 0),
                  amount_or(config, "num_mtp_layers", kMostModules, 0));
}

/// Types that code reads; others have files.
constexpr std::array<std::string_view, 22> kCoded = {
    "gpt2",    "gpt_neox", "llama",    "mistral",     "qwen2",  "qwen3",       "qwen3_moe",   "mixtral",
    "falcon",  "phi3",     "nemotron", "gpt_oss",     "gemma2", "gemma3_text", "deepseek_v2", "deepseek_v3",
    "kimi_k2", "glm4_moe", "llama4",   "llama4_text", "grok-1", "bloom"};

Model read_coded(const Config& reader, const std::string& type) {
  return type == "gpt2"                                      ? read_gpt2(reader)
         : type == "gpt_neox"                                ? read_gpt_neox(reader)
         : type == "falcon"                                  ? read_falcon(reader)
         : type == "bloom"                                   ? read_bloom(reader)
         : type == "nemotron"                                ? read_nemotron(reader)
         : type == "gpt_oss"                                 ? read_gpt_oss(reader)
         : type == "gemma2" || type == "gemma3_text"         ? read_gemma(reader, type == "gemma3_text")
         : type == "glm4_moe"                                ? read_glm4_moe(reader)
         : type.starts_with("llama4")                        ? read_llama4(reader)
         : type == "grok-1"                                  ? read_grok(reader)
         : type == "kimi_k2" || type.starts_with("deepseek") ? read_deepseek(reader, type)
                                                             : read_llama(reader, type);
}

/// Fails where nothing reads that type: with what is lacking, or the nearest type that is read.
void demand_known(const base::JsonReader& type, const Family* family) {
  if (family != nullptr && family->lacking.empty()) return;
  if (family != nullptr) type.fail(fmt::format("{} is not read: {}", base::quote(type.text()), family->lacking));
  std::vector<std::string> known(kCoded.begin(), kCoded.end());
  for (const Family& one : families()) {
    if (one.lacking.empty()) known.insert(known.end(), one.types.begin(), one.types.end());
  }
  if (std::ranges::find(known, type.text()) != known.end()) return;
  const std::string near = base::nearest(type.text(), known);
  type.fail(fmt::format("{} is no family that is read; {}", base::quote(type.text()),
                        near.empty() ? "docs/reference/models.md lists them, family-files.md says how to describe one"
                                     : fmt::format("did you mean \"{}\"?", near)));
}

/// Marks members beside the text model's that the family's file passes over.
void mark_ignored(const Config& whole, const std::string& type) {
  const Family* family = find_family(type);
  if (family == nullptr) return;
  const JsonReader file(family->file, family->where);
  if (const auto ignored = file.find("ignored")) {
    for (const auto& [name, reason] : ignored->members()) whole.find(name);
  }
}

/// The configuration of the text model where others stand beside it, and what is left out with it.
struct TextModel {
  std::string member;  ///< empty: the whole configuration is that of the text model
  std::string type;
  std::vector<std::string> left_out;
};

TextModel text_of(const Config& whole, const std::string& type, const Family* family) {
  if (type == "llama4") return {"text_config", type, {}};
  TextModel text{"", type, {}};
  if (family == nullptr) return text;
  const JsonReader file(family->file, family->where);
  if (const auto left_out = file.find("left_out")) {
    for (const auto& [name, what] : left_out->members()) {
      if (given(whole, name)) text.left_out.push_back(fmt::format("{} ({})", name, what.text()));
    }
  }
  const auto member = file.find("text");
  if (!member || !whole.has(member->text())) return text;
  text.member = member->text();
  const auto inner = whole.at(text.member).find("model_type");
  text.type = inner ? inner->text() : file.at("defaults").at("model_type").text();
  return text;
}

}  // namespace

HuggingFaceModel read_hugging_face(const nlohmann::json& config, const std::string& where) {
  const Config whole{JsonReader(config, where)};
  const std::string type = whole.at("model_type").text();
  demand_known(whole.at("model_type"), find_family(type));
  const TextModel text = text_of(whole, type, find_family(type));
  const bool nested = !text.member.empty();  // its text model alone is read
  const Config reader = nested ? Config(whole.at(text.member)) : whole;
  const Family* family = find_family(text.type);
  if (nested && text.type != "llama4") {
    const auto inner = reader.find("model_type");
    demand_known(inner ? *inner : whole.at("model_type"), family);
  }
  FamilyModel read =
      family != nullptr ? read_by_family(*family, reader) : FamilyModel{read_coded(reader, text.type), {}};
  check_what_is_not_used(reader);
  Model& model = read.model;
  const auto name = given(whole, "_name_or_path");
  model.name = name && !name->text().empty() ? name->text() : type;
  model.source = fmt::format("Hugging Face configuration, model_type {}", type);
  complete_and_validate(model, reader);
  for (const std::string& ignored : read.ignored) reader.find(ignored);
  const std::int64_t modules = modules_of(reader);
  std::vector<std::string> ignored = judge_others(reader, text.type);
  ignored.insert(ignored.end(), read.ignored.begin(), read.ignored.end());
  std::ranges::sort(ignored);
  if (nested) {
    for (std::string& member : ignored) member = text.member + "." + member;
    mark_ignored(whole, type);
    for (std::string& member : judge_others(whole, type)) ignored.push_back(std::move(member));
  }
  return {std::move(model), std::move(ignored), modules, text.left_out};
}

Model model_from_hugging_face(const nlohmann::json& config, const std::string& where) {
  return read_hugging_face(config, where).model;
}

}  // namespace trivium::models
