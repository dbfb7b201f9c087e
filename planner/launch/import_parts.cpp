#include "planner/launch/import_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "models/load.h"
#include "program/plan/stack.h"

namespace trivium::planner::launch {
namespace {

using models::Activation;
using models::Model;
using models::Positions;

constexpr std::int64_t kMostModules = 64;

std::int64_t needed(Settings& settings, const char* name) {
  if (const auto value = settings.count({name})) return *value;
  settings.fail(fmt::format("--{} is missing; give --model to say the shape", name));
}

void read_rotary(Settings& settings, models::Rotary& rotary) {
  rotary.theta = settings.number({"rotary-base", "rotary-position-embeddings-theta"}).value_or(rotary.theta);
  rotary.share = settings.number({"rotary-percent"}).value_or(rotary.share);
  if (const auto factor = settings.number({"rotary-seq-len-interpolation-factor"})) {
    rotary.scaling = models::RotaryScaling::kLinear;
    rotary.factor = *factor;
  }
  if (!settings.has({"use-rope-scaling"})) return;
  rotary.scaling = models::RotaryScaling::kLlama3;  // with Llama 3.1's bounds, which are the usual ones here
  rotary.factor = settings.number({"rope-scaling-factor"}).value_or(8);
  rotary.original_sequence = 8192;
}

void read_kinds(Settings& settings, Model& model, std::vector<Loss>& losses) {
  const std::string norm = settings.text({"normalization"}).value_or("LayerNorm");
  model.norm = norm == "RMSNorm" || norm == "rmsnorm" ? models::Norm::kRmsNorm : models::Norm::kLayerNorm;
  if (settings.has({"swiglu"})) model.activation = Activation::kSwiglu;
  if (settings.has({"quick-geglu"})) model.activation = Activation::kGeglu;
  // Megatron-DeepSpeed of BigScience: liglu, geglu, reglu, swiglu.
  if (const auto glu = settings.text({"glu-activation"})) {
    model.activation = *glu == "swiglu" ? Activation::kSwiglu : Activation::kGeglu;
    if (*glu != "swiglu" && *glu != "geglu")
      losses.push_back({"--glu-activation", base::one_line(*glu) + " taken as geglu"});
  }
  if (settings.has({"squared-relu"})) {
    model.activation = Activation::kSquaredRelu;
  }
  model.head_norms = settings.has({"qk-layernorm"});
  model.embedding_norm = settings.has({"embed-layernorm", "use-embedding-layernorm"});
  model.norm_epsilon = settings.number({"norm-epsilon", "layernorm-epsilon"}).value_or(model.norm_epsilon);
  const std::string positions = settings.text({"position-embedding-type"}).value_or("learned_absolute");
  if (positions == "learned_absolute") {
    model.positions = Positions::kLearned;
  } else if (positions == "none") {
    model.positions = Positions::kNone;
  } else if (positions == "alibi") {
    model.positions = Positions::kAlibi;
  } else {
    model.positions = Positions::kRotary;
    if (positions != "rope") losses.push_back({"--position-embedding-type", positions + " taken as rope"});
  }
  if (settings.has({"use-rotary-position-embeddings"})) model.positions = Positions::kRotary;
  if (settings.has({"no-position-embedding"})) model.positions = Positions::kNone;
  if (model.positions == Positions::kRotary) read_rotary(settings, model.rotary);
  const bool no_biases = settings.has({"disable-bias-linear"});
  model.linear_bias = !no_biases;
  model.qkv_bias = settings.has({"add-qkv-bias"}) || !no_biases;
  model.tied_embeddings = !settings.has({"untie-embeddings-and-output-weights"});
}

/// "2": every second; "([0]*3+[1]*58)": dense layers first.
void read_layers(Settings& settings, const Model& model, models::Experts& experts, std::vector<Loss>& losses) {
  if (const auto every = settings.count({"expert-interval"})) experts.every = *every;
  const auto pattern = settings.text({"moe-layer-freq"});
  if (!pattern) return;
  if (pattern->find_first_not_of("0123456789") == std::string::npos) {
    experts.every = *settings.count({"moe-layer-freq"});
    return;
  }
  int dense = 0, mixtures = 0;
  if (std::sscanf(pattern->c_str(), "([0]*%6d+[1]*%6d)", &dense, &mixtures) == 2 && dense > 0 &&
      dense + mixtures == model.layers) {
    experts.dense_layers = dense;
    return;
  }
  losses.push_back({"--moe-layer-freq", base::quote(*pattern) + " taken as every layer"});
}

/// Groups are worth their two best scores where a bias chooses, as DeepSeek-V3's are, else their best.
void read_routing(Settings& settings, models::Experts& experts) {
  if (settings.text({"moe-router-score-function"}).value_or("softmax") == "sigmoid") {
    experts.scores = models::Scores::kSigmoid;
  }
  experts.correction_bias = settings.has({"moe-router-enable-expert-bias"});
  experts.normalised = !settings.has({"moe-router-pre-softmax"}) || experts.top_k == 1;
  experts.scale = settings.number({"moe-router-topk-scaling-factor"}).value_or(experts.scale);
  experts.groups = settings.count({"moe-router-num-groups"}).value_or(experts.groups);
  experts.top_groups = settings.count({"moe-router-group-topk"}).value_or(experts.top_groups);
  if (experts.groups > 1 && experts.correction_bias) experts.group_best = 2;
  experts.shared_hidden = settings.count({"moe-shared-expert-intermediate-size"}).value_or(0);
}

void read_experts(Settings& settings, Model& model, std::vector<Loss>& losses) {
  const auto count = settings.count({"num-experts"});
  if (!count) return;
  models::Experts experts;
  experts.count = *count;
  experts.top_k = settings.count({"moe-router-topk", "topk"}).value_or(2);
  const auto capacity = settings.number({"moe-expert-capacity-factor", "moe-train-capacity-factor"});
  experts.capacity_factor = capacity.value_or(experts.capacity_factor);
  // Megatron-Core drops nothing unless it is given a capacity; Megatron-DeepSpeed, told by its --topk, always has one.
  experts.dropless = !capacity && !settings.has({"topk"});
  settings.has({"moe-grouped-gemm"});
  read_layers(settings, model, experts, losses);
  read_routing(settings, experts);
  if (const auto width = settings.count({"moe-ffn-hidden-size"})) {
    if (experts.dense_layers > 0 || experts.every > 1) experts.dense_hidden = model.ffn_hidden;
    model.ffn_hidden = *width;
  }
  model.experts = experts;
}

/// Multi-head latent attention. Keys and queries are as wide as their two parts together.
void read_latent(Settings& settings, Model& model, std::vector<Loss>& losses) {
  if (!settings.has({"multi-latent-attention"})) return;
  models::Latent latent;
  latent.query_rank = settings.count({"q-lora-rank"}).value_or(0);
  latent.key_rank = needed(settings, "kv-lora-rank");
  latent.plain_dim = needed(settings, "qk-head-dim");
  latent.rotary_dim = needed(settings, "qk-pos-emb-head-dim");
  latent.value_dim = needed(settings, "v-head-dim");
  model.head_dim = latent.plain_dim + latent.rotary_dim;
  model.latent = latent;
  // core/transformer/multi_latent_attention.py: the norms are those of the latents, and no product before the heads has
  // a bias.
  if (!model.head_norms) losses.push_back({"--qk-layernorm", "not set; latents are taken with their norms"});
  model.head_norms = model.qkv_bias = false;
}

bool same_shape(Model a, const Model& b) {
  a.name = b.name;
  a.source = b.source;
  return a == b;
}

}  // namespace

void read_multi_token(Settings& settings, const char* depth, const char* loss_scale, Model& model) {
  models::MultiToken mtp;
  mtp.loss_scale = settings.number({loss_scale}).value_or(mtp.loss_scale);
  if (settings.text({depth}).value_or("None") == "None") return;
  mtp.depth = settings.count({depth}, 0, kMostModules).value_or(0);
  model.mtp.reset();
  if (mtp.depth == 0) return;
  if (model.positions == Positions::kLearned) {
    settings.fail(settings.spelled(depth) + " with learned positions is not supported");
  }
  model.mtp = mtp;
}

Model read_model(Settings& settings, const ImportRequest& request, std::vector<Loss>& losses) {
  Model model;
  model.name = "imported";
  model.source = request.where;
  const bool is_given = request.model.has_value();
  model.layers = is_given ? settings.count({"num-layers"}).value_or(0) : needed(settings, "num-layers");
  model.hidden = is_given ? settings.count({"hidden-size"}).value_or(0) : needed(settings, "hidden-size");
  model.heads =
      is_given ? settings.count({"num-attention-heads"}).value_or(0) : needed(settings, "num-attention-heads");
  model.head_dim = settings.count({"kv-channels"}).value_or(0);
  model.max_sequence = settings.count({"max-position-embeddings"}).value_or(0);
  model.vocab = settings.count({"vocab-size", "padded-vocab-size", "pad-vocab-size-to"}).value_or(0);
  const bool groups = settings.has({"group-query-attention"});
  const auto group_count = settings.count({"num-query-groups", "num-key-value-heads"});
  const bool is_old = settings.has({"num-key-value-heads"});
  model.kv_heads = group_count && (groups || is_old) ? *group_count : 0;
  read_kinds(settings, model, losses);
  // Megatron's own default of a gated MLP: two thirds of 4 hidden, in multiples of 64.
  const auto gated_default = model.hidden * 8 / 3 / 64 * 64;
  model.ffn_hidden = settings.count({"ffn-hidden-size"}).value_or(model.gated() ? gated_default : 0);
  read_experts(settings, model, losses);
  read_latent(settings, model, losses);
  if (is_given) return *request.model;
  if (model.max_sequence == 0) model.max_sequence = settings.count({"seq-length"}).value_or(0);
  if (model.max_sequence == 0) settings.fail("--seq-length is missing");
  if (model.vocab == 0) {
    constexpr std::int64_t kGpt2Vocabulary = 50257;
    model.vocab = kGpt2Vocabulary;
    losses.push_back({"vocab", "not in the arguments; taken as the 50257 words of GPT-2"});
  }
  return settled(model, request.where);
}

Model settled(const Model& read, const std::string& where) {
  nlohmann::json json = models::to_json(read);
  for (const char* derived : {"kv_heads", "head_dim", "ffn_hidden"}) {
    if (json[derived] == 0) json.erase(derived);
  }
  const Model model = models::model_from_json(json, where);
  for (const Model& shipped : all_shipped()) {
    if (models::not_run(shipped).empty() && same_shape(model, shipped)) return shipped;
  }
  return model;
}

const std::vector<Model>& all_shipped() {
  static const std::vector<Model> kAll = [] {
    std::vector<Model> all;
    for (const std::string& name : models::shipped_models()) all.push_back(models::load_model(name));
    return all;
  }();
  return kAll;
}

void read_training(Settings& settings, const ImportRequest& request, program::Job& job, std::vector<Loss>& losses) {
  program::Training& t = job.training;
  program::Optimizer& o = t.optimizer;
  t.sequence = settings.count({"seq-length", "encoder-seq-length"}).value_or(job.model.max_sequence);
  if (request.sequence > 0) t.sequence = request.sequence;
  t.global_batch = request.global_batch > 0 ? request.global_batch : settings.count({"global-batch-size"}).value_or(0);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto steps = settings.count({"train-iters"}, 0, kMost);
  const auto samples = settings.count({"train-samples"}, 0, kMost);
  if (steps) t.total_tokens = *steps * t.global_batch * t.sequence;
  if (samples) t.total_tokens = *samples * t.sequence;
  o.learning_rate = settings.number({"lr"}).value_or(o.learning_rate);
  o.min_learning_rate = settings.number({"min-lr"}).value_or(0);
  o.warmup_steps = settings.count({"lr-warmup-iters"}, 0, kMost).value_or(0);
  o.decay_steps = settings.count({"lr-decay-iters"}, 0, kMost).value_or(0);
  const std::int64_t of_step = std::max<std::int64_t>(1, t.global_batch);
  if (const auto warmup = settings.count({"lr-warmup-samples"}, 0, kMost)) o.warmup_steps = *warmup / of_step;
  if (const auto decay = settings.count({"lr-decay-samples"}, 0, kMost)) o.decay_steps = *decay / of_step;
  if (settings.has({"rampup-batch-size"}))
    losses.push_back({"--rampup-batch-size", "the batch is taken as it is after the ramp"});
  o.weight_decay = settings.number({"weight-decay"}).value_or(o.weight_decay);
  o.beta1 = settings.number({"adam-beta1"}).value_or(o.beta1);
  o.beta2 = settings.number({"adam-beta2"}).value_or(o.beta2);
  o.epsilon = settings.number({"adam-eps"}).value_or(o.epsilon);
  o.clip_norm = settings.number({"clip-grad"}).value_or(o.clip_norm);
  t.dropout = settings.number({"hidden-dropout"}).value_or(0.1);
  const double attention = settings.number({"attention-dropout"}).value_or(0.1);
  if (attention != t.dropout) losses.push_back({"--attention-dropout", "taken as --hidden-dropout"});
  const bool is_seed_known = settings.text({"seed"}).value_or("").find('$') == std::string::npos;
  t.seed = static_cast<std::uint64_t>(is_seed_known ? settings.count({"seed"}, 0, kMost).value_or(1234) : 1234);
  const std::string decay = settings.text({"lr-decay-style"}).value_or("cosine");
  if (decay != "cosine") losses.push_back({"--lr-decay-style", base::one_line(decay) + " taken as cosine"});
}

program::Moments read_moments(Settings& settings, const MomentNames& names, bool on_host, std::vector<Loss>& losses) {
  using program::Moments;
  const bool is_aware = settings.is_on({names.precision_aware});
  const std::string m = settings.text({names.first}).value_or("fp32");
  const std::string v = settings.text({names.second}).value_or("fp32");
  const auto are = [&](const char* name, const char* torch) {  // as arguments, and as code and logs have them
    return (m == name || m == torch) && (v == name || v == torch);
  };
  if (are("fp32", "torch.float32")) return Moments::kFp32;
  if (is_aware && !on_host && are("bf16", "torch.bfloat16")) return Moments::kBf16;
  const char* why = !is_aware ? ": the optimizer is not precision-aware" : on_host ? ": the host keeps them so" : "";
  losses.push_back({settings.spelled(names.first),
                    fmt::format("{} and {} {} taken as fp32{}", m, settings.spelled(names.second), v, why)});
  return Moments::kFp32;
}

int read_context_heads(Settings& settings, const std::string& exchange, const std::vector<std::string>& sizes,
                       int context) {
  if (exchange != "a2a+p2p") return 1;
  std::vector<int> numbers;
  for (const std::string& size : sizes) {
    int value = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
    if (error == std::errc() && end == size.data() + size.size()) numbers.push_back(value);
  }
  if (numbers.size() != 2 || numbers[0] < 1 || numbers[1] < 1 || numbers[0] > context ||
      std::int64_t{numbers[0]} * numbers[1] != context) {
    settings.fail(
        fmt::format("a2a+p2p needs two hierarchical context parallel sizes that make up {} context ranks", context));
  }
  return numbers[1] == 1 ? 1 : numbers[0];
}

program::ExpertDispatch read_dispatch(Settings& settings, const DispatchNames& names, std::string_view stack,
                                      std::vector<Loss>& losses) {
  using program::ExpertDispatch;
  const auto type = settings.text({names.type});
  const std::string backend = settings.text({names.backend}).value_or("deepep");
  if (!type) return ExpertDispatch::kStack;
  ExpertDispatch how = ExpertDispatch::kAllToAll;
  if (*type == "flex") {
    how = backend == "hybridep" ? ExpertDispatch::kHybrid : ExpertDispatch::kDeepEp;
    if (backend != "hybridep" && backend != "deepep") {
      losses.push_back({settings.spelled(names.backend), base::one_line(backend) + " taken as deepep"});
    }
  } else if (*type != "alltoall") {
    losses.push_back({settings.spelled(names.type), base::one_line(*type) + " taken as alltoall"});
  }
  return how == program::find_stack(stack)->expert_dispatch ? ExpertDispatch::kStack : how;
}

program::ContextMethod read_exchange(Settings& settings, const char* name, const std::vector<std::string>& given,
                                     std::vector<Loss>& losses) {
  if (given.empty()) return program::ContextMethod::kRing;
  const std::string first = given.front();
  const auto lose = [&](const std::string& what) { losses.push_back({settings.spelled(name), what}); };
  if (std::ranges::adjacent_find(given, std::not_equal_to<>()) != given.end()) {
    lose("differs from layer to layer; taken as the first says");
  }
  if (first == "a2a") return program::ContextMethod::kAllToAll;
  if (first == "allgather") lose("allgather taken as a ring: as many bytes, step by step");
  if (first != "p2p" && first != "allgather" && first != "a2a+p2p") lose(base::one_line(first) + " taken as a ring");
  return program::ContextMethod::kRing;
}

void read_modules(const std::string& argument, const std::vector<std::string>& names, Imported& imported) {
  program::Plan& plan = imported.job.plan;
  if (plan.recompute != program::Recompute::kSelective) return;
  std::vector<program::Module> modules;
  for (const std::string& name : names) {
    if (const auto module = program::module_named(name)) {
      modules.push_back(*module);
    } else {
      imported.losses.push_back({argument, fmt::format("{} is recomputed by no plan", base::quote(name))});
    }
  }
  if (modules != std::vector{program::Module::kCoreAttention}) plan.recompute_modules = std::move(modules);
}

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

/// A count among the words of a launcher: "-np 32", "--nodes=4"; 0 where it is not there or not known.
std::int64_t count_of(const std::vector<std::string>& words, std::initializer_list<std::string_view> names) {
  std::int64_t found = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view name : names) {
      std::string value;
      if (words[i] == name && i + 1 < words.size()) value = words[i + 1];
      if (words[i].starts_with(name) && words[i].size() > name.size() + 1 && words[i][name.size()] == '=') {
        value = words[i].substr(name.size() + 1);
      }
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error == std::errc() && end == value.data() + value.size() && number > 0 && number <= kMostRanks)
        found = number;
    }
  }
  return found;
}

