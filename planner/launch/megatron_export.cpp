// Megatron-LM: arguments of pretrain_gpt.py.
#include <fmt/format.h>

#include <algorithm>

#include "hardware_profiles/capabilities.h"
#include "planner/launch/export_parts.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;
using program::Storage;

class MegatronExport {
 public:
  explicit MegatronExport(const program::Job& job) : job_(job), plan_(job.plan) {}

  Launch write(const hardware::Cluster& cluster) {
    const Machines machines = machines_of(plan_, cluster, launch_.losses);
    launch_.form = "shell script";
    launch_.text = script_head(title_of(job_, Trainer::kMegatron), machines);
    const bool is_fsdp = plan_.zero_stage >= 2;
    if (plan_.overlap.expert) {
      launch_.text += "export CUDA_DEVICE_MAX_CONNECTIONS=8\n";  // as Megatron-Bridge's recipes have it
    } else if (!is_fsdp && (plan_.tensor > 1 || plan_.context > 1)) {
      launch_.text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
    } else if (is_fsdp) {
      launch_.text += "unset CUDA_DEVICE_MAX_CONNECTIONS\n";
    }
    reaches_peers_ = overlaps_in_peer_buffers(plan_, cluster, launch_.losses);
    if (reaches_peers_ && plan_.sequence_parallel && lacks_multicast(cluster)) {
      launch_.text += "export UB_SKIPMC=1\n";
    }
    launch_.text += fmt::format(
        "$start torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint "
        "\"$HEAD:29500\" \\\n"
        "  pretrain_gpt.py \\\n",
        machines.nodes, machines.devices);
    section(dispatched(model_arguments(job_.model, Trainer::kMegatron, launch_.losses), cluster), false);
    split();
    stages();
    sharding();
    memory();
    arithmetic();
    overlap();
    section(std::move(flags_), false);
    section(training_arguments(job_.training, launch_.losses), false);
    optimizer();
    section({{"tokenizer-type", {"NullTokenizer"}},
             {"vocab-size", {std::to_string(job_.model.vocab)}},
             {"mock-data", {}},
             {"eval-iters", {"0"}},
             {"log-interval", {"1"}},
             {"log-throughput", {}}},
            true);
    lose_common(plan_, launch_.losses, true);
    return std::move(launch_);
  }

 private:
  void section(const std::vector<Argument>& flags, bool last) {
    std::string lines = shell_lines(flags);
    if (!last) lines.insert(lines.size() - 1, " \\");
    launch_.text += lines;
  }

  // The dispatcher's type is among the model's arguments.
  std::vector<Argument> dispatched(std::vector<Argument> flags, const hardware::Cluster& cluster) {
    // training/arguments.py refuses grouped products below compute capability 8.0.
    const auto old = [](const hardware::NodeGroup& group) {
      return !hardware::has(group.node, hardware::Capability::kBf16);
    };
    if (std::ranges::any_of(cluster.groups, old)) {
      const auto dropped = std::erase_if(flags, [](const Argument& flag) { return flag.name == "moe-grouped-gemm"; });
      if (dropped > 0) lose("stack", "products of experts run one after the other; this device has no grouped ones");
    }
    const std::string_view backend = flex_backend_of(plan_, cluster, launch_.losses);
    const auto type = std::ranges::find(flags, "moe-token-dispatcher-type", &Argument::name);
    if (backend.empty() || type == flags.end()) return flags;
    type->values = {"flex"};
    flags.push_back({"moe-flex-dispatcher-backend", {std::string(backend)}});
    return flags;
  }

  void optimizer() {
    const auto settings = muon_settings(job_, launch_.losses);
    if (settings.empty()) return;
    std::vector<Argument> flags{{"optimizer", {"muon"}}};
    for (auto [name, value] : settings) {
      std::ranges::replace(name, '_', '-');
      flags.push_back({name, {value}});
    }
    section(flags, false);
  }

