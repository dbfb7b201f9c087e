#include "program/job_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trivium::program {
namespace {

constexpr std::int64_t kMostCount = 1 << 24;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

// The value whose name stands in the JSON, among `values`.
template <class Enum>
Enum named(const edge::JsonReader& reader, std::initializer_list<Enum> values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.emplace_back(name_of(value));
  const std::string name = reader.one_of(names);
  for (const Enum value : values) {
    if (name_of(value) == name) return value;
  }
  return *values.begin();
}

Recompute recompute_at(const edge::JsonReader& reader) {
  return named(reader, {Recompute::kNone, Recompute::kSelective, Recompute::kFull});
}

Storage storage_at(const edge::JsonReader& reader) {
  return named(reader, {Storage::kNone, Storage::kHost, Storage::kDisk});
}

// Calls `read` with the member where the object has it.
template <class Read>
void optional(const edge::JsonReader& reader, const char* key, Read read) {
  if (const auto member = reader.find(key)) read(*member);
}

void read_count(const edge::JsonReader& reader, const char* key, int& into, int low = 1) {
  optional(reader, key, [&](const auto& r) { into = static_cast<int>(r.integer(low, kMostCount)); });
}

void read_bool(const edge::JsonReader& reader, const char* key, bool& into) {
  optional(reader, key, [&](const auto& r) { into = r.boolean(); });
}

void read_split(const edge::JsonReader& r, Plan& plan) {
  read_count(r, "tensor", plan.tensor);
  read_bool(r, "sequence_parallel", plan.sequence_parallel);
  read_count(r, "context", plan.context);
  optional(r, "context_method", [&](const auto& m) {
    plan.context_method = named(m, {ContextMethod::kRing, ContextMethod::kAllToAll});
  });
  read_count(r, "pipeline", plan.pipeline);
  read_count(r, "virtual_stages", plan.virtual_stages);
  optional(r, "schedule", [&](const auto& m) {
    plan.schedule = named(
        m, {Schedule::kSequential, Schedule::kGpipe, Schedule::k1f1b, Schedule::kInterleaved, Schedule::kZeroBubble});
  });
  optional(r, "stage_layers", [&](const auto& m) {
    plan.stage_layers.clear();
    for (const auto& e : m.elements()) plan.stage_layers.push_back(static_cast<int>(e.integer(0, kMostCount)));
  });
  read_count(r, "data", plan.data);
  constexpr int kMostZeroStage = 3;
  optional(r, "zero_stage", [&](const auto& m) { plan.zero_stage = static_cast<int>(m.integer(0, kMostZeroStage)); });
  read_count(r, "shard_group", plan.shard_group, 0);
  read_count(r, "expert", plan.expert);
  read_count(r, "micro_batch", plan.micro_batch);
  optional(r, "replica_micro_batch", [&](const auto& m) {
    plan.replica_micro_batch.clear();
    for (const auto& e : m.elements()) plan.replica_micro_batch.push_back(static_cast<int>(e.integer(1, kMostCount)));
  });
}

void read_execution(const edge::JsonReader& r, Plan& plan) {
  optional(r, "recompute", [&](const auto& m) { plan.recompute = recompute_at(m); });
  optional(r, "stage_recompute", [&](const auto& m) {
    plan.stage_recompute.clear();
    for (const auto& e : m.elements()) plan.stage_recompute.push_back(recompute_at(e));
  });
  const auto float_type = [](const edge::JsonReader& m) {
    return named(m, {DType::kFp64, DType::kFp32, DType::kBf16, DType::kFp16});
  };
  optional(r, "precision", [&](const auto& m) { plan.precision = float_type(m); });
  optional(r, "reduce_dtype", [&](const auto& m) { plan.reduce_dtype = float_type(m); });
  optional(r, "attention", [&](const auto& m) { plan.attention = named(m, {Attention::kUnfused, Attention::kFlash}); });
  optional(r, "overlap", [&](const auto& m) {
    m.allow_only({"gradient_reduction", "parameter_gather", "pipeline", "tensor"});
    read_bool(m, "gradient_reduction", plan.overlap.gradient_reduction);
    read_bool(m, "parameter_gather", plan.overlap.parameter_gather);
    read_bool(m, "pipeline", plan.overlap.pipeline);
    read_bool(m, "tensor", plan.overlap.tensor);
  });
  optional(r, "bucket_bytes", [&](const auto& m) { plan.bucket_bytes = m.integer(0, kMostBytes); });
  optional(r, "offload", [&](const auto& m) {
    m.allow_only({"optimizer", "gradients", "parameters", "activations"});
    optional(m, "optimizer", [&](const auto& s) { plan.offload.optimizer = storage_at(s); });
    optional(m, "gradients", [&](const auto& s) { plan.offload.gradients = storage_at(s); });
    optional(m, "parameters", [&](const auto& s) { plan.offload.parameters = storage_at(s); });
    optional(m, "activations", [&](const auto& s) { plan.offload.activations = storage_at(s); });
  });
  optional(r, "scatter_gather", [&](const auto& m) {
    plan.scatter_gather = named(m, {ScatterGather::kStack, ScatterGather::kOn, ScatterGather::kOff});
  });
  optional(r, "compression", [&](const auto& m) {
    plan.compression = named(m, {Compression::kNone, Compression::kFp16, Compression::kTopK});
  });
  optional(r, "top_k_share", [&](const auto& m) {
    plan.top_k_share = m.number();
    if (!(plan.top_k_share > 0 && plan.top_k_share <= 1)) m.fail("is a share; give a number above 0 and at most 1");
  });
  optional(r, "placement", [&](const auto& m) { plan.placement = m.text(); });
  optional(r, "stage_nodes", [&](const auto& m) {
    plan.stage_nodes.clear();
    for (const auto& e : m.elements()) plan.stage_nodes.push_back(static_cast<int>(e.integer(0, kMostCount)));
  });
  optional(r, "stack", [&](const auto& m) {
    std::vector<std::string> names;
    for (const Habits& habits : all_habits()) names.push_back(habits.name);
    plan.stack = m.one_of(names);
  });
}

double positive(const edge::JsonReader& reader, bool zero_allowed = true) {
  const double value = reader.number();
  if (!(value >= 0)) reader.fail("must not be negative");
  if (!zero_allowed && value == 0) reader.fail("must be above zero");
  return value;
}

}  // namespace

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json json{{"tensor", plan.tensor},
                      {"sequence_parallel", plan.sequence_parallel},
                      {"context", plan.context},
                      {"context_method", name_of(plan.context_method)},
                      {"pipeline", plan.pipeline},
                      {"virtual_stages", plan.virtual_stages},
                      {"schedule", name_of(plan.schedule)},
                      {"data", plan.data},
                      {"zero_stage", plan.zero_stage},
                      {"shard_group", plan.shard_group},
                      {"expert", plan.expert},
                      {"micro_batch", plan.micro_batch},
                      {"recompute", name_of(plan.recompute)},
                      {"precision", name_of(plan.precision)},
                      {"reduce_dtype", name_of(plan.reduce_dtype)},
                      {"attention", name_of(plan.attention)},
                      {"overlap",
                       {{"gradient_reduction", plan.overlap.gradient_reduction},
                        {"parameter_gather", plan.overlap.parameter_gather},
                        {"pipeline", plan.overlap.pipeline},
                        {"tensor", plan.overlap.tensor}}},
                      {"bucket_bytes", plan.bucket_bytes},
                      {"offload",
                       {{"optimizer", name_of(plan.offload.optimizer)},
                        {"gradients", name_of(plan.offload.gradients)},
                        {"parameters", name_of(plan.offload.parameters)},
                        {"activations", name_of(plan.offload.activations)}}},
                      {"scatter_gather", name_of(plan.scatter_gather)},
                      {"compression", name_of(plan.compression)},
                      {"top_k_share", plan.top_k_share},
                      {"placement", plan.placement},
                      {"stage_nodes", plan.stage_nodes},
                      {"stack", plan.stack}};
  json["stage_layers"] = plan.stage_layers;
  if (!plan.replica_micro_batch.empty()) json["replica_micro_batch"] = plan.replica_micro_batch;
  auto& recompute = json["stage_recompute"] = nlohmann::json::array();
  for (const Recompute r : plan.stage_recompute) recompute.push_back(name_of(r));
  return json;
}

