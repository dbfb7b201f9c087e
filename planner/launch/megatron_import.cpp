// Megatron-LM's arguments as a job.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/quote.h"
#include "planner/launch/export_parts.h"
#include "planner/launch/forms/forms.h"
#include "planner/launch/import_parts.h"
#include "planner/launch/megatron_plan.h"
#include "program/lower/layout.h"
#include "program/lower/parameter_gather.h"
#include "program/plan/fields.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;
using program::Storage;

constexpr std::size_t kMostLayout = 100'000;  // characters

// `(x)*n` and `x*n` written out; commas and blanks are cosmetic.
std::string written_out(const Settings& settings, std::string_view text, std::size_t& at, int depth) {
  std::string all;
  while (at < text.size() && text[at] != ')') {
    std::string part(1, text[at]);
    if (text[at] == '(') {
      if (depth > 8) settings.fail("--pipeline-model-parallel-layout nests too deep");
      part = written_out(settings, text, ++at, depth + 1);
      if (at >= text.size()) settings.fail("--pipeline-model-parallel-layout has a bracket that is not closed");
    } else if (text[at] == ',' || text[at] == ' ') {
      part.clear();
    }
    ++at;
    std::size_t times = 1;
    if (at < text.size() && text[at] == '*') {
      times = 0;
      while (++at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0 && times < kMostLayout) {
        times = times * 10 + static_cast<std::size_t>(text[at] - '0');
      }
    }
    if (all.size() + part.size() * times > kMostLayout) settings.fail("--pipeline-model-parallel-layout is too long");
    for (std::size_t i = 0; i < times; ++i) all += part;
  }
  return all;
}

class MegatronImport {
 public:
  MegatronImport(const ImportRequest& request, Script script)
      : request_(request), settings_(std::move(script), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    if (settings_.script().arguments.empty()) settings_.fail("no argument of a trainer is in it (--name value)");
    forms::refuse_other_models(settings_, request_);
    imported_.job.model = read_model(settings_, request_, imported_.losses);
    read_multi_token(settings_, "mtp-num-layers", "mtp-loss-scaling-factor", imported_.job.model);
    read_training(settings_, request_, imported_.job, imported_.losses);
    // Its own attention backends came with Megatron-Core; before, there was a switch for one.
    plan_.stack = settings_.has({"attention-backend", "transformer-impl"}) ? "megatron-core" : "megatron";
    read_split(settings_, request_, imported_);
    plan_.expert_dispatch = read_dispatch(settings_, {"moe-token-dispatcher-type", "moe-flex-dispatcher-backend"},
                                          plan_.stack, imported_.losses);
    stages();
    sharding();
    read_muon(settings_, false, imported_);
    read_recompute(settings_, imported_);
    arithmetic();
    overlap();
    offload();
    parameter_gather();
    lose_unread(settings_, imported_.losses);
    return std::move(imported_);
  }

