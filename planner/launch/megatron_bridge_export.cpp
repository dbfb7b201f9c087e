// Megatron-Bridge: a Python file that fills a configuration and trains. Megatron-Core runs below it.
#include <fmt/format.h>

#include <algorithm>

#include "planner/launch/export_parts.h"
#include "program/lower/parameter_gather.h"
#include "program/plan/stack.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Fp8;
using program::Plan;
using program::Recompute;
using program::Storage;

constexpr const char* kImports =
    "from megatron.bridge.recipes.common import _pretrain_common\n"
    "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n"
    "from megatron.bridge.training.gpt_step import forward_step\n"
    "from megatron.bridge.training.pretrain import pretrain\n"
    "from megatron.core.transformer.enums import AttnBackend\n\n"
    "cfg = _pretrain_common()\n";

constexpr const char* kFinetuneImports =
    "from megatron.bridge.peft.lora import LoRA\n"
    "from megatron.bridge.training.finetune import finetune\n";

constexpr const char* kRecipeImport =
    "from megatron.bridge.training.mixed_precision import get_mixed_precision_config\n";

class MegatronBridgeExport {
 public:
  MegatronBridgeExport(const program::Job& job, const hardware::Cluster& cluster)
      : job_(job), plan_(job.plan), cluster_(cluster) {}

  Launch write() {
    const Machines machines = machines_of(plan_, cluster_, launch_.losses);
    launch_.form = "Python";
    launch_.text = fmt::format(
        "# {}.\n# {}torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint HEAD:29500 "
        "THIS_FILE\n{}{}{}",
        title_of(job_, Trainer::kMegatronBridge), user_buffers_prefix(), machines.nodes, machines.devices,
        domain_comment(machines),
        std::string(trains_adapters() ? "import os\n" : "") + (has_narrow_moments() ? "import torch\n" : ""),
        trains_adapters() ? kFinetuneImports : "");
    if (!overridden_gather().empty()) launch_.text += kRecipeImport;
    launch_.text += fmt::format(
        "from {} import {}\n",
        job_.model.latent ? "megatron.bridge.models.mla_provider" : "megatron.bridge.models.gpt_provider", provider());
    launch_.text += kImports;
    model();
    split();
    sharding();
    memory();
    batch();
    arithmetic();
    lose_fields();
    lose_common(plan_, launch_.losses, true);
    optimizer();
    adapters();
    launch_.text += fmt::format("\nif __name__ == \"__main__\":\n    {}(config=cfg, forward_step_func=forward_step)\n",
                                trains_adapters() ? "finetune" : "pretrain");
    return std::move(launch_);
  }

 private:
  static constexpr const char* kModel = "cfg.model";

  void set(const char* object, const char* name, const std::string& value) {
    launch_.text += fmt::format("{}.{} = {}\n", object, name, value);
  }
  void set(const char* object, const char* name, std::int64_t value) { set(object, name, std::to_string(value)); }
  void set_text(const char* object, const char* name, std::string_view value) {
    set(object, name, fmt::format("\"{}\"", value));
  }
  void set_flag(const char* object, const char* name, bool value) { set(object, name, value ? "True" : "False"); }
  void set_number(const char* object, const char* name, double value) { set(object, name, fmt::format("{:g}", value)); }
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  // Multi-latent attention reads members that only this provider has (core/transformer/multi_latent_attention.py).
  const char* provider() const { return job_.model.latent ? "MLAModelProvider" : "GPTModelProvider"; }

  std::string user_buffers_prefix() const {
    std::vector<Loss> said_elsewhere;
    const bool buffers = plan_.sequence_parallel && overlaps_in_peer_buffers(plan_, cluster_, said_elsewhere);
    return buffers && lacks_multicast(cluster_) ? "UB_SKIPMC=1 " : "";
  }

  bool trains_adapters() const { return job_.training.lora.used(); }

  // megatron/bridge/training/optim.py takes dist_muon for the layer-wise distributed optimizer.
  void optimizer() {
    const auto settings = muon_settings(job_, launch_.losses);
    if (settings.empty()) return;
    set_text("cfg.optimizer", "optimizer", plan_.zero_stage > 0 ? "dist_muon" : "muon");
    for (const auto& [name, value] : settings) {
      const bool text = value.find_first_not_of("0123456789.e-") != std::string::npos;
      text ? set_text("cfg.optimizer", name.c_str(), value) : set("cfg.optimizer", name.c_str(), value);
    }
  }

