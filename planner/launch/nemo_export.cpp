// NeMo 2.x: a Python file that takes the GPT-3 recipe and sets what the plan says. Megatron-Core runs below it.
#include <fmt/format.h>

#include <algorithm>

#include "planner/launch/export_parts.h"
#include "program/lower/layout.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;
using program::Storage;

class NemoExport {
 public:
  explicit NemoExport(const program::Job& job) : job_(job), plan_(job.plan) {}

  Launch write(const hardware::Cluster& cluster) {
    const Machines machines = machines_of(plan_, cluster, launch_.losses);
    launch_.form = "Python";
    launch_.text = fmt::format(
        "# {}.\n"
        "import nemo_run as run\n"
        "from nemo.collections import llm\n"
        "from nemo.lightning import MegatronMixedPrecision\n\n"
        "recipe = llm.gpt3_175b.pretrain_recipe(num_nodes={}, num_gpus_per_node={})\n"
        "recipe.trainer.max_steps = {}\n"
        "recipe.trainer.callbacks = []  # the recipe's own overlap settings are for its own split\n",
        title_of(job_, Trainer::kNemo), machines.nodes, machines.devices, steps_of(job_.training, launch_.losses));
    model();
    split();
    sharding();
    batch();
    lose_fields();
    lose_common(plan_, launch_.losses);
    lose_fp8(plan_, launch_.losses);
    launch_.text +=
        "\nif __name__ == \"__main__\":\n"
        "    run.run(recipe, executor=run.LocalExecutor(ntasks_per_node=" +
        std::to_string(machines.devices) + ", launcher=\"torchrun\"))\n";
    return std::move(launch_);
  }

 private:
  static constexpr const char* kStrategy = "recipe.trainer.strategy";
  static constexpr const char* kConfig = "recipe.model.config";

  void set(const char* object, const char* name, const std::string& value) {
    launch_.text += fmt::format("{}.{} = {}\n", object, name, value);
  }
  void set(const char* object, const char* name, std::int64_t value) { set(object, name, std::to_string(value)); }
  void set_flag(const char* object, const char* name, bool value) { set(object, name, value ? "True" : "False"); }
  void lose(const char* field, std::string what) { launch_.losses.push_back({field, std::move(what)}); }

