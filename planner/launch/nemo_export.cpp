// NeMo 2.x: a Python file that takes the GPT-3 recipe and sets what the plan says. Megatron-Core runs below it.
#include <fmt/format.h>

#include "planner/launch/export_parts.h"

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
        "# {}.\n{}"
        "import nemo_run as run\n"
        "from nemo.collections import llm\n"
        "from nemo.lightning import MegatronMixedPrecision\n\n"
        "recipe = llm.gpt3_175b.pretrain_recipe(num_nodes={}, num_gpus_per_node={})\n"
        "recipe.trainer.max_steps = {}\n"
        "recipe.trainer.callbacks = []  # the recipe's own overlap settings are for its own split\n",
        title_of(job_, Trainer::kNemo), domain_comment(machines), machines.nodes, machines.devices,
        steps_of(job_.training, launch_.losses));
    model();
    split();
    sharding();
    batch();
    lose_fields();
    lose_common(plan_, launch_.losses, true);
    lose_fp8(plan_, launch_.losses);
    lose_moments(plan_, "moments stay in fp32", launch_.losses);
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
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  void model() {
    launch_.text += "\n" + transformer_config(job_.model, job_.training, kConfig, launch_.losses);
    lose("model.vocab", fmt::format("{}; the tokenizer sets the vocabulary", job_.model.vocab));
    if (job_.model.rotary.scaling != models::RotaryScaling::kNone)
      lose("rotary", "scaled frequencies; written without");
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
    set(kStrategy, "expert_tensor_parallel_size", program::expert_tensor_ranks(plan_));
    if (const std::string layout = pipeline_layout(job_); !layout.empty()) {
      set(kStrategy, "pipeline_model_parallel_layout", "\"" + layout + "\"");
    }
    const bool inside = !has_order(plan_, kDataInsidePipeline) && has_order(plan_, kPipelineInsideData);
    set_flag(kStrategy, "use_tp_pp_dp_mapping", inside);
    if (!inside) lose_placement(plan_, kDataInsidePipeline, launch_.losses);
    if (plan_.pipeline > 1 && !runs_usual_schedule(plan_)) {
      lose("schedule", fmt::format("{}; Megatron-Core runs 1f1b", name_of(plan_.schedule)), usual_schedule_of(plan_));
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
    if (!plan_.recompute_modules.empty())
      set(kConfig, "recompute_modules", fmt::format("[\"{}\"]", fmt::join(module_names(plan_), "\", \"")));
    const bool full = plan_.recompute == Recompute::kFull;
    const bool some = full && plan_.recompute_layers > 0;
    set(kConfig, "recompute_method", some ? "\"block\"" : full ? "\"uniform\"" : "None");
    set(kConfig, "recompute_num_layers", full ? std::to_string(recomputed_together(plan_)) : "None");
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
    if (o.optimizer == Storage::kDisk) lose("offload.optimizer", "disk; the state stays on the device", "none");
    if (o.gradients != Storage::kNone) lose("offload.gradients", "gradients stay on the device", "none");
    if (o.parameters != Storage::kNone) lose("offload.parameters", "parameters stay on the device", "none");
    if (o.activations != Storage::kNone) lose("offload.activations", "activations stay on the device", "none");
    if (plan_.compression != program::Compression::kNone) lose("compression", "gradients go uncompressed", "none");
    if (plan_.context > 1 && plan_.context_method == program::ContextMethod::kAllToAll) {
      set(kConfig, "cp_comm_type", "\"a2a\"");
    }
    if (plan_.overlap.tensor) lose("overlap.tensor", "needs a buffer configuration of the recipe's callback");
    if (plan_.overlap.expert) lose("overlap.expert", "exchanges with the experts run alone", "false");
  }

  const program::Job& job_;
  const Plan& plan_;
  Launch launch_;
};

}  // namespace

Launch export_nemo(const program::Job& job, const hardware::Cluster& cluster) { return NemoExport(job).write(cluster); }

}  // namespace trivium::planner::launch
