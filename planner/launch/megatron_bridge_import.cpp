// Megatron-Bridge's configuration in Python as a job: what is assigned to members of `cfg`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "models/load.h"
#include "planner/launch/bridge_recipes.h"
#include "planner/launch/import_parts.h"
#include "planner/launch/megatron_plan.h"
#include "planner/space/trainers.h"
#include "program/lower/parameter_gather.h"
#include "program/plan/stack.h"

namespace trivium::planner::launch {
namespace {

/// "[\"core_attn\", \"mlp\"]"
std::vector<std::string> quoted_names(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = list.find_first_of("\"'"); at != std::string::npos;) {
    const std::size_t end = list.find(list[at], at + 1);
    if (end == std::string::npos) break;
    names.push_back(list.substr(at + 1, end - at - 1));
    at = list.find_first_of("\"'", end + 1);
  }
  return names;
}

using models::Activation;
using models::Model;
using models::Positions;
using program::DType;
using program::Fp8;
using program::Plan;

constexpr std::int64_t kMostCount = std::int64_t{1} << 40;

/// megatron/bridge/training/mixed_precision.py, without the width and "_mixed".
constexpr std::array<std::pair<std::string_view, Fp8>, 5> kRecipes{{{"fp8_delayed_scaling", Fp8::kDelayed},
                                                                    {"fp8_current_scaling", Fp8::kCurrent},
                                                                    {"fp8_subchannel_scaling", Fp8::kBlock},
                                                                    {"mxfp8", Fp8::kMxfp8},
                                                                    {"nvfp4", Fp8::kNvfp4}}};

// "[2, 4]" as its numbers.
std::vector<std::string> numbers_in(const std::string& list) {
  std::vector<std::string> numbers;
  constexpr const char* kDigits = "0123456789";
  for (std::size_t at = list.find_first_of(kDigits); at != std::string::npos;) {
    const std::size_t end = std::min(list.find_first_not_of(kDigits, at), list.size());
    numbers.push_back(list.substr(at, end - at));
    at = list.find_first_of(kDigits, end);
  }
  return numbers;
}

class MegatronBridgeImport {
 public:
  explicit MegatronBridgeImport(const ImportRequest& request)
      : request_(request), settings_(script_of(request_, imported_.losses), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    imported_.job.model = model();
    read_multi_token(settings_, "cfg.model.mtp_num_layers", "cfg.model.mtp_loss_scaling_factor", imported_.job.model);
    plan_.stack = stack();
    plan_.expert_dispatch =
        read_dispatch(settings_, {"cfg.model.moe_token_dispatcher_type", "cfg.model.moe_flex_dispatcher_backend"},
                      plan_.stack, imported_.losses);
    training();
    split();
    stages();
    sharding();
    read_muon(settings_, true, imported_);
    read_peft(settings_, imported_);
    memory();
    arithmetic();
    for (const char* name :
         {"cfg", "cfg.model", "cfg.model.seq_length", "cfg.model.should_pad_vocab", "cfg.model.moe_grouped_gemm",
          "cfg.model.moe_router_force_load_balancing", "cfg.model.attention_dropout", "cfg.scheduler.lr_decay_style"}) {
      settings_.find({name});
    }
    lose_unread(settings_, imported_.losses);
    return std::move(imported_);
  }

 private:
  // Assignments of the file, after those of a recipe that it calls or that its command names, whose model then holds
  // where the file has no shape of its own.
  static Script script_of(ImportRequest& request, std::vector<Loss>& losses) {
    if (!calls_recipe(request.text)) return read_assignments(request.text, request.where);
    const bool is_command = request.text.find("--recipe") != std::string::npos;
    const Script command = is_command ? read_script(request.text, request.where, request.surroundings) : Script{};
    std::optional<CalledRecipe> called = is_command ? recipe_of_command(command) : called_recipe(request.text);
    if (!called && request.text.find("cfg.model.num_layers") != std::string::npos) {
      return read_assignments(request.text, request.where);  // a function of the user's own
    }
    if (!called) {
      throw base::Failure(base::ErrorKind::kInput, request.where + ": the recipe of Megatron-Bridge is not known here");
    }
    losses.push_back({"recipe", fmt::format("{} of Megatron-Bridge 067f987df, for {}", called->name, called->model)});
    if (is_command) {
      called->settings.batch = command.batch;
    } else {
      add_assignments(request, called->settings, losses);
    }
    const bool has_shape = std::ranges::any_of(
        called->settings.arguments, [](const Argument& argument) { return argument.name == "cfg.model.num_layers"; });
    if (!request.model && !has_shape) request.model = models::load_model(std::string(called->model));
    if (is_command && !request.fixes_ranks) take_nodes(command, request);
    return std::move(called->settings);
  }