  void add(const char* name) { flags_.push_back({name, {}}); }
  void add(const char* name, std::int64_t value) { flags_.push_back({name, {std::to_string(value)}}); }
  void add(const char* name, std::string value) { flags_.push_back({name, {std::move(value)}}); }
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  void split() {
    add("tensor-model-parallel-size", plan_.tensor);
    if (plan_.sequence_parallel) add("sequence-parallel");
    add("pipeline-model-parallel-size", plan_.pipeline);
    add("context-parallel-size", plan_.context);
    if (plan_.context > 1) {
      add("cp-comm-type", std::string(exchange_of(plan_)));
      if (plan_.context_heads > 1) {  // neighbours first
        flags_.push_back({"hierarchical-context-parallel-sizes",
                          {std::to_string(plan_.context_heads), std::to_string(plan_.context / plan_.context_heads)}});
      }
    }
    if (plan_.expert > 1) add("expert-model-parallel-size", plan_.expert);
    if (program::folds_experts(plan_)) add("expert-tensor-parallel-size", plan_.expert_tensor);
    add("micro-batch-size", plan_.micro_batch);
    add("global-batch-size", job_.training.global_batch);
    add("seq-length", job_.training.sequence);
    if (!has_order(plan_, kDataInsidePipeline) && has_order(plan_, kPipelineInsideData)) {
      add("use-tp-pp-dp-mapping");
    } else {
      lose_placement(plan_, kDataInsidePipeline, launch_.losses);
    }
  }

  void stages() {
    if (plan_.pipeline > 1 && !runs_usual_schedule(plan_)) {
      lose("schedule", fmt::format("{}; Megatron-LM runs 1f1b", name_of(plan_.schedule)), usual_schedule_of(plan_));
    }
    const std::string layout = pipeline_layout(job_);
    if (!layout.empty()) return add("pipeline-model-parallel-layout", layout);
    if (plan_.virtual_stages > 1) add("num-virtual-stages-per-pipeline-rank", plan_.virtual_stages);
  }

  void sharding() {
    if (plan_.zero_stage == 1) add("use-distributed-optimizer");
    if (plan_.zero_stage >= 2) {
      add("use-megatron-fsdp");
      add("data-parallel-sharding-strategy", plan_.zero_stage == 2 ? "optim_grads" : "optim_grads_params");
      add("ckpt-format", "fsdp_dtensor");
    }
    const int ranks = plan_.data * plan_.context;
    if (plan_.zero_stage > 0 && plan_.shard_group > 0 && plan_.shard_group != ranks) {
      add("num-distributed-optimizer-instances", std::max(1, ranks / plan_.shard_group));
    }
    if (plan_.bucket_bytes > 0) {
      add("ddp-bucket-size", bucket_elements(plan_));
      if (plan_.pipeline > 1) lose("bucket_bytes", "acts on the first stage alone; the others reduce in one bucket");
    }
    if (plan_.compression != program::Compression::kNone) {
      lose("compression", fmt::format("{}; gradients go uncompressed", name_of(plan_.compression)), "none");
    }
  }

  void memory() {
    if (plan_.recompute == Recompute::kSelective) {
      add("recompute-granularity", "selective");
      if (!plan_.recompute_modules.empty()) {
        const auto names = module_names(plan_);
        flags_.push_back({"recompute-modules", {names.begin(), names.end()}});
      }
    }
    if (plan_.recompute == Recompute::kFull) {
      add("recompute-granularity", "full");
      add("recompute-method", plan_.recompute_layers > 0 ? "block" : "uniform");
      add("recompute-num-layers", recomputed_together(plan_));
    }
    const program::Offload& offload = plan_.offload;
    if (offload.optimizer == Storage::kHost) {
      add("optimizer-cpu-offload");
      add("optimizer-offload-fraction", 1);
      add("use-precision-aware-optimizer");
    }
    moments();
    if (offload.activations == Storage::kHost) {
      add("fine-grained-activation-offloading");
      flags_.push_back({"offload-modules", {"attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm"}});
    }
    if (offload.optimizer == Storage::kDisk) lose("offload.optimizer", "disk; the state stays on the device", "none");
    if (offload.activations == Storage::kDisk) lose("offload.activations", "disk; they stay on the device", "none");
    if (offload.gradients != Storage::kNone) lose("offload.gradients", "gradients stay on the device", "none");
    if (offload.parameters != Storage::kNone) lose("offload.parameters", "parameters stay on the device", "none");
  }