  // The weights that adapters stand beside come from a checkpoint of Megatron-Bridge, or of Hugging Face.
  void adapters() {
    if (!trains_adapters()) return;
    set("cfg", "peft", peft_of(job_, launch_.losses));
    set("cfg.checkpoint", "pretrained_checkpoint", "os.environ[\"PRETRAINED\"]");
    lose("lora_rank", "the frozen weights come from the checkpoint that PRETRAINED names");
  }

  // The provider asks for these three when it is made; the rest are members.
  void model() {
    const models::Model& m = job_.model;
    launch_.text += fmt::format("cfg.model = {}(num_layers={}, hidden_size={}, num_attention_heads={})\n", provider(),
                                m.layers, m.hidden, m.heads);
    launch_.text += transformer_config(m, job_.training, kModel, launch_.losses);
    set(kModel, "vocab_size", m.vocab);
    set_flag(kModel, "should_pad_vocab", true);
    set_text("cfg.tokenizer", "tokenizer_type", "NullTokenizer");
    set("cfg.tokenizer", "tokenizer_model", "None");
    set("cfg.tokenizer", "vocab_size", m.vocab);
    rotary(m.rotary);
    if (m.experts && m.experts->dropless) set_flag(kModel, "moe_grouped_gemm", true);
    if (m.experts) dispatcher();
  }

  // megatron/bridge/training/flex_dispatcher_backend.py
  void dispatcher() {
    const std::string_view backend = flex_backend_of(plan_, cluster_, launch_.losses);
    set_text(kModel, "moe_token_dispatcher_type", backend.empty() ? "alltoall" : "flex");
    if (backend.empty()) return;
    set_text(kModel, "moe_flex_dispatcher_backend", backend);
    if (program::find_stack(plan_.stack)->issue < 1) {
      lose("stack", "whole iterations in CUDA graphs; written without", "none");
    }
  }

  // rope_scaling has Llama 3.1's bounds and 8,192 tokens built in.
  void rotary(const models::Rotary& given) {
    models::Rotary llama = given;
    const models::Rotary usual;
    llama.original_sequence = 8192;
    llama.slow_turns = usual.slow_turns, llama.fast_turns = usual.fast_turns;
    if (given.scaling == models::RotaryScaling::kNone) return;
    if (given.scaling == models::RotaryScaling::kLlama3 && given == llama) {
      set_flag(kModel, "rope_scaling", true);
      return set_number(kModel, "rope_scaling_factor", given.factor);
    }
    if (given.scaling == models::RotaryScaling::kLinear) {
      return set_number(kModel, "seq_len_interpolation_factor", given.factor);
    }
    lose("rotary", "scaled frequencies; written without, which costs the same");
  }

  void split() {
    launch_.text += "\n";
    set(kModel, "tensor_model_parallel_size", plan_.tensor);
    set_flag(kModel, "sequence_parallel", plan_.sequence_parallel);
    set(kModel, "context_parallel_size", plan_.context);
    if (plan_.context > 1) {
      set_text(kModel, "cp_comm_type", exchange_of(plan_));
      if (plan_.context_heads > 1) {
        set(kModel, "hierarchical_context_parallel_sizes",
            fmt::format("[{}, {}]", plan_.context_heads, plan_.context / plan_.context_heads));
      }
    }
    set(kModel, "pipeline_model_parallel_size", plan_.pipeline);
    const std::string layout = pipeline_layout(job_);
    const bool counted = plan_.virtual_stages > 1 && layout.empty();
    set(kModel, "virtual_pipeline_model_parallel_size", counted ? std::to_string(plan_.virtual_stages) : "None");
    if (!layout.empty()) set_text(kModel, "pipeline_model_parallel_layout", layout);
    set(kModel, "expert_model_parallel_size", plan_.expert);
    set(kModel, "expert_tensor_parallel_size", program::expert_tensor_ranks(plan_));
    const bool inside = !has_order(plan_, kDataInsidePipeline) && has_order(plan_, kPipelineInsideData);
    set_flag("cfg.dist", "use_tp_pp_dp_mapping", inside);
    if (!inside) lose_placement(plan_, kDataInsidePipeline, launch_.losses);
    if (plan_.pipeline > 1 && !runs_usual_schedule(plan_)) {
      lose("schedule", fmt::format("{}; Megatron-Core runs 1f1b", name_of(plan_.schedule)), usual_schedule_of(plan_));
    }
  }