  void model() {
    const models::Model& m = job_.model;
    launch_.text += "\n";
    set(kConfig, "num_layers", m.layers);
    set(kConfig, "hidden_size", m.hidden);
    set(kConfig, "num_attention_heads", m.heads);
    set(kConfig, "num_query_groups", m.kv_heads);
    set(kConfig, "kv_channels", m.head_dim);
    set(kConfig, "ffn_hidden_size", m.dense_hidden());
    set(kConfig, "seq_length", job_.training.sequence);
    set(kConfig, "normalization", m.norm == models::Norm::kRmsNorm ? "\"RMSNorm\"" : "\"LayerNorm\"");
    set(kConfig, "position_embedding_type",
        m.positions == models::Positions::kLearned  ? "\"learned_absolute\""
        : m.positions == models::Positions::kRotary ? "\"rope\""
                                                    : "\"none\"");
    set_flag(kConfig, "gated_linear_unit", m.gated());
    set_flag(kConfig, "add_bias_linear", m.linear_bias);
    set_flag(kConfig, "add_qkv_bias", m.qkv_bias);
    set_flag(kConfig, "share_embeddings_and_output_weights", m.tied_embeddings);
    set(kConfig, "hidden_dropout", fmt::format("{:g}", job_.training.dropout));
    set(kConfig, "attention_dropout", fmt::format("{:g}", job_.training.dropout));
    lose("model.vocab", fmt::format("{}; the tokenizer sets the vocabulary", m.vocab));
    const models::Model usual;
    if (m.head_norms) set_flag(kConfig, "qk_layernorm", true);
    if (m.norm_epsilon != usual.norm_epsilon) set(kConfig, "layernorm_epsilon", fmt::format("{:g}", m.norm_epsilon));
    if (m.rotary.theta != usual.rotary.theta) set(kConfig, "rotary_base", fmt::format("{:.0f}", m.rotary.theta));
    if (m.rotary.share != usual.rotary.share) set(kConfig, "rotary_percent", fmt::format("{:g}", m.rotary.share));
    if (m.rotary.scaling != usual.rotary.scaling) lose("rotary", "scaled frequencies; written without");
    if (m.attention_sinks) lose("attention_sinks", "none");
    if (m.activation == models::Activation::kClampedSwiglu) lose("activation", "clamped_swiglu; written as swiglu");
    if (m.branch_norms) lose("branch_norms", "none; two norms a layer");
    if (m.attention_soft_cap > 0 || m.logit_soft_cap > 0) lose("soft caps", "none");
    if (m.embedding_scale != 1) lose("embedding_scale", "1");
    if (m.window) lose("window", "every layer sees all keys");
    if (m.attention_scale != usual.attention_scale) lose("attention_scale", "1 / sqrt(head_dim)");
    if (m.activation == models::Activation::kRelu) lose("activation", "relu; written as gelu");
    if (m.activation == models::Activation::kSquaredRelu) lose("activation", "squared relu; written as gelu");
    if (m.parallel_block) lose("parallel_block", "attention and MLP run one after the other");
    if (m.latent) {
      set_flag(kConfig, "multi_latent_attention", true);
      if (m.latent->query_rank > 0) set(kConfig, "q_lora_rank", m.latent->query_rank);
      set(kConfig, "kv_lora_rank", m.latent->key_rank);
      set(kConfig, "qk_head_dim", m.latent->plain_dim);
      set(kConfig, "qk_pos_emb_head_dim", m.latent->rotary_dim);
      set(kConfig, "v_head_dim", m.latent->value_dim);
    }
    if (!m.experts) return;
    set(kConfig, "num_moe_experts", m.experts->count);
    set(kConfig, "moe_router_topk", m.experts->top_k);
    const models::Experts& e = *m.experts;
    if (e.dense_layers == 0) {
      set(kConfig, "moe_layer_freq", e.every);
    } else {
      set(kConfig, "moe_layer_freq", fmt::format("[0] * {} + [1] * {}", e.dense_layers, m.layers - e.dense_layers));
      set(kConfig, "moe_ffn_hidden_size", m.ffn_hidden);
    }
    if (!e.dropless) set(kConfig, "moe_expert_capacity_factor", fmt::format("{:g}", e.capacity_factor));
    if (e.shared_hidden > 0) set(kConfig, "moe_shared_expert_intermediate_size", e.shared_hidden);
    if (e.scores == models::Scores::kSigmoid) set(kConfig, "moe_router_score_function", "\"sigmoid\"");
    if (e.correction_bias) set_flag(kConfig, "moe_router_enable_expert_bias", true);
    if (!e.normalised) set_flag(kConfig, "moe_router_pre_softmax", true);
    if (e.scale != 1) set(kConfig, "moe_router_topk_scaling_factor", fmt::format("{:g}", e.scale));
    if (e.groups > 1) {
      set(kConfig, "moe_router_num_groups", e.groups);
      set(kConfig, "moe_router_group_topk", e.top_groups);
    }
  }

