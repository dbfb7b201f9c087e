// accelerate's YAML (`accelerate launch --config_file`): how processes share the model, not which model.
#include "planner/launch/forms/accelerate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quote.h"
#include "planner/launch/forms/forms.h"

namespace trivium::planner::launch::forms {
namespace {

using program::DType;
using program::Plan;
using program::Storage;

constexpr std::int64_t kMostProcesses = 1 << 20;

class AccelerateImport {
 public:
  AccelerateImport(Settings& settings, const ImportRequest& request, Imported& imported)
      : settings_(settings), request_(request), imported_(imported), plan_(imported.job.plan) {}

  void read() {
    const std::string type = settings_.text({"distributed_type"}).value_or("NO");
    ranks_ = ranks(type);
    plan_.attention = program::Attention::kFlash;
    plan_.stack = "torchtitan-fsdp2-eager";
    if (settings_.text({"dynamo_config.dynamo_backend"}).value_or("NO") != "NO") plan_.stack = "torchtitan-fsdp2";
    precision();
    if (type == "MEGATRON_LM") {
      megatron();
    } else if (type == "FSDP") {
      fsdp();
    } else if (type == "NO" || type == "false" || type.starts_with("MULTI_")) {
      plan_.data = ranks_;
      plan_.overlap.gradient_reduction = plan_.data > 1;
      plan_.reduce_dtype = DType::kFp32;  // DDP under autocast: gradients are the parameters'
    } else {
      settings_.fail_at(
          *settings_.find({"distributed_type"}),
          fmt::format("distributed_type {} is not read; FSDP, DEEPSPEED, MEGATRON_LM, MULTI_GPU and NO are",
                      base::one_line(type)));
    }
  }

 private:
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }

  int ranks(const std::string& type) {
    if (request_.fixes_ranks) return request_.ranks;
    const auto given = settings_.count({"num_processes"}, 1, kMostProcesses);
    if (type == "NO" || type == "false") return 1;
    if (given) return static_cast<int>(*given);
    lose("num_processes", fmt::format("is not in the file; taken as {}", request_.ranks));
    return std::max(1, request_.ranks);
  }

  int degree(const char* name) {
    return static_cast<int>(settings_.count({name}, 1, kMostRanksOfADimension).value_or(1));
  }

  int copies_of(const char* name) { return static_cast<int>(settings_.count({name}, 1, kMostProcesses).value_or(1)); }

  int replicas_beside(std::int64_t of_replica) {
    if (ranks_ % of_replica != 0) {
      settings_.fail(fmt::format("{} processes are not a multiple of tensor {} x context {} x pipeline {}", ranks_,
                                 plan_.tensor, plan_.context, plan_.pipeline));
    }
    return static_cast<int>(ranks_ / of_replica);
  }

  void precision() {
    const std::string width = settings_.text({"mixed_precision"}).value_or("no");
    plan_.precision = width == "bf16" || width == "fp8" ? DType::kBf16 : width == "fp16" ? DType::kFp16 : DType::kFp32;
    plan_.reduce_dtype = plan_.precision;
    if (width == "fp8") {
      const std::string backend = settings_.text({"fp8_config.backend"}).value_or("TE");
      plan_.fp8 = backend == "AO" ? program::Fp8::kCurrent : program::Fp8::kDelayed;
      if (backend != "AO" && backend != "TE") lose("fp8_config.backend", base::one_line(backend) + " taken as TE");
    } else if (width != "bf16" && width != "fp16" && width != "no" && width != "false") {
      settings_.fail_at(*settings_.find({"mixed_precision"}),
                        fmt::format("mixed_precision {} is none of no, bf16, fp16 and fp8", base::quote(width)));
    }
  }