/// Of a header's option: "4", "gpu:8", "gpu:a100:8", "4-8" (the most); 0 where it is no count.
std::int64_t count_in_header(const Script& script, const char* name) {
  const auto found = script.batch.find(name);
  if (found == script.batch.end()) return 0;
  const std::string digits = found->second.substr(found->second.find_last_of(":-") + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && number > 0 && number <= kMostRanks ? number : 0;
}

/// A count that may be of a run: "$SLURM_NNODES", "gpu", "1:4" (elastic: the most) are none or their last number.
std::int64_t launcher_count(Settings& settings, std::initializer_list<const char*> names) {
  auto text = settings.text(names);
  if (!text) return 0;
  text = text->substr(text->find_last_of(':') + 1);
  if (text->find_first_not_of("0123456789") != std::string::npos) return 0;
  return settings.count(names, 1, kMostRanks).value_or(0);
}

int capped(std::int64_t ranks) { return static_cast<int>(std::min(ranks, kMostRanks)); }

}  // namespace

int read_ranks(Settings& settings, const ImportRequest& request) {
  const Script& script = settings.script();
  const auto world = settings.count({"world-size"}, 1, kMostRanks);
  std::int64_t nodes = launcher_count(settings, {"nnodes", "num-nodes", "num-machines"});
  std::int64_t each = launcher_count(settings, {"nproc-per-node", "num-gpus"});
  const bool by_accelerate = !script.command.empty() && script.command.front().ends_with("accelerate");
  const std::int64_t whole = by_accelerate ? launcher_count(settings, {"num-processes"}) : 0;
  if (request.fixes_ranks) return request.ranks;
  if (world) return static_cast<int>(*world);
  if (whole > 0) return capped(whole);
  const bool by_launcher = settings.has({"nnodes", "num-nodes", "nproc-per-node", "num-gpus"});
  if (nodes == 0) nodes = count_of(script.prefix, {"-N", "--nodes"});
  if (nodes == 0) nodes = count_in_header(script, "nodes");
  if (each == 0 && !by_launcher) {
    const std::int64_t tasks = count_of(script.prefix, {"-np", "-n", "--ntasks", "--np"});
    if (tasks > 1) return capped(tasks);
    each = count_of(script.prefix, {"--ntasks-per-node", "-ppn", "-npernode"});
    if (each == 0) each = count_in_header(script, "ntasks-per-node");
    if (each == 0 && count_in_header(script, "ntasks") > 1) return capped(count_in_header(script, "ntasks"));
  }
  for (const char* name : {"gpus-per-node", "gres"}) {
    if (each <= 1 && !(by_launcher && each == 1)) each = std::max(each, count_in_header(script, name));
  }
  if (each == 0 && nodes > 0) each = request.devices_per_node;
  if (nodes > 0 && each > 0) return capped(nodes * each);
  if (request.ranks > 0) return request.ranks;
  return capped(each);
}

}  // namespace trivium::planner::launch
