// accelerate: YAML for `accelerate launch --config_file`; FSDP where the plan has no pipeline, else Megatron-LM below.
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

const char* yes(bool value) { return value ? "true" : "false"; }

class AccelerateExport {
 public:
  explicit AccelerateExport(const program::Job& job) : job_(job), plan_(job.plan) {}

  Launch write(const hardware::Cluster& cluster) {
    const Machines machines = machines_of(plan_, cluster, launch_.losses);
    launch_.form = "YAML";
    const bool is_megatron = plan_.pipeline > 1 || plan_.expert > 1 || plan_.zero_stage == 1;
    const bool is_ddp = !is_megatron && plan_.zero_stage == 0 && plan_.tensor * plan_.context == 1;
    launch_.text = fmt::format(
        "# {}.\n{}compute_environment: LOCAL_MACHINE\ndistributed_type: {}\nmixed_precision: {}\nnum_machines: {}\n"
        "num_processes: {}\nmachine_rank: 0\nmain_process_ip: HEAD\nmain_process_port: 29500\nrdzv_backend: static\n"
        "main_training_function: main\n",
        title_of(job_, Trainer::kAccelerate), domain_comment(machines),
        is_megatron ? "MEGATRON_LM"
        : is_ddp    ? plan_.data > 1 ? "MULTI_GPU" : "'NO'"
                    : "FSDP",
        precision(), machines.nodes, plan_.ranks());
    if (is_megatron) {
      megatron();
    } else if (!is_ddp) {
      fsdp();
    }
    if (!is_megatron) script_has_to(is_ddp);
    lose("model", fmt::format("{}, its sequence and its optimizer live in the training script", job_.model.name));
    lose_placement(plan_, kDataInsidePipeline, launch_.losses);
    if (plan_.compression != program::Compression::kNone) lose("compression", "gradients go uncompressed", "none");
    lose_common(plan_, launch_.losses);
    lose_fp8(plan_, launch_.losses);
    lose_moments(plan_, "moments stay in fp32", launch_.losses);
    return std::move(launch_);
  }

 private:
  void line(std::string text) { launch_.text += std::move(text) + "\n"; }
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  std::string precision() const {
    if (plan_.precision == DType::kBf16 || plan_.precision == DType::kFp16) {
      return std::string(program::name_of(plan_.precision));
    }
    return "'no'";
  }

  void megatron() {
    const auto set = [&](const char* key, const std::string& value) {
      line(fmt::format("  megatron_lm_{}: {}", key, value));
    };
    line("megatron_lm_config:");
    set("tp_degree", std::to_string(plan_.tensor));
    set("pp_degree", std::to_string(plan_.pipeline));
    set("context_parallel_size", std::to_string(plan_.context));
    set("expert_model_parallel_size", std::to_string(plan_.expert));
    if (program::folds_experts(plan_)) lose("expert_tensor", "tensor ranks split every expert", "0");
    set("num_micro_batches", std::to_string(program::micro_batches(plan_, job_.training.global_batch)));
    set("sequence_parallelism", yes(plan_.sequence_parallel));
    if (plan_.recompute != Recompute::kNone) {
      set("recompute_granularity", std::string(program::name_of(plan_.recompute)));
    }
    if (plan_.recompute == Recompute::kFull) {
      set("recompute_method", "uniform");
      set("recompute_num_layers", std::to_string(plan_.recompute_group));
    }
    set("use_distributed_optimizer", yes(plan_.zero_stage >= 1));
    set("attention_backend", plan_.attention == program::Attention::kFlash ? "flash" : "unfused");
    if (plan_.offload.optimizer == Storage::kHost) set("optimizer_cpu_offload", "true");
    set("gradient_clipping", fmt::format("{:g}", job_.training.optimizer.clip_norm));
    lose_megatron_fields();
  }