  void sharding() {
    const char* ddp = "cfg.ddp";
    launch_.text += "\n";
    // Of Muon's distributed optimizer, dist_muon, these stay off (recipes/kimi/h100/kimi_k2.py).
    const bool distributed = plan_.zero_stage >= 1 && job_.training.optimizer.kind == program::Update::kAdamW;
    set_flag(ddp, "use_distributed_optimizer", distributed);
    set_flag("cfg.optimizer", "use_distributed_optimizer", distributed);
    set_flag(ddp, "use_megatron_fsdp", plan_.zero_stage >= 2);
    set_text(ddp, "data_parallel_sharding_strategy",
             plan_.zero_stage == 2   ? "optim_grads"
             : plan_.zero_stage == 3 ? "optim_grads_params"
                                     : "no_shard");
    if (plan_.zero_stage >= 2) set_text("cfg.checkpoint", "ckpt_format", "fsdp_dtensor");
    const int ranks = plan_.data * plan_.context;
    if (plan_.zero_stage > 0 && plan_.shard_group > 0 && plan_.shard_group != ranks) {
      set(ddp, "num_distributed_optimizer_instances", std::max(1, ranks / plan_.shard_group));
    }
    if (plan_.bucket_bytes > 0) set(ddp, "bucket_size", bucket_elements(plan_));
    const program::Overlap& overlap = plan_.overlap;
    const bool gathers = overlap.parameter_gather && distributed && overlap.gradient_reduction;
    if (overlap.parameter_gather && !gathers) {
      lose("overlap.parameter_gather",
           plan_.zero_stage > 0 && !distributed ? "dist_muon gathers after the step"
                                                : "needs ZeRO and overlap.gradient_reduction",
           "false");
    }
    set_flag(ddp, "overlap_grad_reduce", overlap.gradient_reduction);
    set_flag(ddp, "overlap_param_gather", gathers);
    const bool reaches = overlaps_in_peer_buffers(plan_, cluster_, launch_.losses);
    const bool buffers = reaches && plan_.sequence_parallel;
    if (reaches && !buffers) lose("overlap.tensor", "needs sequence_parallel", "false");
    launch_.text +=
        fmt::format("cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap={}{})\n", buffers ? "True" : "False",
                    overlap.expert ? ", overlap_moe_expert_parallel_comm=True, delay_wgrad_compute=True" : "");
  }

  void memory() {
    launch_.text += "\n";
    const bool full = plan_.recompute == Recompute::kFull;
    if (plan_.recompute == Recompute::kNone) {
      set(kModel, "recompute_granularity", "None");
    } else {
      set_text(kModel, "recompute_granularity", full ? "full" : "selective");
    }
    if (plan_.recompute == Recompute::kSelective) {
      set(kModel, "recompute_modules", fmt::format("[\"{}\"]", fmt::join(module_names(plan_), "\", \"")));
    }
    if (full) {
      set_text(kModel, "recompute_method", plan_.recompute_layers > 0 ? "block" : "uniform");
      set(kModel, "recompute_num_layers", recomputed_together(plan_));
    }
    if (plan_.offload.optimizer == Storage::kHost) {
      set_flag("cfg.optimizer", "optimizer_cpu_offload", true);
      set("cfg.optimizer", "optimizer_offload_fraction", "1.0");
    }
    moments();
  }

  bool has_narrow_moments() const {
    return plan_.moment_dtype == program::Moments::kBf16 && widens_moments_in_megatron(plan_).empty();
  }

  void moments() {
    if (!has_narrow_moments()) return lose_moments(plan_, widens_moments_in_megatron(plan_), launch_.losses);
    set_flag("cfg.optimizer", "use_precision_aware_optimizer", true);
    set("cfg.optimizer", "exp_avg_dtype", "torch.bfloat16");
    set("cfg.optimizer", "exp_avg_sq_dtype", "torch.bfloat16");
  }

