// nanotron's YAML (src/nanotron/config of 2411b022, 2026-04-07).
#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "planner/launch/forms/forms.h"

namespace trivium::planner::launch::forms {
namespace {

using program::DType;
using program::Plan;

class NanotronImport {
 public:
  NanotronImport(const ImportRequest& request, const Document& document)
      : request_(request), settings_(yaml::settings_of(document.root), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    imported_.job.model = model();
    split();
    training();
    optimizer();
    plan_.stack = "nanotron";
    plan_.attention = program::Attention::kFlash;
    const std::string width = settings_.text({"model.dtype"}).value_or("bfloat16");
    plan_.precision = width == "bfloat16" ? DType::kBf16 : width == "float16" ? DType::kFp16 : DType::kFp32;
    plan_.reduce_dtype = settings_.is_on({"optimizer.accumulate_grad_in_fp32"}) ? DType::kFp32 : plan_.precision;
    lose_unread_keys(settings_,
                     {"checkpoints.",
                      "data_stages.",
                      "general.",
                      "lighteval",
                      "logging.",
                      "metrics_logging",
                      "profiler",
                      "s3_upload",
                      "tokenizer.",
                      "tokens.limit",
                      "tokens.val",
                      "model.init_method",
                      "model.ddp_bucket",
                      "model.make_vocab",
                      "model.model_config.bos",
                      "model.model_config.eos",
                      "model.model_config.pad_token",
                      "model.model_config.use_cache",
                      "model.model_config.initializer_range",
                      "model.model_config.pretraining_tp",
                      "model.model_config.is_",
                      "model.model_config._",
                      "model.model_config.rope_interleaved",
                      "model.model_config.z_loss",
                      "data.",
                      "optimizer.weight_decay_exclude",
                      "optimizer.optimizer_factory.torch_adam",
                      "experiment_logger"},
                     imported_.losses);
    return std::move(imported_);
  }

 private:
  static std::string in_config(const char* name) { return std::string("model.model_config.") + name; }
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }
  std::int64_t of_model(const char* name, std::int64_t otherwise) {
    return settings_.count({in_config(name).c_str()}).value_or(otherwise);
  }
  bool is_on(const char* name) { return settings_.is_on({in_config(name).c_str()}); }