  // Functions set members, too.
  static void add_assignments(const ImportRequest& request, Script& settings, std::vector<Loss>& losses) {
    std::string text;
    bool inside = false;
    for (std::size_t at = 0; at < request.text.size();) {
      const std::size_t end = std::min(request.text.find('\n', at), request.text.size());
      std::string line = request.text.substr(at, end - at);
      const std::size_t first = line.find_first_not_of(" \t");
      if (first != std::string::npos && first > 0 && line.compare(first, 4, "cfg.") == 0) {
        line.erase(0, first);
        inside = true;
      }
      text += line + "\n";
      at = end + 1;
    }
    if (inside) losses.push_back({"cfg", "members that functions of the file set are taken as set"});
    for (Argument& argument : read_assignments(text, request.where).arguments) {
      settings.arguments.push_back(std::move(argument));
    }
  }

  static void take_nodes(const Script& command, ImportRequest& request) {
    const auto count = [&](std::string_view name) {
      const auto found = std::ranges::find(command.arguments, name, &Argument::name);
      const std::string text = found == command.arguments.end() || found->values.empty() ? "" : found->values.front();
      constexpr std::size_t kMostDigits = 5;
      const bool is_count =
          !text.empty() && text.size() <= kMostDigits && text.find_first_not_of("0123456789") == std::string::npos;
      return is_count ? std::stoi(text) : 0;
    };
    const int nodes = count("nodes"), each = count("gpus-per-node");
    if (nodes > 0 && each > 0 && std::int64_t{nodes} * each <= (1 << 20)) request.ranks = nodes * each;
  }

  // What its graphs make of it, which need that dispatcher (program/plan/stack.cpp).
  const char* stack() {
    const bool flex = settings_.text({"cfg.model.moe_token_dispatcher_type"}).value_or("alltoall") == "flex";
    const bool whole = settings_.text({"cfg.model.cuda_graph_impl"}).value_or("none") == "full_iteration";
    return flex && whole ? "megatron-bridge-graphs" : "megatron-bridge";
  }

  std::int64_t needed(const char* name) {
    if (const auto value = settings_.count({name})) return *value;
    settings_.fail(fmt::format("{} is missing; give --model to say the shape", name));
  }
  std::int64_t count(const char* name, std::int64_t otherwise) {
    const std::string text = settings_.text({name}).value_or("None");
    return text == "None" ? otherwise : *settings_.count({name}, 0, kMostCount);
  }
  double number(const char* name, double otherwise) { return settings_.number({name}).value_or(otherwise); }

  Model model() {
    if (request_.model) return *request_.model;
    Model m;
    m.name = "imported";
    m.layers = needed("cfg.model.num_layers");
    m.hidden = needed("cfg.model.hidden_size");
    m.heads = needed("cfg.model.num_attention_heads");
    m.kv_heads = count("cfg.model.num_query_groups", m.heads);
    m.head_dim = count("cfg.model.kv_channels", 0);
    m.ffn_hidden = count("cfg.model.ffn_hidden_size", 0);
    m.vocab = needed("cfg.model.vocab_size");
    m.max_sequence = count("cfg.model.seq_length", 1024);
    kinds(m);
    rotary(m.rotary);
    latent(m);
    experts(m);
    return shipped_or(settled(m, request_.where));
  }

  void kinds(Model& m) {
    const bool is_rms = settings_.text({"cfg.model.normalization"}).value_or("LayerNorm") == "RMSNorm";
    m.norm = is_rms ? models::Norm::kRmsNorm : models::Norm::kLayerNorm;
    m.norm_epsilon = number("cfg.model.layernorm_epsilon", m.norm_epsilon);
    m.activation = settings_.is_on({"cfg.model.gated_linear_unit"}) ? Activation::kSwiglu : Activation::kGelu;
    m.linear_bias = settings_.is_on({"cfg.model.add_bias_linear"});
    m.qkv_bias = settings_.is_on({"cfg.model.add_qkv_bias"}) || m.linear_bias;
    m.tied_embeddings = settings_.is_on({"cfg.model.share_embeddings_and_output_weights"});
    m.head_norms = settings_.is_on({"cfg.model.qk_layernorm"});
    const std::string positions = settings_.text({"cfg.model.position_embedding_type"}).value_or("learned_absolute");
    m.positions = positions == "rope"   ? Positions::kRotary
                  : positions == "none" ? Positions::kNone
                                        : Positions::kLearned;
  }