  void moments() {
    if (plan_.moment_dtype == program::Moments::kFp32) return;
    if (const auto why = widens_moments_in_megatron(plan_); !why.empty())
      return lose_moments(plan_, why, launch_.losses);
    add("use-precision-aware-optimizer");
    add("exp-avg-dtype", std::string(name_of(plan_.moment_dtype)));
    add("exp-avg-sq-dtype", std::string(name_of(plan_.moment_dtype)));
  }

  void arithmetic() {
    const bool narrow = plan_.reduce_dtype == DType::kBf16 || plan_.reduce_dtype == DType::kFp16;
    if (plan_.precision == DType::kBf16) {
      add("bf16");
      if (narrow) add("grad-reduce-in-bf16");
    } else if (plan_.precision == DType::kFp16) {
      add("fp16");
      if (!narrow) add("accumulate-allreduce-grads-in-fp32");
    }
    products();
    add("attention-backend", plan_.attention == program::Attention::kFlash ? "flash" : "unfused");
    add("transformer-impl", "transformer_engine");
  }

  void products() {
    if (plan_.fp8 == program::Fp8::kNone) return;
    if (plan_.precision == DType::kFp32) lose("fp8", "with precision fp32; Transformer Engine casts bf16 only");
    if (plan_.fp8 == program::Fp8::kNvfp4) {
      add("fp4-format", "e2m1");
      return;
    }
    add("fp8-format", program::scales_tensors(plan_.fp8) ? "hybrid" : "e4m3");
    add("fp8-recipe", std::string(fp8_recipe(plan_.fp8)));
    if (plan_.fp8_parameter_gather == program::Fp8Gather::kOn) {
      add("fp8-param-gather");
      if (plan_.fp8 == program::Fp8::kMxfp8) add("reuse-grad-buf-for-mxfp8-param-ag");  // which its arguments ask for
    }
    if (plan_.fp8 != program::Fp8::kDelayed) return;
    add("fp8-amax-history-len", program::kAmaxHistory);
    add("fp8-amax-compute-algo", "max");
  }

  void overlap() {
    const program::Overlap& overlap = plan_.overlap;
    if (overlap.gradient_reduction) add("overlap-grad-reduce");
    if (overlap.parameter_gather) {
      if (plan_.zero_stage > 0 && overlap.gradient_reduction) {
        add("overlap-param-gather");
      } else {
        lose("overlap.parameter_gather", "needs ZeRO and overlap.gradient_reduction", "false");
      }
    }
    if (plan_.virtual_stages > 1 && !overlap.pipeline) add("no-overlap-p2p-communication");
    if (overlap.expert) {
      add("overlap-moe-expert-parallel-comm");
      add("delay-wgrad-compute");
    }
    if (!reaches_peers_) return;
    if (plan_.sequence_parallel) {
      add("tp-comm-overlap");
    } else {
      lose("overlap.tensor", "needs sequence_parallel", "false");
    }
  }

  const program::Job& job_;
  const Plan& plan_;
  bool reaches_peers_ = false;  ///< overlap.tensor, where the cluster has what it takes
  Launch launch_;
  std::vector<Argument> flags_;
};

}  // namespace

Launch export_megatron(const program::Job& job, const hardware::Cluster& cluster) {
  return MegatronExport(job).write(cluster);
}

}  // namespace trivium::planner::launch