  // accelerate/utils/dataclasses.py, FullyShardedDataParallelPlugin: numbers are those of torch's ShardingStrategy.
  void fsdp() {
    if (settings_.count({"fsdp_config.fsdp_version"}, 1, 2).value_or(1) == 1) plan_.stack = "fsdp";
    split_of_fsdp();
    const std::string keeps = settings_.text({"fsdp_config.fsdp_reshard_after_forward"}).value_or("true");
    std::string strategy = settings_.text({"fsdp_config.fsdp_sharding_strategy"}).value_or("");
    if (strategy.empty() && keeps != "true" && keeps != "false") strategy = keeps;
    const auto is = [&](const char* name, const char* number) { return strategy == name || strategy == number; };
    const bool hybrid = is("HYBRID_SHARD", "4") || is("HYBRID_SHARD_ZERO2", "5");
    plan_.zero_stage = is("NO_SHARD", "3")                                                             ? 0
                       : is("SHARD_GRAD_OP", "2") || is("HYBRID_SHARD_ZERO2", "5") || keeps == "false" ? 2
                                                                                                       : 3;
    if (hybrid) hybrid_groups();
    if (plan_.shard_group == 1 || plan_.data * plan_.context == 1) plan_.zero_stage = plan_.shard_group = 0;
    plan_.overlap.gradient_reduction = plan_.data * plan_.context > 1;
    plan_.overlap.parameter_gather = plan_.zero_stage > 0;
    if (settings_.is_on({"fsdp_config.fsdp_activation_checkpointing"})) plan_.recompute = program::Recompute::kFull;
    if (settings_.is_on({"fsdp_config.fsdp_offload_params"})) {
      plan_.offload.optimizer = plan_.offload.gradients = plan_.offload.parameters = Storage::kHost;
    }
    const std::string prefetch = settings_.text({"fsdp_config.fsdp_backward_prefetch"}).value_or("BACKWARD_PRE");
    if (prefetch != "BACKWARD_PRE")
      lose("fsdp_config.fsdp_backward_prefetch",
           base::one_line(prefetch) + " taken as BACKWARD_PRE: the next layer's parameters are gathered ahead");
    for (const char* other : {"fsdp_config.fsdp_forward_prefetch", "fsdp_config.fsdp_auto_wrap_policy",
                              "fsdp_config.fsdp_transformer_layer_cls_to_wrap", "fsdp_config.fsdp_use_orig_params",
                              "fsdp_config.fsdp_sync_module_states", "fsdp_config.fsdp_state_dict_type",
                              "fsdp_config.fsdp_cpu_ram_efficient_loading"}) {
      settings_.find({other});
    }
  }

  void split_of_fsdp() {
    plan_.tensor = degree("parallelism_config.parallelism_config_tp_size");
    plan_.context = degree("parallelism_config.parallelism_config_cp_size") *
                    degree("parallelism_config.parallelism_config_sp_size");
    plan_.context_method = settings_.has({"parallelism_config.parallelism_config_sp_size"})
                               ? program::ContextMethod::kAllToAll
                               : program::ContextMethod::kRing;
    plan_.data = replicas_beside(std::int64_t{plan_.tensor} * plan_.context);
    const int copies = copies_of("parallelism_config.parallelism_config_dp_replicate_size");
    const Argument* shard = settings_.find({"parallelism_config.parallelism_config_dp_shard_size"});
    const int shards = copies_of("parallelism_config.parallelism_config_dp_shard_size");
    if (shard != nullptr && std::int64_t{copies} * shards != plan_.data) {
      settings_.fail_at(*shard, fmt::format("dp_replicate {} x dp_shard {} are not the {} replicas that {} processes "
                                            "leave with tensor {} x context {}",
                                            copies, shards, plan_.data, ranks_, plan_.tensor, plan_.context));
    }
    if (copies > 1) plan_.shard_group = std::max(1, plan_.data / copies) * plan_.context;
    if (plan_.tensor > 1) lose("parallelism_config_tp_size", "without sequence parallelism, as transformers' tp_plan");
  }

  // Shards within a node, replicas between nodes.
  void hybrid_groups() {
    const auto nodes = settings_.count({"num_machines"}, 1, kMostProcesses);
    const std::int64_t each = nodes ? ranks_ / *nodes : request_.devices_per_node;
    if (each > 0 && ranks_ % each == 0 && each < ranks_) plan_.shard_group = static_cast<int>(each);
  }

  void megatron() {
    const auto name = [](const char* key) { return std::string("megatron_lm_config.megatron_lm_") + key; };
    const auto sizes = [&](const char* key) { return degree(name(key).c_str()); };
    const auto is_on = [&](const char* key) { return settings_.is_on({name(key).c_str()}); };
    plan_.stack = "megatron-core";
    plan_.tensor = sizes("tp_degree");
    plan_.pipeline = sizes("pp_degree");
    plan_.context = sizes("context_parallel_size");
    plan_.expert = sizes("expert_model_parallel_size");
    plan_.sequence_parallel = is_on("sequence_parallelism") && plan_.tensor > 1;
    plan_.data = replicas_beside(std::int64_t{plan_.tensor} * plan_.pipeline * plan_.context);
    plan_.zero_stage = is_on("use_distributed_optimizer") ? 1 : 0;
    plan_.reduce_dtype = plan_.precision == DType::kBf16 ? DType::kFp32 : plan_.precision;
    const std::string how = settings_.text({name("recompute_granularity").c_str()}).value_or("");
    if (is_on("recompute_activations") || how == "selective") plan_.recompute = program::Recompute::kSelective;
    if (how == "full") plan_.recompute = program::Recompute::kFull;
    settings_.find({name("recompute_method").c_str()});
    plan_.recompute_group = how == "full" ? sizes("recompute_num_layers") : 1;
    const bool unfused = settings_.text({name("attention_backend").c_str()}).value_or("flash") == "unfused";
    if (unfused) plan_.attention = program::Attention::kUnfused;
    if (is_on("optimizer_cpu_offload")) plan_.offload.optimizer = Storage::kHost;
    program::Optimizer& optimizer = imported_.job.training.optimizer;
    optimizer.clip_norm = settings_.number({name("gradient_clipping").c_str()}).value_or(optimizer.clip_norm);
    if (const auto count = settings_.count({name("num_micro_batches").c_str()})) {
      imported_.job.training.global_batch = *count * plan_.micro_batch * plan_.data;
    }
  }