  void rotary(models::Rotary& r) {
    r.theta = number("cfg.model.rotary_base", r.theta);
    r.share = number("cfg.model.rotary_percent", r.share);
    if (settings_.is_on({"cfg.model.rope_scaling"})) {
      r.scaling = models::RotaryScaling::kLlama3;
      r.factor = number("cfg.model.rope_scaling_factor", 8);
      r.original_sequence = 8192;
    } else if (const auto factor = settings_.number({"cfg.model.seq_len_interpolation_factor"})) {
      r.scaling = models::RotaryScaling::kLinear;
      r.factor = *factor;
    }
  }

  void latent(Model& m) {
    if (!settings_.is_on({"cfg.model.multi_latent_attention"})) return;
    models::Latent latent;
    latent.query_rank = count("cfg.model.q_lora_rank", 0);
    latent.key_rank = needed("cfg.model.kv_lora_rank");
    latent.plain_dim = needed("cfg.model.qk_head_dim");
    latent.rotary_dim = needed("cfg.model.qk_pos_emb_head_dim");
    latent.value_dim = needed("cfg.model.v_head_dim");
    m.head_dim = latent.plain_dim + latent.rotary_dim;
    m.latent = latent;
    m.head_norms = false;  // qk_layernorm is that of the latents
  }

  void experts(Model& m) {
    models::Experts e;
    e.count = count("cfg.model.num_moe_experts", 0);
    if (e.count == 0) return;
    e.top_k = count("cfg.model.moe_router_topk", 2);
    const auto capacity = settings_.number({"cfg.model.moe_expert_capacity_factor"});
    e.capacity_factor = capacity.value_or(e.capacity_factor);
    e.dropless = !capacity;
    layers(m, e);
    if (settings_.text({"cfg.model.moe_router_score_function"}).value_or("softmax") == "sigmoid") {
      e.scores = models::Scores::kSigmoid;
    }
    e.correction_bias = settings_.is_on({"cfg.model.moe_router_enable_expert_bias"});
    e.normalised = !settings_.is_on({"cfg.model.moe_router_pre_softmax"}) || e.top_k == 1;
    e.scale = number("cfg.model.moe_router_topk_scaling_factor", e.scale);
    e.groups = count("cfg.model.moe_router_num_groups", e.groups);
    e.top_groups = count("cfg.model.moe_router_group_topk", e.top_groups);
    if (e.groups > 1 && e.correction_bias) e.group_best = 2;  // as import_parts.cpp
    e.shared_hidden = count("cfg.model.moe_shared_expert_intermediate_size", 0);
    const std::int64_t width = count("cfg.model.moe_ffn_hidden_size", m.ffn_hidden);
    if (width != m.ffn_hidden && (e.dense_layers > 0 || e.every > 1)) e.dense_hidden = m.ffn_hidden;
    m.ffn_hidden = width;
    m.experts = e;
  }

  // 2: every second; [0] * 3 + [1] * 58: dense layers first.
  void layers(const Model& m, models::Experts& e) {
    const std::string pattern = settings_.text({"cfg.model.moe_layer_freq"}).value_or("1");
    int dense = 0, mixtures = 0;
    if (std::sscanf(pattern.c_str(), "[0] * %6d + [1] * %6d", &dense, &mixtures) == 2 && dense + mixtures == m.layers) {
      e.dense_layers = dense;
    } else if (pattern.find_first_not_of("0123456789") == std::string::npos) {
      e.every = *settings_.count({"cfg.model.moe_layer_freq"});
    } else {
      imported_.losses.push_back({"cfg.model.moe_layer_freq", "taken as every layer"});
    }
  }

  // The file says the sequence of the training, not the model's longest.
  static Model shipped_or(Model read) {
    for (const Model& shipped : all_shipped()) {
      Model alike = read;
      alike.name = shipped.name, alike.source = shipped.source, alike.max_sequence = shipped.max_sequence;
      if (alike == shipped) return shipped;
    }
    return read;
  }