  void batch() {
    launch_.text += "\n";
    const program::Optimizer& o = job_.training.optimizer;
    set("cfg.train", "train_iters", steps_of(job_.training, launch_.losses));
    set("cfg.train", "micro_batch_size", plan_.micro_batch);
    set("cfg.train", "global_batch_size", job_.training.global_batch);
    set("cfg.dataset", "seq_length", job_.training.sequence);
    set("cfg.rng", "seed", static_cast<std::int64_t>(job_.training.seed));
    set_number("cfg.optimizer", "lr", o.learning_rate);
    set_number("cfg.optimizer", "min_lr", o.min_learning_rate);
    set_number("cfg.optimizer", "weight_decay", o.weight_decay);
    set_number("cfg.optimizer", "adam_beta1", o.beta1);
    set_number("cfg.optimizer", "adam_beta2", o.beta2);
    set_number("cfg.optimizer", "adam_eps", o.epsilon);
    set_number("cfg.optimizer", "clip_grad", o.clip_norm);
    set_text("cfg.scheduler", "lr_decay_style", "cosine");
    set("cfg.scheduler", "lr_warmup_iters", o.warmup_steps);
    if (o.decay_steps > 0) set("cfg.scheduler", "lr_decay_iters", o.decay_steps);
  }

  // megatron/bridge/training/mixed_precision.py
  std::string recipe() const {
    const std::string width = plan_.precision == DType::kFp16 ? "fp16" : "bf16";
    switch (plan_.fp8) {
      case Fp8::kNone:
        return width + "_mixed";
      case Fp8::kDelayed:
        return width + "_with_fp8_delayed_scaling_mixed";
      case Fp8::kCurrent:
        return width + "_with_fp8_current_scaling_mixed";
      case Fp8::kBlock:
        return width + "_with_fp8_subchannel_scaling_mixed";
      case Fp8::kMxfp8:
        return width + "_with_mxfp8_mixed";
      case Fp8::kNvfp4:
        return width + "_with_nvfp4_mixed";
    }
    return width + "_mixed";
  }

  /// What the plan says of fp8_param_gather where its recipe says otherwise; empty: nothing.
  std::string overridden_gather() const {
    program::Plan by_recipe = plan_;
    by_recipe.fp8_parameter_gather = program::Fp8Gather::kStack;
    const program::StackTraits& bridge = *program::find_stack("megatron-bridge");
    const bool narrow = program::keeps_parameters_in_8_bits(plan_, bridge);
    if (narrow == program::keeps_parameters_in_8_bits(by_recipe, bridge)) return "";
    return narrow ? "True" : "False";
  }

  void arithmetic() {
    const bool half = plan_.precision == DType::kBf16 || plan_.precision == DType::kFp16;
    if (const std::string gather = overridden_gather(); !gather.empty()) {
      set("cfg", "mixed_precision", fmt::format("get_mixed_precision_config(\"{}\")", recipe()));
      set("cfg.mixed_precision", "fp8_param_gather", gather);
    } else if (half) {
      set_text("cfg", "mixed_precision", recipe());
    } else {
      set("cfg", "mixed_precision", "None");
      if (plan_.fp8 != Fp8::kNone) lose("fp8", "with precision fp32; Transformer Engine casts bf16 only");
    }
    set_flag("cfg.ddp", "grad_reduce_in_fp32", plan_.reduce_dtype == DType::kFp32);
    // Compared with members of the enumeration: a text would be none of them.
    set(kModel, "attention_backend",
        plan_.attention == program::Attention::kFlash ? "AttnBackend.flash" : "AttnBackend.unfused");
  }

  void lose_fields() {
    const program::Offload& o = plan_.offload;
    if (o.optimizer == Storage::kDisk) lose("offload.optimizer", "disk; the state stays on the device", "none");
    if (o.gradients != Storage::kNone) lose("offload.gradients", "gradients stay on the device", "none");
    if (o.parameters != Storage::kNone) lose("offload.parameters", "parameters stay on the device", "none");
    if (o.activations != Storage::kNone) lose("offload.activations", "activations stay on the device", "none");
    if (plan_.compression != program::Compression::kNone) lose("compression", "gradients go uncompressed", "none");
  }

  const program::Job& job_;
  const Plan& plan_;
  const hardware::Cluster& cluster_;
  Launch launch_;
};

}  // namespace

Launch export_megatron_bridge(const program::Job& job, const hardware::Cluster& cluster) {
  return MegatronBridgeExport(job, cluster).write();
}

}  // namespace trivium::planner::launch