 private:
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }

  void stages() {
    const auto virtual_stages =
        settings_.count({"num-virtual-stages-per-pipeline-rank", "virtual-pipeline-model-parallel-size"});
    const auto layers = settings_.count({"num-layers-per-virtual-pipeline-stage"});
    const std::int64_t of_stage = imported_.job.model.layers / plan_.pipeline;
    if (virtual_stages) plan_.virtual_stages = static_cast<int>(*virtual_stages);
    if (layers && !virtual_stages) {
      if (of_stage % *layers != 0) {
        settings_.fail(fmt::format(
            "--num-layers-per-virtual-pipeline-stage {} does not divide the {} layers of a stage", *layers, of_stage));
      }
      plan_.virtual_stages = static_cast<int>(of_stage / *layers);
    }
    if (const auto layout = settings_.text({"pipeline-model-parallel-layout"}))
      read_layout(settings_, *layout, imported_.job.model, plan_);
    ends();
    plan_.schedule = program::usual_schedule(plan_.virtual_stages);
  }

  void ends() {
    const auto first = settings_.count({"decoder-first-pipeline-num-layers"});
    const auto last = settings_.count({"decoder-last-pipeline-num-layers"});
    if (!first && !last) return;
    const int free = plan_.pipeline - (first ? 1 : 0) - (last ? 1 : 0);
    const std::int64_t left = imported_.job.model.layers - first.value_or(0) - last.value_or(0);
    if (plan_.virtual_stages > 1 || free < 0 || left < 0 || (free > 0 && left % free != 0) ||
        (free == 0 && left != 0)) {
      settings_.fail("the layers of the first and last stage leave a rest that the other stages do not share evenly");
    }
    plan_.stage_layers.assign(static_cast<std::size_t>(plan_.pipeline), free > 0 ? static_cast<int>(left / free) : 0);
    if (first) plan_.stage_layers.front() = static_cast<int>(*first);
    if (last) plan_.stage_layers.back() = static_cast<int>(*last);
  }

  void sharding() {
    if (settings_.has({"use-distributed-optimizer"})) plan_.zero_stage = 1;
    if (settings_.has({"use-megatron-fsdp", "use-custom-fsdp"})) {
      const std::string how = settings_.text({"data-parallel-sharding-strategy"}).value_or("optim_grads_params");
      plan_.zero_stage = how == "optim_grads_params" ? 3 : how == "optim_grads" ? 2 : how == "optim" ? 1 : 0;
      plan_.stack = "megatron-core";
    }
    if (settings_.has({"use-torch-fsdp2"})) {
      plan_.zero_stage = settings_.has({"torch-fsdp2-no-reshard-after-forward"}) ? 2 : 3;
      plan_.stack = "fsdp";
    }
    const auto instances = settings_.count({"num-distributed-optimizer-instances"});
    if (instances && *instances > 1) {
      plan_.shard_group = std::max(1, plan_.data * plan_.context / static_cast<int>(*instances));
    }
  }

  void arithmetic() {
    read_precision(settings_, imported_);
    if (plan_.precision == DType::kBf16) {
      plan_.reduce_dtype = settings_.has({"grad-reduce-in-bf16"}) ? DType::kBf16 : DType::kFp32;
    } else if (plan_.precision == DType::kFp16) {
      const bool wide = settings_.has({"accumulate-allreduce-grads-in-fp32"});
      plan_.reduce_dtype = wide ? DType::kFp32 : DType::kFp16;
    }
    const bool is_old_flash = settings_.has({"use-flash-attn"});
    const std::string backend = settings_.text({"attention-backend"}).value_or(is_old_flash ? "flash" : "auto");
    plan_.attention =
        backend == "unfused" || backend == "local" ? program::Attention::kUnfused : program::Attention::kFlash;
    if (backend == "auto" || backend == "fused") {
      lose("--attention-backend", backend + " taken as flash; --attention unfused says otherwise");
    }
    settings_.find({"transformer-impl"});
    if (const auto bucket = settings_.count({"ddp-bucket-size"}, 1, std::int64_t{1} << 44)) {
      plan_.bucket_bytes = *bucket * program::size_of(plan_.reduce_dtype);
    }
  }

  void overlap() {
    plan_.overlap.gradient_reduction = settings_.has({"overlap-grad-reduce"});
    plan_.overlap.parameter_gather = settings_.has({"overlap-param-gather"});
    plan_.overlap.tensor = settings_.has({"tp-comm-overlap"});
    plan_.overlap.expert = settings_.has({"overlap-moe-expert-parallel-comm"});
    settings_.find({"delay-wgrad-compute"});
    if (settings_.has({"no-overlap-p2p-communication"})) plan_.overlap.pipeline = false;
  }

  void offload() {
    if (settings_.has({"optimizer-cpu-offload"})) {
      plan_.offload.optimizer = Storage::kHost;
      const double share = settings_.number({"optimizer-offload-fraction"}).value_or(1);
      if (share != 1) lose("--optimizer-offload-fraction", fmt::format("{:g} taken as 1", share));
    }
    plan_.moment_dtype = read_moments(settings_, {"exp-avg-dtype", "exp-avg-sq-dtype", "use-precision-aware-optimizer"},
                                      plan_.offload.optimizer != Storage::kNone, imported_.losses);
    if (settings_.has({"fine-grained-activation-offloading", "cpu-offloading-num-layers"})) {
      plan_.offload.activations = Storage::kHost;
      settings_.find({"offload-modules"});
    }
  }

  void parameter_gather() {
    settings_.find({"reuse-grad-buf-for-mxfp8-param-ag"});
    if (!settings_.has({"fp8-param-gather", "fp8-param"})) return;
    plan_.fp8_parameter_gather = program::Fp8Gather::kOn;
    const auto no = program::check_parameter_gather(imported_.job);
    if (!no) return;
    plan_.fp8_parameter_gather = program::Fp8Gather::kStack;
    lose("--fp8-param-gather", "taken as off: " + no->reason);
  }

  const ImportRequest& request_;
  Settings settings_;
  Imported imported_;
  Plan& plan_;
};

}  // namespace

