// torchtitan v0.2's TOML as a job.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "models/load.h"
#include "planner/launch/import_parts.h"
#include "planner/launch/torchtitan_flavors.h"
#include "program/lower/layout.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

/// Keywords of the call that makes a flavor.
class Flavor {
 public:
  Flavor(const Settings& settings, std::map<std::string, std::string> words)
      : settings_(settings), words_(std::move(words)) {}
  bool empty() const { return words_.empty(); }
  bool has(const char* name) const { return words_.contains(name); }
  bool is_on(const char* name) const { return has(name) && words_.at(name) == "True"; }
  bool is_off(const char* name) const { return has(name) && words_.at(name) == "False"; }
  std::string text(const char* name) const { return has(name) ? words_.at(name) : ""; }

  double number(const char* name, double otherwise) const {
    if (!has(name)) return otherwise;
    const std::string& word = words_.at(name);
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value >= 0) || value > 1e15) {
      settings_.fail(fmt::format("{}={} of the model's arguments is no number", name, base::quote(word)));
    }
    return value;
  }
  std::int64_t count(const char* name, std::int64_t otherwise) const {
    return static_cast<std::int64_t>(number(name, static_cast<double>(otherwise)));
  }

 private:
  const Settings& settings_;
  std::map<std::string, std::string> words_;
};

