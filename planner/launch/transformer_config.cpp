// The model's shape as members of Megatron-Core's TransformerConfig, which NeMo's and Megatron-Bridge's files set.
#include <fmt/format.h>

#include "planner/launch/export_parts.h"

namespace trivium::planner::launch {
namespace {

using models::Activation;
using models::Model;
using models::Norm;
using models::Positions;

class ConfigWriter {
 public:
  ConfigWriter(const Model& model, const char* object, std::vector<Loss>& losses)
      : model_(model), object_(object), losses_(losses) {}

  std::string write(const program::Training& training) {
    shape(training);
    numbers();
    lose_fields();
    if (model_.latent) latents(*model_.latent);
    if (model_.mtp) {
      set("mtp_num_layers", model_.mtp->depth);
      set_number("mtp_loss_scaling_factor", model_.mtp->loss_scale);
    }
    if (model_.experts) experts(*model_.experts);
    return std::move(text_);
  }

 private:
  void set(const char* name, const std::string& value) { text_ += fmt::format("{}.{} = {}\n", object_, name, value); }
  void set(const char* name, std::int64_t value) { set(name, std::to_string(value)); }
  void set_flag(const char* name, bool value) { set(name, value ? "True" : "False"); }
  void set_number(const char* name, double value) { set(name, fmt::format("{:g}", value)); }
  void lose(const char* field, std::string what) { losses_.push_back({field, std::move(what)}); }

  void shape(const program::Training& training) {
    set("num_layers", model_.layers);
    set("hidden_size", model_.hidden);
    set("num_attention_heads", model_.heads);
    set("num_query_groups", model_.kv_heads);
    set("kv_channels", model_.head_dim);
    set("ffn_hidden_size", model_.dense_hidden());
    set("seq_length", training.sequence);
    set("normalization", model_.norm == Norm::kRmsNorm ? "\"RMSNorm\"" : "\"LayerNorm\"");
    set("position_embedding_type", model_.positions == Positions::kLearned  ? "\"learned_absolute\""
                                   : model_.positions == Positions::kRotary ? "\"rope\""
                                                                            : "\"none\"");
    set_flag("gated_linear_unit", model_.gated());
    set_flag("add_bias_linear", model_.linear_bias);
    set_flag("add_qkv_bias", model_.qkv_bias);
    set_flag("share_embeddings_and_output_weights", model_.tied_embeddings);
    set_number("hidden_dropout", training.dropout);
    set_number("attention_dropout", training.dropout);
  }

  void numbers() {
    const Model usual;
    if (model_.head_norms) set_flag("qk_layernorm", true);
    if (model_.norm_epsilon != usual.norm_epsilon) set_number("layernorm_epsilon", model_.norm_epsilon);
    if (model_.rotary.theta != usual.rotary.theta) set("rotary_base", fmt::format("{:.0f}", model_.rotary.theta));
    if (model_.rotary.share != usual.rotary.share) set_number("rotary_percent", model_.rotary.share);
  }

  void lose_fields() {
    if (model_.attention_sinks) lose("attention_sinks", "none");
    for (const std::string& name : models::not_run(model_)) lose("extras", fmt::format("without {}", name));
    if (model_.activation == Activation::kClampedSwiglu) lose("activation", "clamped_swiglu; written as swiglu");
    if (model_.activation == Activation::kRelu) lose("activation", "relu; written as gelu");
    if (model_.activation == Activation::kSquaredRelu) lose("activation", "squared relu; written as gelu");
    if (model_.branch_norms) lose("branch_norms", "none; two norms a layer");
    if (model_.attention_soft_cap > 0 || model_.logit_soft_cap > 0) lose("soft caps", "none");
    if (model_.embedding_norm) lose("embedding_norm", "none");
    if (model_.positions == Positions::kAlibi) lose("positions", "none in place of ALiBi");
    if (model_.embedding_scale != 1) lose("embedding_scale", "1");
    if (model_.logit_scale != 1) lose("logit_scale", "1");
    if (model_.plain_head_norms) lose("plain_head_norms", "none");
    if (model_.temperature) lose("temperature", "queries are as long everywhere");
    if (model_.experts && model_.experts->scales_input) lose("experts.scales_input", "gates on what experts give");
    if (model_.experts && !model_.experts->mixture_layers.empty()) {
      lose("experts.mixture_layers", "every layer a mixture");
    }
    if (model_.window) lose("window", "every layer sees all keys");
    if (model_.attention_scale != Model().attention_scale) lose("attention_scale", "1 / sqrt(head_dim)");
    if (model_.parallel_block) lose("parallel_block", "attention and MLP run one after the other");
  }

  void latents(const models::Latent& latent) {
    set_flag("multi_latent_attention", true);
    set_flag("qk_layernorm", true);  // of the latents
    if (latent.query_rank > 0) set("q_lora_rank", latent.query_rank);
    set("kv_lora_rank", latent.key_rank);
    set("qk_head_dim", latent.plain_dim);
    set("qk_pos_emb_head_dim", latent.rotary_dim);
    set("v_head_dim", latent.value_dim);
  }

  void experts(const models::Experts& e) {
    set("num_moe_experts", e.count);
    set("moe_router_topk", e.top_k);
    if (e.dense_layers == 0) {
      set("moe_layer_freq", e.every);
    } else {
      set("moe_layer_freq", fmt::format("[0] * {} + [1] * {}", e.dense_layers, model_.layers - e.dense_layers));
      set("moe_ffn_hidden_size", model_.ffn_hidden);
    }
    if (!e.dropless) set_number("moe_expert_capacity_factor", e.capacity_factor);
    if (e.shared_hidden > 0) set("moe_shared_expert_intermediate_size", e.shared_hidden);
    if (e.scores == models::Scores::kSigmoid) set("moe_router_score_function", "\"sigmoid\"");
    if (e.correction_bias) set_flag("moe_router_enable_expert_bias", true);
    // Megatron-Core asks for it with one expert a token: softmax of one score would be 1.
    if (!e.normalised || (e.top_k == 1 && e.scores == models::Scores::kSoftmax)) {
      set_flag("moe_router_pre_softmax", true);
    }
    if (e.scale != 1) set_number("moe_router_topk_scaling_factor", e.scale);
    if (e.groups > 1) {
      set("moe_router_num_groups", e.groups);
      set("moe_router_group_topk", e.top_groups);
    }
  }

  const Model& model_;
  const char* object_;
  std::vector<Loss>& losses_;
  std::string text_;
};

}  // namespace

std::string transformer_config(const Model& model, const program::Training& training, const char* object,
                               std::vector<Loss>& losses) {
  return ConfigWriter(model, object, losses).write(training);
}

}  // namespace trivium::planner::launch
