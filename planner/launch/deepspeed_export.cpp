// DeepSpeed: its JSON, and the Megatron-DeepSpeed command that takes it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/launch/export_parts.h"
#include "program/lower/layout.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;
using program::Schedule;
using program::Storage;

constexpr const char* kJsonFile = "ds_config.json";

// Sequence parallelism asks for one connection (megatron/arguments.py). The launcher hands other hosts only what
// .deepspeed_env says (deepspeed/launcher/runner.py).
constexpr const char* kOneConnection =
    "export CUDA_DEVICE_MAX_CONNECTIONS=1\necho CUDA_DEVICE_MAX_CONNECTIONS=1 >.deepspeed_env\n";

std::string device_of(Storage storage) {
  if (storage == Storage::kNone) return "none";
  return storage == Storage::kHost ? "cpu" : "nvme";
}

class DeepspeedExport {
 public:
  explicit DeepspeedExport(const program::Job& job) : job_(job), plan_(job.plan) {}

  Launch write(const hardware::Cluster& cluster) {
    const Machines machines = machines_of(plan_, cluster, launch_.losses);
    launch_.form = "shell script";
    settle_sharding();
    launch_.text = fmt::format(
        "#!/usr/bin/env bash\n# {}.\n# hosts: a line \"NAME slots={}\" for each of {} nodes.\n{}{}cat >{} "
        "<<'JSON'\n{}\nJSON\n",
        title_of(job_, Trainer::kDeepspeed), machines.devices, machines.nodes, domain_comment(machines),
        plan_.sequence_parallel ? kOneConnection : "", kJsonFile, config().dump(2));
    std::vector<Argument> flags = model_arguments(job_.model, Trainer::kDeepspeed, launch_.losses);
    command(flags);
    for (Argument& flag : training_arguments(job_.training, launch_.losses)) flags.push_back(std::move(flag));
    flags.push_back({"tokenizer-type", {"NullTokenizer"}});
    flags.push_back({"vocab-size", {std::to_string(job_.model.vocab)}});
    flags.push_back({"data-path", {"$DATA"}});
    launch_.text += fmt::format("deepspeed --hostfile hosts --num_nodes {} --num_gpus {} pretrain_gpt.py \\\n{}",
                                machines.nodes, machines.devices, shell_lines(flags));
    lose_fields();
    lose_common(plan_, launch_.losses);
    lose_fp8(plan_, launch_.losses);
    lose_moments(plan_, "moments stay in fp32", launch_.losses);
    return std::move(launch_);
  }

 private:
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  void settle_sharding() {
    zero_ = plan_.zero_stage;
    if (zero_ == 3 && job_.model.experts) {  // deepspeed/runtime/engine.py, _validate_zero3_moe_compatibility
      lose("zero_stage", "3; mixture layers are refused, written as 2", "2");
      zero_ = 2;
    }
    if (zero_ == 0 && plan_.pipeline > 1 && plan_.precision == DType::kBf16) {
      lose("zero_stage", "0; DeepSpeed's BF16_Optimizer shards the optimizer's states, written as 1", "1");
      zero_ = 1;
    }
    if (zero_ < 2 || plan_.pipeline == 1) return;
    lose("zero_stage", fmt::format("{}; the pipeline engine refuses 2 and 3, written as 1", zero_), "1");
    zero_ = 1;
  }

  nlohmann::ordered_json config() {
    nlohmann::ordered_json json{
        {"train_batch_size", job_.training.global_batch},
        {"train_micro_batch_size_per_gpu", plan_.micro_batch},
        {"gradient_accumulation_steps", program::micro_batches(plan_, job_.training.global_batch)},
        {"steps_per_print", 1},
        {"gradient_clipping", job_.training.optimizer.clip_norm}};
    if (plan_.precision == DType::kBf16) json["bf16"] = {{"enabled", true}};
    if (plan_.precision == DType::kFp16) json["fp16"] = {{"enabled", true}, {"loss_scale", 0}};
    DType wire = plan_.reduce_dtype;
    if (plan_.compression == program::Compression::kFp16) wire = DType::kFp16;
    if (wire != DType::kFp64) json["communication_data_type"] = program::name_of(wire);
    if (plan_.precision == DType::kBf16) json["data_types"] = {{"grad_accum_dtype", "fp32"}};
    json["zero_optimization"] = zero_section();
    if (plan_.offload.activations == Storage::kHost) {
      json["activation_checkpointing"] = {{"partition_activations", true}, {"cpu_checkpointing", true}};
    }
    return json;
  }

