// Mixtures of experts in Hugging Face's config.json: Mixtral, Qwen 3, DeepSeek-V2 and V3 (Kimi K2), GLM-4.5, Grok-1.
// Formulas are those of transformers' modeling files, which the oracle's cases compare (tests/oracle).
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/hugging_face_parts.h"
#include "models/validate.h"

namespace trivium::models {
namespace {

/// Of the members that all mixtures spell alike: experts without room that is counted, and the balance loss.
Experts experts_of(const Config& config, std::string_view count, double usual_balance) {
  Experts experts;
  experts.count = config.at(count).integer(1, kMostExperts);
  experts.top_k = config.at("num_experts_per_tok").integer(1, kMostExperts);
  experts.dropless = true;
  const double balance = number_or(config, "router_aux_loss_coef", usual_balance);
  experts.balance_loss = flag_or(config, "output_router_logits", false) ? balance : 0;
  return experts;
}

/// Weights that add up to 1 teach a router that chooses one expert nothing: not read as such.
void check_normalised(const Config& config, const Experts& experts) {
  if (experts.normalised && experts.top_k == 1) {
    config.at("num_experts_per_tok").fail("must be more than 1 where the weights of the chosen add up to 1");
  }
}

/// DeepSeek's and GLM's: MLPs of another width first, one that every token visits, scores times a factor.
Experts deepseek_experts(const Config& config, Model& model, bool sigmoids) {
  Experts e = experts_of(config, "n_routed_experts", 0);
  const std::int64_t width = config.at("moe_intermediate_size").integer(1, kMostWidth);
  e.shared_hidden = width * amount_or(config, "n_shared_experts", kMostExperts, sigmoids ? 1 : 2);
  e.dense_layers = amount_or(config, "first_k_dense_replace", kMostLayers, 0);
  e.dense_hidden = config.at("intermediate_size").integer(1, kMostWidth);
  e.scale = factor_or(config, "routed_scaling_factor", 1);
  only(config, "moe_layer_freq", count_or(config, "moe_layer_freq", kMostLayers, 1) == 1, "1: dense layers");
  model.ffn_hidden = width;
  if (sigmoids) {
    e.scores = Scores::kSigmoid;
    e.correction_bias = true;
    e.normalised = flag_or(config, "norm_topk_prob", true);
    check_normalised(config, e);
  } else {
    e.normalised = flag_or(config, "norm_topk_prob", false);
    only(config, "norm_topk_prob", !e.normalised, "false");
  }
  return e;
}

void read_groups(const Config& config, Experts& experts, std::int64_t best, std::int64_t usual,
                 std::int64_t usual_top) {
  experts.groups = count_or(config, "n_group", kMostExperts, usual);
  experts.top_groups = count_or(config, "topk_group", kMostExperts, usual_top);
  if (experts.groups > 1) experts.group_best = best;
}

/// Text that must be this where it is given.
void only_text(const Config& config, std::string_view key, const char* text) {
  const auto member = given(config, key);
  only(config, key, !member || member->text() == text, text);
}

/// YaRN's factor on scores: queries and keys are lengthened, but only their turning components by the amplitude.
double score_scale(const Config& config, std::int64_t head_dim) {
  const double usual = 1 / std::sqrt(static_cast<double>(head_dim));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto member = given(config, key);
    if (!member) continue;
    const Config scaling(*member);
    const auto kind = given(scaling, given(scaling, "rope_type") ? "rope_type" : "type");
    const double all = number_or(scaling, "mscale_all_dim", 0);
    if (!kind || kind->text() == "default" || all == 0) continue;
    const double longer = yarn_amplitude(factor_or(scaling, "factor", 1), all);
    return usual * longer * longer;
  }
  return 0;
}

}  // namespace

void read_mixtral_experts(const Config& config, Model& model) {
  model.experts = experts_of(config, "num_local_experts", 0.001);
  check_normalised(config, *model.experts);
}

/// Every layer a mixture: the one kind of Qwen 3's that was released.
void read_qwen3_experts(const Config& config, Model& model) {
  const auto dense = given(config, "mlp_only_layers");
  only(config, "mlp_only_layers", !dense || dense->json().empty(), "empty: dense layers among mixtures");
  only(config, "decoder_sparse_step", count_or(config, "decoder_sparse_step", kMostLayers, 1) == 1, "1: dense layers");
  Experts experts = experts_of(config, given(config, "num_experts") ? "num_experts" : "num_local_experts", 0.001);
  experts.normalised = flag_or(config, "norm_topk_prob", false);
  check_normalised(config, experts);
  model.experts = experts;
  model.ffn_hidden = config.at("moe_intermediate_size").integer(1, kMostWidth);
}