void read_layout(Settings& settings, const std::string& text, const models::Model& model, Plan& plan) {
  std::size_t at = 0;
  const std::string all = written_out(settings, text, at, 0);
  std::vector<int> layers{0};
  int modules = 0;
  for (const char c : all) {
    if (c == '|' && modules > 0) {
      settings.fail(
          "--pipeline-model-parallel-layout has an MTP layer before the last part; here modules of "
          "multi-token prediction are where the loss is");
    }
    if (c == '|') layers.push_back(0);
    if (c == 't') ++layers.back();
    if (c == 'm') ++modules;
  }
  if (modules != model.mtp_depth()) {
    settings.fail(
        fmt::format("--pipeline-model-parallel-layout has {} MTP layers; there are {}", modules, model.mtp_depth()));
  }
  if (static_cast<int>(layers.size()) % plan.pipeline != 0) {
    settings.fail(fmt::format("--pipeline-model-parallel-layout has {} parts, which {} stages do not share evenly",
                              layers.size(), plan.pipeline));
  }
  plan.virtual_stages = static_cast<int>(layers.size()) / plan.pipeline;
  plan.stage_layers = std::move(layers);
}

void read_split(Settings& settings, const ImportRequest& request, Imported& imported) {
  Plan& plan = imported.job.plan;
  plan.tensor = static_cast<int>(settings.count({"tensor-model-parallel-size", "model-parallel-size"}).value_or(1));
  plan.pipeline = static_cast<int>(settings.count({"pipeline-model-parallel-size"}).value_or(1));
  plan.context = static_cast<int>(settings.count({"context-parallel-size", "ds-sequence-parallel-size"}).value_or(1));
  plan.sequence_parallel = settings.has({"sequence-parallel"}) && plan.tensor > 1;
  const Argument* exchange = settings.find({"cp-comm-type"});
  plan.context_method = read_exchange(
      settings, "cp-comm-type", exchange != nullptr ? exchange->values : std::vector<std::string>{}, imported.losses);
  const Argument* sizes = settings.find({"hierarchical-context-parallel-sizes"});
  std::vector<std::string> numbers;
  if (sizes != nullptr) {
    std::istringstream words(fmt::format("{}", fmt::join(sizes->values, " ")));
    for (std::string word; words >> word;) numbers.push_back(std::move(word));
  }
  plan.context_heads =
      read_context_heads(settings, exchange != nullptr ? exchange->values.front() : "p2p", numbers, plan.context);
  settings.find({"moe-router-force-load-balancing"});  // even shares, as a plan counts them unless told
  plan.expert =
      static_cast<int>(settings.count({"expert-model-parallel-size", "moe-expert-parallel-size"}).value_or(1));
  const auto split = static_cast<int>(settings.count({"expert-tensor-parallel-size"}).value_or(plan.tensor));
  if (imported.job.model.experts && split != plan.tensor) plan.expert_tensor = split;
  plan.micro_batch = static_cast<int>(settings.count({"micro-batch-size", "batch-size"}).value_or(1));
  if (settings.has({"use-tp-pp-dp-mapping"})) plan.placement = "tensor-context-pipeline-data";
  const int ranks = read_ranks(settings, request);
  const std::int64_t replica = std::int64_t{plan.tensor} * plan.context * plan.pipeline;
  if (ranks > 0 && ranks % replica != 0) {
    settings.fail(fmt::format("{} processes are not a multiple of tensor {} x context {} x pipeline {}", ranks,
                              plan.tensor, plan.context, plan.pipeline));
  }
  plan.data = ranks > 0 ? static_cast<int>(ranks / replica) : 1;
  settings.find({"data-parallel-size"});  // of a log: it follows from the others
  if (imported.job.training.global_batch == 0) {
    imported.job.training.global_batch = std::int64_t{plan.data} * plan.micro_batch;
  }
}