  nlohmann::ordered_json zero_section() {
    nlohmann::ordered_json zero{{"stage", zero_}, {"overlap_comm", plan_.overlap.gradient_reduction}};
    if (plan_.bucket_bytes > 0) zero["reduce_bucket_size"] = bucket_elements(plan_);
    if (plan_.shard_group > 0 && plan_.shard_group != plan_.data) {
      if (zero_ == 3) {
        zero["mics_shard_size"] = plan_.shard_group;
      } else {
        lose("shard_group", "subgroups need zero_stage 3; all data ranks share the state");
      }
    }
    const program::Offload& offload = plan_.offload;
    if (offload.optimizer != Storage::kNone) zero["offload_optimizer"] = {{"device", device_of(offload.optimizer)}};
    if (offload.parameters != Storage::kNone) {
      if (zero_ == 3) {
        zero["offload_param"] = {{"device", device_of(offload.parameters)}};
      } else {
        lose("offload.parameters", "needs zero_stage 3; parameters stay on the device", "none");
      }
    }
    if (offload.gradients != Storage::kNone && (zero_ < 2 || offload.optimizer == Storage::kNone)) {
      lose("offload.gradients", "gradients leave the device with the optimizer at zero_stage 2 and 3 alone", "none");
    }
    return zero;
  }

  void command(std::vector<Argument>& flags) {
    const auto add = [&](const char* name, std::vector<std::string> values = {}) {
      flags.push_back({name, std::move(values)});
    };
    add("deepspeed");
    add("deepspeed_config", {kJsonFile});
    add("zero-stage", {std::to_string(zero_)});
    add("tensor-model-parallel-size", {std::to_string(plan_.tensor)});
    if (plan_.sequence_parallel) add("sequence-parallel");
    if (plan_.pipeline > 1) {
      add("pipeline-model-parallel-size", {std::to_string(plan_.pipeline)});
      if (plan_.schedule == Schedule::kZeroBubble) add("enable-zbh1-pipeline");
    } else {
      add("no-pipeline-parallel");
    }
    if (plan_.context > 1) add("ds-sequence-parallel-size", {std::to_string(plan_.context)});
    if (plan_.expert > 1) add("moe-expert-parallel-size", {std::to_string(plan_.expert)});
    if (program::folds_experts(plan_)) lose("expert_tensor", "tensor ranks split every expert", "0");
    add("micro-batch-size", {std::to_string(plan_.micro_batch)});
    add("global-batch-size", {std::to_string(job_.training.global_batch)});
    add("seq-length", {std::to_string(job_.training.sequence)});
    if (plan_.precision == DType::kBf16) add("bf16");
    if (plan_.precision == DType::kFp16) add("fp16");
    if (plan_.attention == program::Attention::kFlash) add("use-flash-attn-v2");
    if (plan_.recompute == Recompute::kFull) {
      add("checkpoint-activations");
      add("checkpoint-num-layers", {std::to_string(plan_.recompute_group)});
      add("deepspeed-activation-checkpointing");
    }
    if (plan_.offload.optimizer == Storage::kHost) add("cpu-optimizer");
  }

  void lose_fields() {
    if (plan_.context > 1 && plan_.context_method == program::ContextMethod::kRing) {
      lose("context_method", "ring; DeepSpeed exchanges heads all to all (Ulysses)", "all_to_all");
    }
    if (plan_.virtual_stages > 1) lose("virtual_stages", "the pipeline engine runs plain 1F1B", "1");
    if (plan_.pipeline > 1 && !runs_usual_schedule(plan_) && plan_.schedule != Schedule::kZeroBubble) {
      lose("schedule", fmt::format("{}; the pipeline engine runs 1f1b", name_of(plan_.schedule)),
           usual_schedule_of(plan_));
    }
    const std::vector<int> layers = program::chunk_layers(job_);
    if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end()) {
      lose("stage_layers", "stages are balanced by the engine; there is no list", std::string(kCleared));
    }
    if (plan_.recompute == Recompute::kSelective) lose("recompute", "selective; nothing is recomputed", "none");
    if (plan_.compression == program::Compression::kTopK)
      lose("compression", "top_k; gradients go uncompressed", "none");
    if (plan_.compression == program::Compression::kFp16)
      lose("compression", "fp16; written as communication type", "none");
    if (plan_.offload.activations == Storage::kDisk)
      lose("offload.activations", "disk; they stay on the device", "none");
    if (plan_.overlap.parameter_gather) {
      lose("overlap.parameter_gather", "parameters are fetched when a module is reached", "false");
    }
    if (plan_.overlap.tensor) lose("overlap.tensor", "tensor collectives are not overlapped", "false");
    if (plan_.overlap.expert) lose("overlap.expert", "exchanges with the experts run alone", "false");
    lose_placement(plan_, kDataInsidePipeline, launch_.losses);
  }

  const program::Job& job_;
  const Plan& plan_;
  int zero_ = 0;
  Launch launch_;
};

}  // namespace

Launch export_deepspeed(const program::Job& job, const hardware::Cluster& cluster) {
  return DeepspeedExport(job).write(cluster);
}

}  // namespace trivium::planner::launch