  void lose_megatron_fields() {
    if (plan_.zero_stage >= 2) {
      lose("zero_stage", fmt::format("{}; written as 1 with pipeline or expert parallelism", plan_.zero_stage), "1");
    }
    if (plan_.virtual_stages > 1) lose("virtual_stages", "stages are not interleaved; 1f1b", "1");
    if (plan_.pipeline > 1 && !runs_usual_schedule(plan_)) {
      lose("schedule", fmt::format("{}; written as 1f1b", name_of(plan_.schedule)), usual_schedule_of(plan_));
    }
    const std::vector<int> layers = program::chunk_layers(job_);
    if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end()) {
      lose("stage_layers", "stages are equal; the layers must divide", std::string(kCleared));
    }
    if (plan_.bucket_bytes > 0) lose("bucket_bytes", "not a setting of accelerate");
    lose_overlap();
    if (plan_.offload.gradients != Storage::kNone) lose("offload.gradients", "gradients stay on the device", "none");
    if (plan_.offload.parameters != Storage::kNone) lose("offload.parameters", "parameters stay on the device", "none");
    if (plan_.offload.activations != Storage::kNone)
      lose("offload.activations", "activations stay on the device", "none");
    if (plan_.offload.optimizer == Storage::kDisk)
      lose("offload.optimizer", "disk; the state stays on the device", "none");
  }

  void lose_overlap() {
    const program::Overlap& o = plan_.overlap;
    if (o.gradient_reduction || o.parameter_gather || o.tensor || o.expert)
      lose("overlap", "not a setting of accelerate");
  }

  void fsdp() {
    line("fsdp_config:\n  fsdp_version: 2");
    line(fmt::format("  fsdp_reshard_after_forward: {}", yes(plan_.zero_stage == 3)));
    line(fmt::format("  fsdp_activation_checkpointing: {}", yes(plan_.recompute == Recompute::kFull)));
    const program::Offload& o = plan_.offload;
    const bool some = o.optimizer != Storage::kNone || o.gradients != Storage::kNone || o.parameters != Storage::kNone;
    const bool all = o.optimizer == Storage::kHost && o.gradients == Storage::kHost && o.parameters == Storage::kHost;
    line(fmt::format("  fsdp_offload_params: {}", yes(some)));
    line("  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_state_dict_type: SHARDED_STATE_DICT");
    if (some && !all) lose("offload", "parameters, gradients and optimizer go to the host together");
    const int group = plan_.shard_group > 0 ? std::max(1, plan_.shard_group / plan_.context) : plan_.data;
    const int shard = plan_.zero_stage == 0 ? 1 : group;
    line("parallelism_config:");
    line(fmt::format("  parallelism_config_dp_replicate_size: {}", std::max(1, plan_.data / shard)));
    line(fmt::format("  parallelism_config_dp_shard_size: {}", shard));
    line(fmt::format("  parallelism_config_tp_size: {}", plan_.tensor));
    line(fmt::format("  parallelism_config_cp_size: {}", plan_.context));
    if (plan_.zero_stage == 0 && plan_.data > 1) {
      lose("zero_stage", "0; replicas with tensor or context parallelism are refused unless state is split too");
    }
    if (plan_.sequence_parallel) lose("sequence_parallel", "the tensor plan of the script decides");
    if (plan_.bucket_bytes > 0) lose("bucket_bytes", "gradients are reduced block by block");
    if (plan_.reduce_dtype != plan_.precision) {  // accelerate/utils/dataclasses.py, set_mixed_precision
      lose("reduce_dtype", fmt::format("{}; FSDP reduces in mixed_precision's width", name_of(plan_.reduce_dtype)),
           std::string(name_of(plan_.precision)));
    }
  }

  void script_has_to(bool is_ddp) {
    lose_groups(plan_, launch_.losses);
    if (is_ddp && plan_.recompute == Recompute::kFull) lose("recompute", "full; to be switched on in the script");
    if (plan_.recompute == Recompute::kSelective) lose("recompute", "selective; to be written in the script");
    if (plan_.offload.activations != Storage::kNone)
      lose("offload.activations", "activations stay on the device", "none");
    lose("micro_batch", fmt::format("{}, accumulated {} times, is set in the script", plan_.micro_batch,
                                    program::micro_batches(plan_, job_.training.global_batch)));
    lose("attention", fmt::format("{} is chosen in the script", program::name_of(plan_.attention)));
  }

  const program::Job& job_;
  const Plan& plan_;
  Launch launch_;
};

}  // namespace

Launch export_accelerate(const program::Job& job, const hardware::Cluster& cluster) {
  return AccelerateExport(job).write(cluster);
}

}  // namespace trivium::planner::launch