nlohmann::json to_json(const Training& t) {
  return {{"sequence", t.sequence},
          {"global_batch", t.global_batch},
          {"total_tokens", t.total_tokens},
          {"dropout", t.dropout},
          {"seed", t.seed},
          {"learning_rate", t.optimizer.learning_rate},
          {"min_learning_rate", t.optimizer.min_learning_rate},
          {"warmup_steps", t.optimizer.warmup_steps},
          {"decay_steps", t.optimizer.decay_steps},
          {"beta1", t.optimizer.beta1},
          {"beta2", t.optimizer.beta2},
          {"epsilon", t.optimizer.epsilon},
          {"weight_decay", t.optimizer.weight_decay},
          {"clip_norm", t.optimizer.clip_norm},
          {"loss_scale", t.loss_scaling.initial},
          {"loss_scale_interval", t.loss_scaling.interval},
          {"loss_scale_backoff", t.loss_scaling.backoff}};
}

Plan plan_from_json(const edge::JsonReader& reader) {
  reader.allow_only({"tensor",       "sequence_parallel", "context",         "context_method",
                     "pipeline",     "virtual_stages",    "schedule",        "stage_layers",
                     "data",         "zero_stage",        "shard_group",     "expert",
                     "micro_batch",  "recompute",         "stage_recompute", "precision",
                     "reduce_dtype", "attention",         "overlap",         "bucket_bytes",
                     "offload",      "scatter_gather",    "compression",     "top_k_share",
                     "placement",    "stage_nodes",       "stack",           "replica_micro_batch"});
  Plan plan;
  read_split(reader, plan);
  read_execution(reader, plan);
  return plan;
}