  Settings& settings_;
  const ImportRequest& request_;
  Imported& imported_;
  Plan& plan_;
  int ranks_ = 1;
};

// accelerate/utils/dataclasses.py, DeepSpeedPlugin: what the plugin makes of its own keys, as DeepSpeed's JSON.
std::string json_of_plugin(Settings& settings) {
  const auto name = [](const char* key) { return std::string("deepspeed_config.") + key; };
  nlohmann::json json = nlohmann::json::object();
  auto& zero = json["zero_optimization"] = {{"stage", settings.count({name("zero_stage").c_str()}, 0, 3).value_or(2)}};
  for (const char* part : {"optimizer", "param"}) {
    const std::string key = fmt::format("offload_{}", part);
    const std::string device = settings.text({name((key + "_device").c_str()).c_str()}).value_or("none");
    if (device != "none") zero[key] = {{"device", device}};
  }
  json["gradient_accumulation_steps"] = settings.count({name("gradient_accumulation_steps").c_str()}).value_or(1);
  if (const auto clip = settings.number({name("gradient_clipping").c_str()})) json["gradient_clipping"] = *clip;
  const std::string width = settings.text({"mixed_precision"}).value_or("no");
  if (width == "bf16" || width == "fp16") json[width] = {{"enabled", true}};
  for (const char* other : {"zero3_init_flag", "zero3_save_16bit_model", "deepspeed_multinode_launcher",
                            "deepspeed_hostfile", "deepspeed_moe_layer_cls_names"}) {
    settings.find({name(other).c_str()});
  }
  return json.dump();
}

}  // namespace

bool is_accelerate(const yaml::Node& root) {
  const auto begins = [](const yaml::Member& member) {
    return member.key == "fsdp_config" || member.key == "deepspeed_config" || member.key == "mixed_precision" ||
           member.key == "compute_environment" || member.key == "num_processes";
  };
  return root.has("distributed_type") || (root.has("compute_environment") && std::ranges::any_of(root.members, begins));
}

bool uses_deepspeed(Settings& settings) { return settings.text({"distributed_type"}).value_or("") == "DEEPSPEED"; }

std::string deepspeed_json_of(Settings& settings, const ImportRequest& request, std::string& where) {
  const auto file = settings.text({"deepspeed_config.deepspeed_config_file"});
  if (!file) return json_of_plugin(settings);
  settings.find({"deepspeed_config.zero3_init_flag"});
  const auto content = request.surroundings.read_file ? request.surroundings.read_file(*file) : std::nullopt;
  if (!content) {
    settings.fail_at(*settings.find({"deepspeed_config.deepspeed_config_file"}),
                     fmt::format("{} is not there; import the DeepSpeed JSON itself", base::quote(*file)));
  }
  where = base::one_line(*file);
  return *content;
}

void read_accelerate(Settings& settings, const ImportRequest& request, Imported& imported) {
  AccelerateImport(settings, request, imported).read();
}

void lose_unread_of_accelerate(const Settings& settings, std::vector<Loss>& losses) {
  lose_unread_keys(settings,
                   {"compute_environment", "debug", "downcast_bf16", "enable_cpu_affinity", "machine_rank",
                    "main_process", "main_training_function", "num_machines", "rdzv", "same_network", "tpu_", "use_cpu",
                    "gpu_ids", "mpirun", "fp8_config", "dynamo_config", "commands", "command_file", "ipex"},
                   losses);
}

Imported import_accelerate(const ImportRequest& request, const Document& document) {
  Settings settings(yaml::settings_of(document.root), request.where);
  if (!request.model) settings.fail("accelerate's YAML does not say the model; give --model NAME");
  if (uses_deepspeed(settings)) {
    ImportRequest json = request;
    json.text = deepspeed_json_of(settings, request, json.where);
    if (!request.fixes_ranks) {
      const auto count = settings.count({"num_processes"}, 1, kMostProcesses);
      if (count) json.ranks = static_cast<int>(*count);
    }
    Imported imported = import_deepspeed(json);
    lose_unread_of_accelerate(settings, imported.losses);
    return imported;
  }
  Imported imported;
  imported.job.model = *request.model;
  imported.job.training.sequence = request.sequence > 0 ? request.sequence : request.model->max_sequence;
  imported.job.plan.micro_batch = 1;
  read_accelerate(settings, request, imported);
  program::Training& training = imported.job.training;
  if (training.global_batch == 0) training.global_batch = std::int64_t{imported.job.plan.data};
  if (request.global_batch > 0) training.global_batch = request.global_batch;
  imported.losses.push_back({"micro_batch", "is set in the training script; taken as 1"});
  lose_unread_of_accelerate(settings, imported.losses);
  return imported;
}

}  // namespace trivium::planner::launch::forms