/// What both classes of models have.
models::Model common(const Flavor& flavor) {
  models::Model model;
  model.name = "imported";
  model.layers = flavor.count("n_layers", 32);
  model.hidden = flavor.count("dim", 4096);
  model.heads = flavor.count("n_heads", 32);
  model.kv_heads = flavor.count("n_kv_heads", model.heads);
  model.vocab = flavor.count("vocab_size", 128'256);
  model.max_sequence = flavor.count("max_seq_len", 131'072);
  model.norm = models::Norm::kRmsNorm;
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kSwiglu;
  model.linear_bias = model.qkv_bias = model.tied_embeddings = false;
  model.norm_epsilon = flavor.number("norm_eps", 1e-5);
  model.rotary.theta = flavor.number("rope_theta", 10'000);
  return model;
}

/// Two thirds of 4 dim, times the factor.
std::int64_t llama_width(const models::Model& model, const Flavor& flavor) {
  const auto width = static_cast<std::int64_t>(2.0 * 4 * static_cast<double>(model.hidden) / 3);
  if (!flavor.has("ffn_dim_multiplier")) return width;
  return static_cast<std::int64_t>(flavor.number("ffn_dim_multiplier", 1) * static_cast<double>(width));
}

std::int64_t rounded_up(std::int64_t width, const Flavor& flavor) {
  const std::int64_t multiple = std::max<std::int64_t>(1, flavor.count("multiple_of", 256));
  return (width + multiple - 1) / multiple * multiple;
}

void scale_frequencies(const Flavor& scaling, double factor, double fast, models::Rotary& rotary) {
  rotary.scaling = models::RotaryScaling::kLlama3;
  rotary.factor = scaling.number("scaling_factor", factor);
  rotary.slow_turns = scaling.number("low_freq_factor", 1);
  rotary.fast_turns = scaling.number("high_freq_factor", fast);
  rotary.original_sequence = scaling.count("original_max_position_embeddings", 8192);
}

models::Model llama3_of(const Flavor& flavor, const Flavor& scaling) {
  models::Model model = common(flavor);
  model.ffn_hidden = rounded_up(llama_width(model, flavor), flavor);
  scale_frequencies(scaling, 8, 4, model.rotary);
  return model;
}

/// Of the settings of MoEArgs; its experts are as wide as `width`.
models::Experts experts_of(const Flavor& mixture, std::int64_t width) {
  models::Experts experts;
  experts.count = mixture.count("num_experts", 8);
  experts.top_k = mixture.count("top_k", 1);
  experts.shared_hidden = mixture.count("num_shared_experts", 1) * width;
  experts.scores = mixture.text("score_func") == "softmax" ? models::Scores::kSoftmax : models::Scores::kSigmoid;
  experts.normalised = mixture.is_on("route_norm");
  experts.scales_input = !mixture.is_off("score_before_experts");
  experts.scale = mixture.number("route_scale", 1);
  experts.dropless = true;
  return experts;
}

/// models/llama4/model/model.py, TransformerBlock: experts share what a dense MLP is wide, in each of some layers.
models::Model llama4_of(const Flavor& flavor, const Flavor& scaling, const Flavor& mixture) {
  models::Model model = common(flavor);
  const std::int64_t width = llama_width(model, flavor);
  const bool shares = !flavor.is_off("auto_scale_hidden_dim");
  const std::int64_t share = mixture.count("top_k", 1) + mixture.count("num_shared_experts", 1);
  model.ffn_hidden = rounded_up(shares ? width / std::max<std::int64_t>(1, share) : width, flavor);
  if (!scaling.empty()) scale_frequencies(scaling, 16, 1, model.rotary);
  model.experts = experts_of(mixture, model.ffn_hidden);
  model.experts->every = flavor.count("interleave_moe_layer_step", 2);
  if (model.experts->every > 1) model.experts->dense_hidden = rounded_up(width, flavor);
  return model;
}

models::Model qwen_of(const Flavor& flavor, const Flavor& mixture) {
  models::Model model = common(flavor);
  model.head_dim = flavor.count("head_dim", 128);
  model.ffn_hidden = flavor.count("hidden_dim", 3072);
  model.head_norms = !flavor.has("qk_norm") || flavor.is_on("qk_norm");
  model.tied_embeddings = flavor.is_on("enable_weight_tying");
  if (!flavor.is_on("moe_enabled")) return model;
  model.ffn_hidden = flavor.count("moe_inter_dim", 768);
  model.experts = experts_of(mixture, model.ffn_hidden);
  return model;
}

models::Model deepseek_of(const Flavor& flavor, const Flavor& mixture) {
  models::Model model = common(flavor);
  models::Latent latent;
  latent.query_rank = flavor.count("q_lora_rank", 0);
  latent.key_rank = flavor.count("kv_lora_rank", 512);
  latent.plain_dim = flavor.count("qk_nope_head_dim", 128);
  latent.rotary_dim = flavor.count("qk_rope_head_dim", 64);
  latent.value_dim = flavor.count("v_head_dim", 128);
  model.latent = latent;
  model.kv_heads = model.heads;
  model.head_dim = latent.plain_dim + latent.rotary_dim;
  model.max_sequence = flavor.count("max_seq_len", 16'384);
  model.ffn_hidden = flavor.count("moe_inter_dim", 1408);
  model.experts = experts_of(mixture, model.ffn_hidden);
  model.experts->dense_layers = flavor.count("n_dense_layers", 1);
  if (model.experts->dense_layers > 0) model.experts->dense_hidden = flavor.count("inter_dim", 10'944);
  model.experts->groups = mixture.count("num_expert_groups", 1);
  model.experts->top_groups = mixture.count("num_limited_groups", 1);
  if (model.experts->groups > 1) model.experts->group_best = 2;
  const std::int64_t original = flavor.count("original_seq_len", 4096);
  if (model.max_sequence <= original) return model;
  models::Rotary& rotary = model.rotary;
  rotary.scaling = models::RotaryScaling::kYarn;
  rotary.factor = flavor.number("rope_factor", 40);
  rotary.original_sequence = original;
  rotary.fast_turns = flavor.number("beta_fast", 32);
  rotary.slow_turns = flavor.number("beta_slow", 1);
  const double scale = 0.1 * flavor.number("mscale", 1) * std::log(rotary.factor) + 1;
  model.attention_scale = scale * scale / std::sqrt(static_cast<double>(model.head_dim));
  return model;
}

class TorchtitanImport {
 public:
  explicit TorchtitanImport(const ImportRequest& request)
      : request_(request), settings_(script_of(request), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    if (settings_.script().arguments.empty()) settings_.fail("no setting of torchtitan is in it (name = value)");
    imported_.job.model = model();
    split();
    training();
    arithmetic();
    settings_.has({"model.name", "model.flavor", "experimental.custom_import", "compile.components"});
    for (const char* name : {"model.name", "experimental.custom_import", "compile.components", "nnodes",
                             "nproc-per-node", "rdzv-backend", "rdzv-endpoint"}) {
      settings_.find({name});
    }
    lose_unread(settings_, imported_.losses);
    return std::move(imported_);
  }

 private:
  // The TOML itself; the here-document with sections in a script, or the file that its command names; or a function of
  // the registry that its command names. The command tells the processes, and its settings win.
  static Script script_of(const ImportRequest& request) {
    const bool is_toml = request.text.find("\n[") != std::string::npos || request.text.starts_with('[');
    if (is_toml && !request.text.starts_with("#!")) return read_assignments(request.text, request.where);
    const Script shell = read_script(request.text, request.where, request.surroundings);
    std::string file, function;
    for (const Argument& argument : shell.arguments) {
      if (argument.values.empty()) continue;
      if (argument.name == "job.config-file") file = argument.values.front();
      if (argument.name == "config") function = argument.values.front();
    }
    if (auto settings = registered_config(function, shell)) return std::move(*settings);
    if (!function.empty() && file.empty()) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: the configuration {} of torchtitan is not known here", request.where,
                                      base::quote(function)));
    }
    std::string text;
    for (const std::string& document : shell.documents) {
      if (document.find("[model]") != std::string::npos) text = document;
    }
    if (text.empty() && request.surroundings.read_file) text = request.surroundings.read_file(file).value_or("");
    if (text.empty() && !file.empty()) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: {} is not there", request.where, base::quote(file)));
    }
    Script settings = read_assignments(text, file.empty() ? request.where : file);
    take_overrides(shell, settings);
    return settings;
  }

  models::Model without_modules(models::Model shipped) {
    if (shipped.mtp) {
      imported_.losses.push_back(
          {"model.flavor", "torchtitan trains it without its modules of multi-token prediction"});
      shipped.mtp.reset();
    }
    return shipped;
  }

  // models/gpt_oss/__init__.py: the arguments that differ from those of 20b.
  static models::Model small_gpt_oss() {
    models::Model model = models::load_model("gpt-oss-20b");
    model.name = "imported";
    model.hidden = 256;
    model.layers = 4;
    model.experts->count = 8;
    return model;
  }

  models::Model model() {
    const std::string name = settings_.text({"model.name"}).value_or("llama3");
    const std::string flavor = settings_.text({"model.flavor"}).value_or("debugmodel");
    if (request_.model) return *request_.model;
    const std::string whole = name + "/" + flavor;
    std::string text = request_.text;
    if (const std::string_view call = call_of_flavor(whole); !call.empty()) text = call;
    const Flavor llama(settings_, keywords_of(text, "TransformerModelArgs"));
    const Flavor scaling(settings_, keywords_of(text, "RoPEScalingArgs"));
    const Flavor mixture(settings_, keywords_of(text, "MoEArgs"));
    if (!llama.empty()) {
      const bool spreads = llama.has("moe_args") || llama.has("interleave_moe_layer_step");
      return settled(spreads ? llama4_of(llama, scaling, mixture) : llama3_of(llama, scaling), request_.where);
    }
    const Flavor qwen(settings_, keywords_of(text, "Qwen3ModelArgs"));
    if (!qwen.empty()) return settled(qwen_of(qwen, mixture), request_.where);
    const Flavor deepseek(settings_, keywords_of(text, "DeepSeekV3ModelArgs"));
    if (!deepseek.empty()) return settled(deepseek_of(deepseek, mixture), request_.where);
    if (const std::string_view shape = shipped_flavor(whole); !shape.empty()) {
      return without_modules(models::load_model(std::string(shape)));
    }
    if (whole == "gpt_oss/debugmodel") return small_gpt_oss();
    settings_.fail(fmt::format("the shape of {} is not known; give --model", base::quote(whole)));
  }

  int degree(const char* name) { return static_cast<int>(settings_.count({name}, 1).value_or(1)); }

  void split() {
    plan_.tensor = degree("parallelism.tensor_parallel_degree");
    plan_.context = degree("parallelism.context_parallel_degree");
    plan_.pipeline = degree("parallelism.pipeline_parallel_degree");
    plan_.expert = degree("parallelism.expert_parallel_degree");
    const int expert_tensor = degree("parallelism.expert_tensor_parallel_degree");
    if (plan_.expert > 1 && expert_tensor != plan_.tensor) plan_.expert_tensor = expert_tensor;
    if (plan_.expert > 1 && plan_.context > 1) {
      settings_.fail(
          fmt::format("expert_parallel_degree {} with context_parallel_degree {}: context ranks share experts there, "
                      "which is not modelled; use one of them",
                      plan_.expert, plan_.context));
    }
    plan_.sequence_parallel = plan_.tensor > 1;
    // Either way keys and values visit the ranks: by an all-to-all to the next one, step by step, or gathered at once
    // (torch/distributed/tensor/experimental/_context_parallel, _AllToAllRotater, _AllGatherRotater).
    settings_.find({"parallelism.context_parallel_rotate_method"});
    plan_.context_method = program::ContextMethod::kRing;
    replicas();
    stages();
  }

  void replicas() {
    const int copies = degree("parallelism.data_parallel_replicate_degree");
    const std::string given = settings_.text({"parallelism.data_parallel_shard_degree"}).value_or("-1");
    int shard = 1;
    if (given == "-1") {
      const int rest = copies * plan_.tensor * plan_.context * plan_.pipeline;
      const int ranks = read_ranks(settings_, request_);
      if (ranks % rest != 0) {
        settings_.fail(
            fmt::format("{} processes are not a multiple of replicas {} x tensor {} x context {} x "
                        "pipeline {}",
                        ranks, copies, plan_.tensor, plan_.context, plan_.pipeline));
      }
      shard = std::max(1, ranks / rest);
    } else {
      shard = degree("parallelism.data_parallel_shard_degree");
    }
    plan_.data = copies * shard;
    const std::string keeps = settings_.text({"parallelism.fsdp_reshard_after_forward"}).value_or("default");
    const bool frees = keeps == "always" || (keeps == "default" && plan_.pipeline == 1);
    // Stages synchronise once a step: whole gradients (torch/distributed/pipelining/stage.py).
    const int kept = plan_.pipeline > 1 ? 1 : 2;
    plan_.zero_stage = shard * plan_.context == 1 ? 0 : frees ? 3 : kept;
    if (frees && shard * plan_.context > 1 && plan_.pipeline > 1) {
      imported_.losses.push_back({"parallelism.fsdp_reshard_after_forward",
                                  "taken as ZeRO 3; stages keep whole gradients, and parameters from a backward on"});
    }
    if (plan_.zero_stage > 0 && copies > 1) plan_.shard_group = shard * plan_.context;
    plan_.overlap.gradient_reduction = plan_.data * plan_.context > 1;
    plan_.overlap.parameter_gather = plan_.zero_stage > 0;
  }

  void stages() {
    const std::string name = settings_.text({"parallelism.pipeline_parallel_schedule"}).value_or("1F1B");
    const auto all = program::schedule_table();
    const auto found = std::ranges::find(all, name, &program::ScheduleTraits::pytorch);
    if (plan_.pipeline > 1 && found == all.end()) {
      imported_.losses.push_back({"parallelism.pipeline_parallel_schedule", base::one_line(name) + " taken as 1F1B"});
    }
    if (plan_.pipeline == 1 || found == all.end()) return read_parts();
    plan_.schedule = found->schedule;
    plan_.virtual_stages = std::max(1, found->chunks);
    read_parts();
  }

  // [["tok_embeddings", "layers.0"], …]: layers by part, in the order of the model.
  void read_parts() {
    const auto parts = settings_.text({"parallelism.module_fqns_per_model_part"});
    if (!parts || plan_.pipeline == 1) return;
    std::vector<int> layers;
    for (std::size_t at = parts->find('[', 1); at != std::string::npos; at = parts->find('[', at + 1)) {
      const std::string part = parts->substr(at, parts->find(']', at) - at);
      int count = 0;
      for (std::size_t i = part.find("layers."); i != std::string::npos; i = part.find("layers.", i + 1)) ++count;
      layers.push_back(count);
    }
    if (layers.empty() || static_cast<int>(layers.size()) % plan_.pipeline != 0) {
      settings_.fail(fmt::format("module_fqns_per_model_part has {} parts, which {} stages do not share evenly",
                                 layers.size(), plan_.pipeline));
    }
    plan_.virtual_stages = static_cast<int>(layers.size()) / plan_.pipeline;
    program::Job even = imported_.job;
    if (imported_.job.model.layers % static_cast<std::int64_t>(layers.size()) == 0) {
      if (program::chunk_layers(even) == layers) return;
    }
    plan_.stage_layers = std::move(layers);
  }

  void training() {
    program::Training& t = imported_.job.training;
    const auto local = settings_.count({"training.local_batch_size"}).value_or(8);
    const auto of_stage = settings_.count({"parallelism.pipeline_parallel_microbatch_size"}).value_or(1);
    plan_.micro_batch = static_cast<int>(plan_.pipeline > 1 ? of_stage : local);
    const std::string global = settings_.text({"training.global_batch_size"}).value_or("-1");
    t.global_batch = global == "-1" ? local * plan_.data : *settings_.count({"training.global_batch_size"});
    if (request_.global_batch > 0) t.global_batch = request_.global_batch;
    t.sequence = settings_.count({"training.seq_len"}).value_or(2048);
    if (request_.sequence > 0) t.sequence = request_.sequence;
    t.total_tokens = settings_.count({"training.steps"}, 0, kMostSteps).value_or(10'000) * t.global_batch * t.sequence;
    program::Optimizer& o = t.optimizer;
    o.learning_rate = settings_.number({"optimizer.lr"}).value_or(8e-4);
    o.beta1 = settings_.number({"optimizer.beta1"}).value_or(0.9);
    o.beta2 = settings_.number({"optimizer.beta2"}).value_or(0.95);
    o.epsilon = settings_.number({"optimizer.eps"}).value_or(1e-8);
    o.weight_decay = settings_.number({"optimizer.weight_decay"}).value_or(0.1);
    o.clip_norm = settings_.number({"training.max_norm"}).value_or(1);
    o.warmup_steps = settings_.count({"lr_scheduler.warmup_steps"}, 0, kMostSteps).value_or(200);
    for (const char* name : {"optimizer.name", "lr_scheduler.decay_type"}) settings_.find({name});
  }

  void arithmetic() {
    const std::string width = settings_.text({"training.mixed_precision_param"}).value_or("bfloat16");
    plan_.precision = width == "bfloat16" ? DType::kBf16 : DType::kFp32;
    settings_.find({"training.mixed_precision_reduce"});
    plan_.reduce_dtype = DType::kFp32;
    plan_.attention = program::Attention::kFlash;
    const std::string components = settings_.text({"compile.components"}).value_or("model");
    const bool compiled = settings_.is_on({"compile.enable"}) && components.find("model") != std::string::npos;
    plan_.stack = compiled ? "torchtitan-fsdp2" : "torchtitan-fsdp2-eager";
    plan_.overlap.tensor = settings_.is_on({"parallelism.enable_async_tensor_parallel"});
    eight_bits();
    const std::string mode = settings_.text({"activation_checkpoint.mode"}).value_or("selective");
    plan_.recompute = mode == "full" ? Recompute::kFull : mode == "none" ? Recompute::kNone : Recompute::kSelective;
    if (mode == "selective") {
      settings_.find({"activation_checkpoint.selective_ac_option"});
      imported_.losses.push_back({"activation_checkpoint.mode", "selective taken as attention's core alone"});
    }
    if (settings_.is_on({"training.enable_cpu_offload"})) {
      using program::Storage;
      plan_.offload.optimizer = plan_.offload.gradients = plan_.offload.parameters = Storage::kHost;
    }
  }

  // "float8" is what v0.2.0 called its converter.
  void eight_bits() {
    const std::string converters = settings_.text({"model.converters"}).value_or("");
    const auto has = [&](const char* name) { return converters.find(name) != std::string::npos; };
    for (const char* read : {"quantize.linear.float8.filter_fqns", "quantize.linear.mx.filter_fqns",
                             "quantize.grouped_mm.float8.fqns", "quantize.grouped_mm.mx.fqns"}) {
      settings_.find({read});
    }
    if (has("quantize.linear.mx")) plan_.fp8 = program::Fp8::kMxfp8;
    if (!has("quantize.linear.float8") && !has("\"float8\"")) return;
    plan_.fp8 = program::Fp8::kCurrent;
    const std::string recipe = settings_.text({"quantize.linear.float8.recipe_name"}).value_or("tensorwise");
    if (recipe == "tensorwise") return;
    imported_.losses.push_back({"quantize.linear.float8.recipe_name", base::one_line(recipe) + " taken as tensorwise"});
  }

  const ImportRequest& request_;
  Imported imported_;
  Settings settings_;
  Plan& plan_;
};

}  // namespace

Imported import_torchtitan(const ImportRequest& request) { return TorchtitanImport(request).read(); }

}  // namespace trivium::planner::launch