Training training_from_json(const edge::JsonReader& r) {
  r.allow_only({"sequence", "global_batch", "total_tokens", "dropout", "seed", "learning_rate", "min_learning_rate",
                "warmup_steps", "decay_steps", "beta1", "beta2", "epsilon", "weight_decay", "clip_norm", "loss_scale",
                "loss_scale_interval", "loss_scale_backoff"});
  Training t;
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 53;
  optional(r, "sequence", [&](const auto& m) { t.sequence = m.integer(0, kMostCount); });
  optional(r, "global_batch", [&](const auto& m) { t.global_batch = m.integer(0, kMostCount); });
  optional(r, "total_tokens", [&](const auto& m) { t.total_tokens = m.integer(0, kMostTokens); });
  optional(r, "dropout", [&](const auto& m) {
    t.dropout = positive(m);
    if (t.dropout >= 1) m.fail("is a probability; give a number below 1");
  });
  optional(r, "seed", [&](const auto& m) { t.seed = static_cast<std::uint64_t>(m.integer(0, kMostTokens)); });
  Optimizer& o = t.optimizer;
  optional(r, "learning_rate", [&](const auto& m) { o.learning_rate = positive(m); });
  optional(r, "min_learning_rate", [&](const auto& m) { o.min_learning_rate = positive(m); });
  optional(r, "warmup_steps", [&](const auto& m) { o.warmup_steps = m.integer(0, kMostTokens); });
  optional(r, "decay_steps", [&](const auto& m) { o.decay_steps = m.integer(0, kMostTokens); });
  const auto beta = [](const edge::JsonReader& m) {
    const double value = positive(m);
    if (value >= 1) m.fail("must be below 1");
    return value;
  };
  optional(r, "beta1", [&](const auto& m) { o.beta1 = beta(m); });
  optional(r, "beta2", [&](const auto& m) { o.beta2 = beta(m); });
  optional(r, "epsilon", [&](const auto& m) { o.epsilon = positive(m, false); });
  optional(r, "weight_decay", [&](const auto& m) { o.weight_decay = positive(m); });
  optional(r, "clip_norm", [&](const auto& m) { o.clip_norm = positive(m); });
  LossScaling& s = t.loss_scaling;
  optional(r, "loss_scale", [&](const auto& m) {
    s.initial = m.number();
    if (!(s.initial >= 1)) m.fail("must be 1 or more");
  });
  optional(r, "loss_scale_interval", [&](const auto& m) { s.interval = m.integer(1, kMostTokens); });
  optional(r, "loss_scale_backoff", [&](const auto& m) {
    s.backoff = positive(m, false);
    if (s.backoff >= 1) m.fail("must be below 1");
  });
  return t;
}

}  // namespace trivium::program