  void split() {
    launch_.text += "\n";
    set(kStrategy, "tensor_model_parallel_size", plan_.tensor);
    set_flag(kStrategy, "sequence_parallel", plan_.sequence_parallel);
    set(kStrategy, "context_parallel_size", plan_.context);
    set(kStrategy, "pipeline_model_parallel_size", plan_.pipeline);
    set(kStrategy, "virtual_pipeline_model_parallel_size",
        plan_.virtual_stages > 1 ? std::to_string(plan_.virtual_stages) : "None");
    set(kStrategy, "expert_model_parallel_size", plan_.expert);
    const std::vector<int> layers = program::chunk_layers(job_);
    if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end()) {
      std::string layout = "E";
      for (std::size_t i = 0; i < layers.size(); ++i) layout += fmt::format("{}t*{}", i == 0 ? "" : "|", layers[i]);
      set(kStrategy, "pipeline_model_parallel_layout", "\"" + layout + ",L\"");
    }
    const bool inside = !has_order(plan_, kDataInsidePipeline) && has_order(plan_, kPipelineInsideData);
    set_flag(kStrategy, "use_tp_pp_dp_mapping", inside);
    if (!inside) lose_placement(plan_, kDataInsidePipeline, launch_.losses);
    if (plan_.pipeline > 1 && !runs_usual_schedule(plan_)) {
      lose("schedule", fmt::format("{}; Megatron-Core runs 1f1b", name_of(plan_.schedule)));
    }
  }

  void sharding() {
    const char* ddp = "recipe.trainer.strategy.ddp";
    set_flag(ddp, "use_distributed_optimizer", plan_.zero_stage == 1);
    set_flag("recipe.optim.config", "use_distributed_optimizer", plan_.zero_stage == 1);
    if (plan_.zero_stage >= 2) {
      set(kStrategy, "fsdp", "\"megatron\"");
      set(ddp, "data_parallel_sharding_strategy", plan_.zero_stage == 2 ? "\"optim_grads\"" : "\"optim_grads_params\"");
    }
    const int ranks = plan_.data * plan_.context;
    if (plan_.zero_stage > 0 && plan_.shard_group > 0 && plan_.shard_group != ranks) {
      set(ddp, "num_distributed_optimizer_instances", std::max(1, ranks / plan_.shard_group));
    }
    set_flag(ddp, "overlap_grad_reduce", plan_.overlap.gradient_reduction);
    set_flag(ddp, "overlap_param_gather", plan_.overlap.parameter_gather && plan_.zero_stage > 0);
    if (plan_.bucket_bytes > 0) set(ddp, "bucket_size", bucket_elements(plan_));
  }

  void batch() {
    launch_.text += "\n";
    set("recipe.data", "micro_batch_size", plan_.micro_batch);
    set("recipe.data", "global_batch_size", job_.training.global_batch);
    set("recipe.data", "seq_length", job_.training.sequence);
    set(kConfig, "recompute_granularity",
        plan_.recompute == Recompute::kNone ? "None" : fmt::format("\"{}\"", program::name_of(plan_.recompute)));
    const bool full = plan_.recompute == Recompute::kFull;
    set(kConfig, "recompute_method", full ? "\"uniform\"" : "None");
    set(kConfig, "recompute_num_layers", full ? "1" : "None");
    set(kConfig, "attention_backend", plan_.attention == program::Attention::kFlash ? "\"flash\"" : "\"unfused\"");
    const bool half = plan_.precision == DType::kBf16 || plan_.precision == DType::kFp16;
    launch_.text += fmt::format(
        "recipe.trainer.plugins = run.Config(MegatronMixedPrecision, precision=\"{}\", grad_reduce_in_fp32={})\n",
        plan_.precision == DType::kBf16 ? "bf16-mixed"
        : half                          ? "16-mixed"
                                        : "32",
        plan_.reduce_dtype == DType::kFp32 ? "True" : "False");
    const program::Optimizer& o = job_.training.optimizer;
    const char* optimizer = "recipe.optim.config";
    set(optimizer, "lr", fmt::format("{:g}", o.learning_rate));
    set(optimizer, "adam_beta1", fmt::format("{:g}", o.beta1));
    set(optimizer, "adam_beta2", fmt::format("{:g}", o.beta2));
    set(optimizer, "adam_eps", fmt::format("{:g}", o.epsilon));
    set(optimizer, "weight_decay", fmt::format("{:g}", o.weight_decay));
    set(optimizer, "clip_grad", fmt::format("{:g}", o.clip_norm));
  }

  void lose_fields() {
    const program::Offload& o = plan_.offload;
    if (o.optimizer == Storage::kHost) set("recipe.optim.config", "optimizer_cpu_offload", "True");
    if (o.optimizer == Storage::kDisk) lose("offload.optimizer", "disk; the state stays on the device");
    if (o.gradients != Storage::kNone) lose("offload.gradients", "gradients stay on the device");
    if (o.parameters != Storage::kNone) lose("offload.parameters", "parameters stay on the device");
    if (o.activations != Storage::kNone) lose("offload.activations", "activations stay on the device");
    if (plan_.compression != program::Compression::kNone) lose("compression", "gradients go uncompressed");
    if (plan_.context > 1 && plan_.context_method == program::ContextMethod::kAllToAll) {
      set(kConfig, "cp_comm_type", "\"a2a\"");
    }
    if (plan_.overlap.tensor) lose("overlap.tensor", "needs a buffer configuration of the recipe's callback");
    if (plan_.pipeline > 1 && plan_.virtual_stages == 1 && plan_.overlap.pipeline) {
      lose("overlap.pipeline", "transfers overlap with compute in the interleaved schedule alone");
    }
  }

  const program::Job& job_;
  const Plan& plan_;
  Launch launch_;
};

}  // namespace

Launch export_nemo(const program::Job& job, const hardware::Cluster& cluster) { return NemoExport(job).write(cluster); }

}  // namespace trivium::planner::launch