/// DeepSeek-V2 and V3, whose form Kimi K2 has. The extra layers of multi-token prediction are not built.
Model read_deepseek(const Config& config, const std::string& type) {
  const bool third = type != "deepseek_v2";
  Model model;
  read_common(config, model);
  only(config, "num_key_value_heads", count_or(config, "num_key_value_heads", kMostHeads, model.heads) == model.heads,
       "num_attention_heads: every head has a key of its own");
  Latent latent;
  latent.query_rank = amount_or(config, "q_lora_rank", kMostWidth, 0);
  latent.key_rank = config.at("kv_lora_rank").integer(1, kMostWidth);
  latent.plain_dim = config.at("qk_nope_head_dim").integer(1, kMostHeads);
  latent.rotary_dim = config.at("qk_rope_head_dim").integer(1, kMostHeads);
  latent.value_dim = config.at("v_head_dim").integer(1, kMostHeads);
  for (const char* derived : {"head_dim", "qk_head_dim"}) config.find(derived);  // told by the members above
  model.latent = latent;
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", 1e-6);
  model.positions = Positions::kRotary;
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
  model.attention_scale = score_scale(config, latent.plain_dim + latent.rotary_dim);
  model.activation = activation_of(config, "hidden_act", true, "silu");
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  model.qkv_bias = model.linear_bias = false;
  only(config, "attention_bias", !flag_or(config, "attention_bias", false), "false");
  only(config, "mlp_bias", !flag_or(config, "mlp_bias", false), "false");
  only(config, "rope_interleave", flag_or(config, "rope_interleave", true), "true");
  only_text(config, "scoring_func", third ? "sigmoid" : "softmax");
  Experts experts = deepseek_experts(config, model, third);
  if (third) {
    only_text(config, "topk_method", "noaux_tc");
    read_groups(config, experts, 2, 8, 4);
  } else {
    static const std::array<std::string, 2> kMethods = {"greedy", "group_limited_greedy"};
    const auto method = given(config, "topk_method");
    const bool grouped = method && method->one_of(kMethods) == kMethods[1];
    for (const char* key : {"n_group", "topk_group"}) config.find(key);  // say nothing where the method is greedy
    if (grouped) read_groups(config, experts, 1, 1, 1);
  }
  model.experts = experts;
  return model;
}

/// Grok-1: four norms a layer, capped scores, and factors on embeddings and logits. The weights of the chosen are their
/// shares of the softmax over all, and GELU is the tanh form, as in the release (xai-org/grok-1, model.py); its ports
/// to this form differ in what a missing member means, so those that compute must be there.
Model read_grok(const Config& config) {
  Model model;
  read_common(config, model);
  model.kv_heads = config.at("num_key_value_heads").integer(1, kMostHeads);
  model.ffn_hidden = config.at("intermediate_size").integer(1, kMostWidth);
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", 1e-5);
  model.branch_norms = true;
  model.positions = Positions::kRotary;
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
  model.activation = activation_of(config, "hidden_act", true, "gelu_pytorch_tanh");
  model.qkv_bias = model.linear_bias = false;
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  const auto factor = [&](std::string_view key) { return config.at(key), factor_or(config, key, 1); };
  const double usual = 1 / std::sqrt(static_cast<double>(model.hidden) / static_cast<double>(model.heads));
  const double scale = factor("attn_output_multiplier");
  if (std::abs(scale / usual - 1) > 1e-12) model.attention_scale = scale;
  model.attention_soft_cap = factor("max_attn_value");
  model.embedding_scale = factor("embedding_multiplier_scale");
  model.logit_scale = factor("output_multiplier_scale");
  model.experts = experts_of(config, "num_experts", 0.001);
  model.experts->normalised = false;
  return model;
}

/// GLM-4.5: V3's experts, with grouped queries, half of each head turning, and norms of heads in the larger one.
Model read_glm4_moe(const Config& config) {
  Model model;
  read_common(config, model);
  model.kv_heads = count_or(config, "num_key_value_heads", kMostHeads, 0);
  model.head_dim = count_or(config, "head_dim", kMostHeads, std::max<std::int64_t>(1, model.hidden / model.heads));
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", 1e-5);
  model.positions = Positions::kRotary;
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 0.5);
  model.activation = activation_of(config, "hidden_act", true, "silu");
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  model.qkv_bias = flag_or(config, "attention_bias", false);  // on q, k and v alone
  model.linear_bias = false;
  model.head_norms = flag_or(config, "use_qk_norm", false);
  Experts experts = deepseek_experts(config, model, true);
  read_groups(config, experts, 2, 1, 1);
  model.experts = experts;
  return model;
}

}  // namespace trivium::models