  void training() {
    program::Training& t = imported_.job.training;
    t.sequence = request_.sequence > 0 ? request_.sequence : count("cfg.dataset.seq_length", 4096);
    t.global_batch = request_.global_batch > 0 ? request_.global_batch : count("cfg.train.global_batch_size", 32);
    plan_.micro_batch = static_cast<int>(count("cfg.train.micro_batch_size", 2));
    t.total_tokens = count("cfg.train.train_iters", 300'000) * t.global_batch * t.sequence;
    t.dropout = number("cfg.model.hidden_dropout", 0);
    t.seed = static_cast<std::uint64_t>(count("cfg.rng.seed", 1234));
    program::Optimizer& o = t.optimizer;
    o.learning_rate = number("cfg.optimizer.lr", 3e-4);
    o.min_learning_rate = number("cfg.optimizer.min_lr", 3e-5);
    o.weight_decay = number("cfg.optimizer.weight_decay", 0.1);
    o.beta1 = number("cfg.optimizer.adam_beta1", 0.9);
    o.beta2 = number("cfg.optimizer.adam_beta2", 0.95);
    o.epsilon = number("cfg.optimizer.adam_eps", 1e-8);
    o.clip_norm = number("cfg.optimizer.clip_grad", 1);
    o.warmup_steps = count("cfg.scheduler.lr_warmup_iters", 500);
    o.decay_steps = count("cfg.scheduler.lr_decay_iters", 0);
  }

  void split() {
    plan_.tensor = static_cast<int>(count("cfg.model.tensor_model_parallel_size", 1));
    plan_.sequence_parallel = settings_.is_on({"cfg.model.sequence_parallel"}) && plan_.tensor > 1;
    plan_.context = static_cast<int>(count("cfg.model.context_parallel_size", 1));
    const auto exchange = settings_.text({"cfg.model.cp_comm_type"});
    plan_.context_method =
        read_exchange(settings_, "cfg.model.cp_comm_type",
                      exchange ? std::vector{*exchange} : std::vector<std::string>{}, imported_.losses);
    const std::string sizes = settings_.text({"cfg.model.hierarchical_context_parallel_sizes"}).value_or("");
    plan_.context_heads = read_context_heads(settings_, exchange.value_or("p2p"), numbers_in(sizes), plan_.context);
    plan_.pipeline = static_cast<int>(count("cfg.model.pipeline_model_parallel_size", 1));
    plan_.expert = static_cast<int>(count("cfg.model.expert_model_parallel_size", 1));
    const auto expert_tensor = static_cast<int>(count("cfg.model.expert_tensor_parallel_size", plan_.tensor));
    if (imported_.job.model.experts && expert_tensor != plan_.tensor) plan_.expert_tensor = expert_tensor;
    if (settings_.is_on({"cfg.dist.use_tp_pp_dp_mapping"})) plan_.placement = kPipelineInsideData;
    const int of_replica = plan_.tensor * plan_.context * plan_.pipeline;
    if (of_replica < 1 || request_.ranks % of_replica != 0) {
      settings_.fail(fmt::format("{} processes are not a multiple of tensor {} x context {} x pipeline {}",
                                 request_.ranks, plan_.tensor, plan_.context, plan_.pipeline));
    }
    plan_.data = std::max(1, request_.ranks / of_replica);
  }

  void stages() {
    plan_.virtual_stages = std::max(1, static_cast<int>(count("cfg.model.virtual_pipeline_model_parallel_size", 1)));
    if (const auto layout = settings_.text({"cfg.model.pipeline_model_parallel_layout"}); layout && *layout != "None") {
      read_layout(settings_, *layout, imported_.job.model, plan_);
    }
    plan_.schedule = program::usual_schedule(plan_.virtual_stages);
  }

  void sharding() {
    const bool is_fsdp = settings_.is_on({"cfg.ddp.use_megatron_fsdp"});
    const bool distributed = settings_.is_on({"cfg.ddp.use_distributed_optimizer"});
    settings_.find({"cfg.optimizer.use_distributed_optimizer"});
    const std::string how = settings_.text({"cfg.ddp.data_parallel_sharding_strategy"}).value_or("optim_grads_params");
    plan_.zero_stage = distributed ? 1 : 0;
    if (is_fsdp) plan_.zero_stage = how == "optim_grads_params" ? 3 : how == "optim_grads" ? 2 : how == "optim" ? 1 : 0;
    const std::int64_t instances = count("cfg.ddp.num_distributed_optimizer_instances", 1);
    if (instances > 1) {
      plan_.shard_group =
          std::max(1, plan_.data * plan_.context /
                          static_cast<int>(std::min<std::int64_t>(instances, plan_.data * plan_.context)));
    }
    plan_.overlap.gradient_reduction = settings_.is_on({"cfg.ddp.overlap_grad_reduce"});
    plan_.overlap.parameter_gather = settings_.is_on({"cfg.ddp.overlap_param_gather"});
    const std::string overlap = settings_.text({"cfg.comm_overlap"}).value_or("");
    plan_.overlap.tensor = overlap.find("tp_comm_overlap=True") != std::string::npos;
    plan_.overlap.expert = overlap.find("overlap_moe_expert_parallel_comm=True") != std::string::npos;
  }

  void memory() {
    const std::string how = settings_.text({"cfg.model.recompute_granularity"}).value_or("None");
    plan_.recompute = how == "full"        ? program::Recompute::kFull
                      : how == "selective" ? program::Recompute::kSelective
                                           : program::Recompute::kNone;
    if (const auto modules = settings_.text({"cfg.model.recompute_modules"})) {
      read_modules("cfg.model.recompute_modules", quoted_names(*modules), imported_);
    }
    const std::string method = settings_.text({"cfg.model.recompute_method"}).value_or("");
    const auto layers = static_cast<int>(settings_.count({"cfg.model.recompute_num_layers"}).value_or(0));
    const std::int64_t of_chunk = imported_.job.model.layers / std::max(1, plan_.chunks());
    const bool full = plan_.recompute == program::Recompute::kFull;
    if (full && method == "block" && layers < of_chunk) plan_.recompute_layers = layers;
    if (full && method == "uniform") plan_.recompute_group = std::max(1, layers);
    settings_.find({"cfg.optimizer.optimizer_offload_fraction"});
    if (settings_.is_on({"cfg.optimizer.optimizer_cpu_offload"})) plan_.offload.optimizer = program::Storage::kHost;
    plan_.moment_dtype = read_moments(settings_,
                                      {"cfg.optimizer.exp_avg_dtype", "cfg.optimizer.exp_avg_sq_dtype",
                                       "cfg.optimizer.use_precision_aware_optimizer"},
                                      plan_.offload.optimizer != program::Storage::kNone, imported_.losses);
  }

  void arithmetic() {
    const std::string recipe = settings_.text({"cfg.mixed_precision"}).value_or("bf16_mixed");
    plan_.precision = recipe == "None"                            ? DType::kFp32
                      : recipe.find("fp16_") != std::string::npos ? DType::kFp16
                                                                  : DType::kBf16;
    for (const auto& [name, fp8] : kRecipes) {
      if (recipe.find(std::string("_with_") + std::string(name) + "_") != std::string::npos) plan_.fp8 = fp8;
    }
    parameter_gather();
    const bool wide = settings_.text({"cfg.ddp.grad_reduce_in_fp32"}).value_or("True") == "True";
    plan_.reduce_dtype = wide || plan_.precision == DType::kFp32 ? DType::kFp32 : plan_.precision;
    const std::string kernels = settings_.text({"cfg.model.attention_backend"}).value_or("None");
    plan_.attention = kernels == "unfused" || kernels == "AttnBackend.unfused" ? program::Attention::kUnfused
                                                                               : program::Attention::kFlash;
    const std::int64_t bucket = count("cfg.ddp.bucket_size", 0);
    plan_.bucket_bytes = bucket * program::size_of(plan_.reduce_dtype);
  }

  void parameter_gather() {
    const auto given = settings_.text({"cfg.mixed_precision.fp8_param_gather"});
    if (!given) return;
    const program::StackTraits& stack = *program::find_stack(plan_.stack);
    const bool narrow = *given == "True";
    if (narrow == program::keeps_parameters_in_8_bits(plan_, stack)) return;
    plan_.fp8_parameter_gather = narrow ? program::Fp8Gather::kOn : program::Fp8Gather::kOff;
    const auto no = program::check_parameter_gather(imported_.job);
    if (!no) return;
    plan_.fp8_parameter_gather = program::Fp8Gather::kStack;
    imported_.losses.push_back({"cfg.mixed_precision.fp8_param_gather", "taken as off: " + no->reason});
  }

  ImportRequest request_;
  Imported imported_;
  Settings settings_;
  Plan& plan_;
};

}  // namespace

Imported import_megatron_bridge(const ImportRequest& request) { return MegatronBridgeImport(request).read(); }

}  // namespace trivium::planner::launch