void read_recompute(Settings& settings, Imported& imported) {
  Plan& plan = imported.job.plan;
  const std::string how = settings.text({"recompute-granularity"}).value_or("");
  if (how == "selective" || settings.has({"recompute-activations"})) plan.recompute = Recompute::kSelective;
  if (how == "full" || settings.has({"checkpoint-activations"})) plan.recompute = Recompute::kFull;
  const std::string method = settings.text({"recompute-method"}).value_or("uniform");
  const std::int64_t layers = settings.count({"recompute-num-layers", "checkpoint-num-layers"}).value_or(1);
  if (plan.recompute == Recompute::kFull && method == "block") {
    const std::int64_t of_chunk = imported.job.model.layers / std::max(1, plan.chunks());
    if (layers < of_chunk) plan.recompute_layers = static_cast<int>(layers);
  } else if (plan.recompute == Recompute::kFull) {
    plan.recompute_group = static_cast<int>(layers);
  }
  const Argument* modules = settings.find({"recompute-modules"});
  if (modules != nullptr) read_modules("--recompute-modules", modules->values, imported);
}

namespace {

// Megatron-LM, arguments.py: delayed is what it takes where no recipe is named.
void read_fp8(Settings& settings, Imported& imported) {
  using program::Fp8;
  Plan& plan = imported.job.plan;
  if (settings.has({"fp4-format"})) plan.fp8 = Fp8::kNvfp4;
  const std::string recipe = settings.text({"fp8-recipe"}).value_or("delayed");
  for (const char* detail : {"fp8-amax-history-len", "fp8-amax-compute-algo"}) settings.find({detail});
  if (!settings.has({"fp8-format", "fp8-hybrid", "fp8-e4m3"})) return;
  for (const Fp8 known : {Fp8::kDelayed, Fp8::kCurrent, Fp8::kBlock, Fp8::kMxfp8}) {
    if (fp8_recipe(known) == recipe) plan.fp8 = known;
  }
  if (plan.fp8 == Fp8::kNone) {
    imported.losses.push_back({"--fp8-recipe", recipe + " is not modelled; the products are taken in 16 bits"});
  }
}

}  // namespace

void read_precision(Settings& settings, Imported& imported) {
  Plan& plan = imported.job.plan;
  const bool bf16 = settings.has({"bf16"}), fp16 = settings.has({"fp16"});
  if (bf16 && fp16) settings.fail("--bf16 and --fp16 exclude each other");
  plan.precision = bf16 ? DType::kBf16 : fp16 ? DType::kFp16 : DType::kFp32;
  read_fp8(settings, imported);
}

Imported import_megatron(const ImportRequest& request) {
  return import_megatron(request, read_script(request.text, request.where, request.surroundings));
}

Imported import_megatron(const ImportRequest& request, Script script) {
  return MegatronImport(request, std::move(script)).read();
}

}  // namespace trivium::planner::launch