  models::Model model() {
    if (request_.model) return *request_.model;
    if (is_on("is_mamba_config")) settings_.fail("layers of Mamba are not modelled");
    models::Model m;
    m.name = "imported";
    m.source = request_.where;
    m.hidden = of_model("hidden_size", 4096);
    m.layers = of_model("num_hidden_layers", 32);
    m.heads = of_model("num_attention_heads", 32);
    m.kv_heads = of_model("num_key_value_heads", m.heads);
    m.ffn_hidden = of_model("intermediate_size", 11'008);
    m.max_sequence =
        std::max(of_model("max_position_embeddings", 2048), settings_.count({"tokens.sequence_length"}).value_or(1));
    m.vocab = of_model("vocab_size", 32'000);
    m.norm = models::Norm::kRmsNorm;
    m.norm_epsilon = settings_.number({in_config("rms_norm_eps").c_str()}).value_or(1e-6);
    m.positions = models::Positions::kRotary;
    m.rotary.theta = settings_.number({in_config("rope_theta").c_str()}).value_or(10'000);
    m.activation = models::Activation::kSwiglu;
    const std::string activation = settings_.text({in_config("hidden_act").c_str()}).value_or("silu");
    if (activation != "silu") lose("model.model_config.hidden_act", base::one_line(activation) + " taken as silu");
    m.linear_bias = false;
    m.qkv_bias = is_on("attention_bias");
    m.tied_embeddings = is_on("tie_word_embeddings");
    const std::int64_t keys = of_model("sliding_window_size", 0);
    if (keys > 0 && keys < m.max_sequence) m.window = models::Window{.keys = keys};
    experts(m);
    return settled(m, request_.where);
  }

  void experts(models::Model& m) {
    const std::int64_t count = of_model("moe_config.num_experts", of_model("moe_num_experts", 0));
    if (count < 2) return;
    models::Experts e;
    e.count = count;
    e.top_k = of_model("moe_config.top_k",
                       of_model("num_experts_per_tok", settings_.has({"model.model_config.moe_num_experts"}) ? 1 : 2));
    e.dropless = true;
    if (settings_.has({"model.model_config.moe_config.num_experts"})) {
      m.ffn_hidden = of_model("moe_config.moe_intermediate_size", 1408);
      const std::int64_t shared = of_model("moe_config.shared_expert_intermediate_size", 5632);
      if (is_on("moe_config.enable_shared_expert")) e.shared_hidden = shared;
    }
    if (settings_.has({"model.model_config.moe_config.layers"})) {
      lose("model.model_config.moe_config.layers", "experts are taken in every layer");
    }
    settings_.find({"model.model_config.moe_config.token_dispatcher_type"});
    settings_.find({"model.model_config.moe_config.router_aux_loss_coef"});
    m.experts = e;
  }

  int degree(const char* name) {
    return static_cast<int>(settings_.count({name}, 1, kMostRanksOfADimension).value_or(1));
  }

  void split() {
    constexpr std::int64_t kMostReplicas = 1 << 20;
    plan_.tensor = degree("parallelism.tp");
    plan_.pipeline = degree("parallelism.pp");
    plan_.context = degree("parallelism.context_parallel_size");
    plan_.expert = degree("parallelism.expert_parallel_size");
    const std::string mode = settings_.text({"parallelism.tp_mode"}).value_or("ALL_REDUCE");
    plan_.sequence_parallel = plan_.tensor > 1 && (mode == "REDUCE_SCATTER" || mode == "reduce_scatter");
    plan_.data = static_cast<int>(settings_.count({"parallelism.dp"}, 1, kMostReplicas).value_or(1));
    if (request_.fixes_ranks) {
      const std::int64_t of_replica = std::int64_t{plan_.tensor} * plan_.pipeline * plan_.context;
      if (request_.ranks % of_replica != 0) {
        settings_.fail(fmt::format("{} processes are not a multiple of tp {} x pp {} x context {}", request_.ranks,
                                   plan_.tensor, plan_.pipeline, plan_.context));
      }
      plan_.data = static_cast<int>(request_.ranks / of_replica);
    }
    // All forwards, then all backwards ("afab"), by default.
    const std::string engine = settings_.text({"parallelism.pp_engine"}).value_or("afab");
    const auto all = program::schedule_table();
    const auto found = std::ranges::find(all, engine == "afab" ? "gpipe" : engine, &program::ScheduleTraits::name);
    if (found == all.end()) lose("parallelism.pp_engine", base::one_line(engine) + " taken as 1f1b");
    plan_.schedule = plan_.pipeline == 1 || found == all.end() ? program::usual_schedule(1) : found->schedule;
    if (settings_.is_on({"parallelism.recompute_layer"})) plan_.recompute = program::Recompute::kFull;
    settings_.find({"parallelism.tp_linear_async_communication"});
    settings_.find({"parallelism.tp_recompute_allgather"});
    plan_.zero_stage = static_cast<int>(settings_.count({"optimizer.zero_stage"}, 0, 3).value_or(0));
    if (plan_.zero_stage > 1) {
      lose("optimizer.zero_stage", fmt::format("{} taken as 1, which is what nanotron has", plan_.zero_stage));
      plan_.zero_stage = 1;
    }
    plan_.overlap.gradient_reduction = plan_.data > 1;
  }

  void training() {
    program::Training& t = imported_.job.training;
    t.sequence = request_.sequence > 0
                     ? request_.sequence
                     : settings_.count({"tokens.sequence_length"}).value_or(imported_.job.model.max_sequence);
    plan_.micro_batch = static_cast<int>(settings_.count({"tokens.micro_batch_size"}, 1, kMostSamples).value_or(1));
    const auto steps = settings_.count({"tokens.batch_accumulation_per_replica"}, 1, kMostAccumulated).value_or(1);
    t.global_batch = std::int64_t{plan_.micro_batch} * steps * plan_.data;
    if (request_.global_batch > 0) t.global_batch = request_.global_batch;
    t.total_tokens = tokens_of(settings_.count({"tokens.train_steps"}, 0).value_or(0), t);
  }

  void optimizer() {
    program::Optimizer& o = imported_.job.training.optimizer;
    const auto rate = [&](const char* name, double otherwise) { return settings_.number({name}).value_or(otherwise); };
    const auto steps = [&](const char* name) { return settings_.count({name}, 0).value_or(0); };
    o.learning_rate = rate("optimizer.learning_rate_scheduler.learning_rate", o.learning_rate);
    o.min_learning_rate = rate("optimizer.learning_rate_scheduler.min_decay_lr", 0);
    o.warmup_steps = steps("optimizer.learning_rate_scheduler.lr_warmup_steps");
    o.decay_steps = steps("optimizer.learning_rate_scheduler.lr_decay_steps");
    o.beta1 = rate("optimizer.optimizer_factory.adam_beta1", o.beta1);
    o.beta2 = rate("optimizer.optimizer_factory.adam_beta2", o.beta2);
    o.epsilon = rate("optimizer.optimizer_factory.adam_eps", o.epsilon);
    o.weight_decay = rate("optimizer.weight_decay", o.weight_decay);
    o.clip_norm = rate("optimizer.clip_grad", o.clip_norm);
    const std::string name = settings_.text({"optimizer.optimizer_factory.name"}).value_or("adamW");
    if (name != "adamW") lose("optimizer.optimizer_factory.name", base::one_line(name) + " taken as adamW");
    const std::string style = settings_.text({"optimizer.learning_rate_scheduler.lr_decay_style"}).value_or("cosine");
    if (style != "cosine") {
      lose("optimizer.learning_rate_scheduler.lr_decay_style", base::one_line(style) + " taken as cosine");
    }
    settings_.find({"optimizer.learning_rate_scheduler.lr_warmup_style"});
    settings_.find({"optimizer.learning_rate_scheduler.lr_decay_starting_step"});
  }

  const ImportRequest& request_;
  Imported imported_;
  Settings settings_;
  Plan& plan_;
};

}  // namespace

bool is_nanotron(const yaml::Node& root) {
  const yaml::Node* parallelism = root.find("parallelism");
  return parallelism != nullptr && parallelism->has("dp") && parallelism->has("tp") && root.has("tokens");
}

Imported import_nanotron(const ImportRequest& request, const Document& document) {
  return NanotronImport(request, document).read();
}

}  // namespace trivium::planner::launch::forms
