// Our own JSON form of a model, schema trivium.model/1.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "models/load.h"
#include "models/validate.h"

namespace trivium::models {
namespace {

using base::JsonReader;

const std::string kSchema = "trivium.model/1";

// In the order of the enumerators, so that a name's index is its value.
const std::array<std::string, 2> kNorms = {"layer_norm", "rms_norm"};
const std::array<std::string, 4> kPositions = {"learned", "rotary", "none", "alibi"};
const std::array<std::string, 7> kActivations = {"gelu",     "relu",         "swiglu",        "geglu",
                                                 "gelu_erf", "squared_relu", "clamped_swiglu"};
const std::array<std::string, 2> kScores = {"softmax", "sigmoid"};
const std::array<std::string, 5> kParts = {"embedding", "attention", "mlp", "norms", "head"};
const std::array<std::string, 6> kLayersOfExtras = {"all", "mixture", "dense", "windowed", "full", "none"};
const std::array<std::string, 4> kScalings = {"none", "linear", "llama3", "yarn"};

constexpr double kMostCapacity = 1e6, kMostBalance = 1e6;
constexpr std::int64_t kMostExtra = 1'000'000'000'000;
constexpr double kLeastTheta = 1.001, kMostTheta = 1e12, kMostFactor = 1e6, kLeastTurns = 1e-6;

template <class Enum>
Enum read_choice(const JsonReader& reader, std::string_view key, std::span<const std::string> names, Enum otherwise) {
  const auto member = reader.find(key);
  if (!member) return otherwise;
  const std::string name = member->one_of(names);
  std::size_t index = 0;
  while (names[index] != name) ++index;
  return static_cast<Enum>(index);
}

bool read_flag(const JsonReader& reader, std::string_view key, bool otherwise) {
  const auto member = reader.find(key);
  return member ? member->boolean() : otherwise;
}

/// `otherwise` stands where the member is missing.
std::int64_t read_count(const JsonReader& reader, std::string_view key, std::int64_t most, std::int64_t otherwise) {
  const auto member = reader.find(key);
  return member ? member->integer(1, most) : otherwise;
}

double read_number(const JsonReader& reader, std::string_view key, double least, double most, double otherwise) {
  const auto member = reader.find(key);
  if (!member) return otherwise;
  const double value = member->number();
  if (!(value >= least && value <= most)) member->fail(fmt::format("must lie between {:g} and {:g}", least, most));
  return value;
}

/// Numbers of layers, each above the one before it.
std::vector<std::int64_t> read_layers(const JsonReader& reader, std::string_view key) {
  const auto member = reader.find(key);
  std::vector<std::int64_t> layers;
  if (!member) return layers;
  for (const JsonReader& one : member->elements()) {
    layers.push_back(one.integer(layers.empty() ? 0 : layers.back() + 1, kMostLayers));
  }
  return layers;
}

Experts read_experts(const JsonReader& reader) {
  reader.allow_only({"count", "top_k", "every", "capacity_factor", "balance_loss", "dropless", "imbalance", "scores",
                     "correction_bias", "scales_input", "normalised", "scale", "groups", "top_groups", "group_best",
                     "shared_hidden", "dense_layers", "dense_hidden", "mixture_layers"});
  Experts experts;
  experts.count = reader.at("count").integer(1, kMostExperts);
  experts.top_k = read_count(reader, "top_k", kMostExperts, experts.top_k);
  experts.every = read_count(reader, "every", kMostLayers, experts.every);
  if (const auto factor = reader.find("capacity_factor")) {
    experts.capacity_factor = factor->number();
    if (!(experts.capacity_factor > 0 && experts.capacity_factor <= kMostCapacity)) {
      factor->fail("must be more than 0 and at most 1e6");
    }
  }
  if (const auto weight = reader.find("balance_loss")) {
    experts.balance_loss = weight->number();
    if (!(experts.balance_loss >= 0 && experts.balance_loss <= kMostBalance)) {
      weight->fail("must be 0 or more and at most 1e6");
    }
  }
  experts.dropless = read_flag(reader, "dropless", experts.dropless);
  experts.imbalance = read_number(reader, "imbalance", 1, kMostCapacity, experts.imbalance);
  experts.scores = read_choice(reader, "scores", kScores, experts.scores);
  experts.correction_bias = read_flag(reader, "correction_bias", experts.correction_bias);
  experts.scales_input = read_flag(reader, "scales_input", experts.scales_input);
  experts.normalised = read_flag(reader, "normalised", experts.normalised);
  experts.scale = read_number(reader, "scale", kLeastTurns, kMostFactor, experts.scale);
  experts.groups = read_count(reader, "groups", kMostExperts, experts.groups);
  experts.top_groups = read_count(reader, "top_groups", kMostExperts, experts.top_groups);
  experts.group_best = read_count(reader, "group_best", kMostExperts, experts.group_best);
  experts.shared_hidden = read_count(reader, "shared_hidden", kMostWidth, experts.shared_hidden);
  experts.dense_layers = read_count(reader, "dense_layers", kMostLayers, experts.dense_layers);
  experts.dense_hidden = read_count(reader, "dense_hidden", kMostWidth, experts.dense_hidden);
  experts.mixture_layers = read_layers(reader, "mixture_layers");
  return experts;
}

nlohmann::json to_json(const Experts& e) {
  nlohmann::json json = {{"count", e.count},
                         {"top_k", e.top_k},
                         {"every", e.every},
                         {"capacity_factor", e.capacity_factor},
                         {"balance_loss", e.balance_loss}};
  const Experts usual;
  const auto add = [&](const char* key, const auto& value, const auto& otherwise) {
    if (value != otherwise) json[key] = value;
  };
  add("dropless", e.dropless, usual.dropless);
  add("imbalance", e.imbalance, usual.imbalance);
  if (e.scores != usual.scores) json["scores"] = kScores[static_cast<std::size_t>(e.scores)];
  add("correction_bias", e.correction_bias, usual.correction_bias);
  add("scales_input", e.scales_input, usual.scales_input);
  add("normalised", e.normalised, usual.normalised);
  add("scale", e.scale, usual.scale);
  add("groups", e.groups, usual.groups);
  add("top_groups", e.top_groups, usual.top_groups);
  add("group_best", e.group_best, usual.group_best);
  add("shared_hidden", e.shared_hidden, usual.shared_hidden);
  add("dense_layers", e.dense_layers, usual.dense_layers);
  add("dense_hidden", e.dense_hidden, usual.dense_hidden);
  add("mixture_layers", e.mixture_layers, usual.mixture_layers);
  return json;
}

Latent read_latent(const JsonReader& reader) {
  reader.allow_only({"query_rank", "key_rank", "plain_dim", "rotary_dim", "value_dim"});
  Latent latent;
  latent.query_rank = read_count(reader, "query_rank", kMostWidth, 0);
  latent.key_rank = reader.at("key_rank").integer(1, kMostWidth);
  latent.plain_dim = reader.at("plain_dim").integer(1, kMostHeads);
  latent.rotary_dim = reader.at("rotary_dim").integer(1, kMostHeads);
  latent.value_dim = reader.at("value_dim").integer(1, kMostHeads);
  return latent;
}

nlohmann::json to_json(const Latent& l) {
  nlohmann::json json = {
      {"key_rank", l.key_rank}, {"plain_dim", l.plain_dim}, {"rotary_dim", l.rotary_dim}, {"value_dim", l.value_dim}};
  if (l.query_rank > 0) json["query_rank"] = l.query_rank;
  return json;
}

Rotary read_rotary(const JsonReader& reader) {
  reader.allow_only({"theta", "share", "scaling", "factor", "original_sequence", "slow_turns", "fast_turns",
                     "amplitude", "whole_pairs"});
  Rotary r;
  r.theta = read_number(reader, "theta", kLeastTheta, kMostTheta, r.theta);
  r.share = read_number(reader, "share", 0, 1, r.share);
  r.scaling = read_choice(reader, "scaling", kScalings, r.scaling);
  r.factor = read_number(reader, "factor", 1, kMostFactor, r.factor);
  r.original_sequence = read_count(reader, "original_sequence", kMostPositions, r.original_sequence);
  r.slow_turns = read_number(reader, "slow_turns", kLeastTurns, kMostFactor, r.slow_turns);
  r.fast_turns = read_number(reader, "fast_turns", kLeastTurns, kMostFactor, r.fast_turns);
  r.amplitude = read_number(reader, "amplitude", kLeastTurns, kMostFactor, r.amplitude);
  r.whole_pairs = read_flag(reader, "whole_pairs", r.whole_pairs);
  return r;
}

nlohmann::json to_json(const Rotary& r) {
  nlohmann::json json = {{"theta", r.theta},
                         {"share", r.share},
                         {"scaling", kScalings[static_cast<std::size_t>(r.scaling)]},
                         {"factor", r.factor},
                         {"slow_turns", r.slow_turns},
                         {"fast_turns", r.fast_turns},
                         {"amplitude", r.amplitude},
                         {"whole_pairs", r.whole_pairs}};
  if (r.original_sequence > 0) json["original_sequence"] = r.original_sequence;
  return json;
}

Window read_window(const JsonReader& reader) {
  reader.allow_only({"keys", "first_layer", "full_every", "rotary", "chunked", "plain_full", "full_layers"});
  Window window;
  window.keys = reader.at("keys").integer(1, kMostPositions);
  if (const auto first = reader.find("first_layer")) window.first_layer = first->integer(0, kMostLayers);
  if (const auto every = reader.find("full_every")) window.full_every = every->integer(0, kMostLayers);
  if (const auto rotary = reader.find("rotary")) window.rotary = read_rotary(*rotary);
  window.chunked = read_flag(reader, "chunked", window.chunked);
  window.plain_full = read_flag(reader, "plain_full", window.plain_full);
  window.full_layers = read_layers(reader, "full_layers");
  return window;
}

nlohmann::json to_json(const Window& window) {
  nlohmann::json json = {{"keys", window.keys}, {"first_layer", window.first_layer}, {"full_every", window.full_every}};
  if (window.rotary) json["rotary"] = to_json(*window.rotary);
  if (window.chunked) json["chunked"] = true;
  if (window.plain_full) json["plain_full"] = true;
  if (!window.full_layers.empty()) json["full_layers"] = window.full_layers;
  return json;
}

Temperature read_temperature(const JsonReader& reader) {
  reader.allow_only({"slope", "run"});
  return {.slope = read_number(reader, "slope", 0, kMostFactor, 0), .run = reader.at("run").integer(1, kMostPositions)};
}

nlohmann::json to_json(const Temperature& t) { return {{"slope", t.slope}, {"run", t.run}}; }

MultiToken read_multi_token(const JsonReader& reader) {
  reader.allow_only({"depth", "loss_scale"});
  MultiToken mtp;
  mtp.depth = read_count(reader, "depth", kMostModules, mtp.depth);
  mtp.loss_scale = read_number(reader, "loss_scale", 0, kMostFactor, mtp.loss_scale);
  return mtp;
}

nlohmann::json to_json(const MultiToken& m) { return {{"depth", m.depth}, {"loss_scale", m.loss_scale}}; }

Extra read_extra(const JsonReader& reader) {
  reader.allow_only({"name", "part", "layers", "parameters"});
  Extra extra;
  extra.name = reader.at("name").text();
  extra.part = read_choice(reader, "part", kParts, extra.part);
  extra.layers = read_choice(reader, "layers", kLayersOfExtras, extra.layers);
  extra.parameters = reader.at("parameters").integer(0, kMostExtra);
  return extra;
}

nlohmann::json to_json(const Extra& e) {
  return {{"name", e.name},
          {"part", kParts[static_cast<std::size_t>(e.part)]},
          {"layers", kLayersOfExtras[static_cast<std::size_t>(e.layers)]},
          {"parameters", e.parameters}};
}

void allow_members(const JsonReader& reader) {
  reader.allow_only({"schema",
                     "name",
                     "source",
                     "layers",
                     "hidden",
                     "heads",
                     "kv_heads",
                     "head_dim",
                     "ffn_hidden",
                     "vocab",
                     "max_sequence",
                     "norm",
                     "positions",
                     "activation",
                     "linear_bias",
                     "qkv_bias",
                     "tied_embeddings",
                     "parallel_block",
                     "embedding_norm",
                     "shared_norm",
                     "experts",
                     "rotary",
                     "norm_epsilon",
                     "attention_scale",
                     "head_norms",
                     "window",
                     "attention_sinks",
                     "branch_norms",
                     "attention_soft_cap",
                     "logit_soft_cap",
                     "embedding_scale",
                     "latent",
                     "plain_head_norms",
                     "logit_scale",
                     "temperature",
                     "mtp",
                     "extras",
                     "plain_norms"});
}

}  // namespace

Model model_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonReader reader = JsonReader(json, where);
  allow_members(reader);
  reader.at("schema").one_of(std::span(&kSchema, 1));

  Model model;
  model.name = reader.at("name").text();
  if (model.name.empty()) reader.at("name").fail("must not be empty");
  if (const auto source = reader.find("source")) model.source = source->text();
  model.layers = reader.at("layers").integer(1, kMostLayers);
  model.hidden = reader.at("hidden").integer(1, kMostWidth);
  model.heads = reader.at("heads").integer(1, kMostHeads);
  model.kv_heads = read_count(reader, "kv_heads", kMostHeads, 0);
  model.head_dim = read_count(reader, "head_dim", kMostHeads, 0);
  model.ffn_hidden = read_count(reader, "ffn_hidden", kMostWidth, 0);
  model.vocab = reader.at("vocab").integer(1, kMostVocab);
  model.max_sequence = reader.at("max_sequence").integer(1, kMostPositions);
  model.norm = read_choice(reader, "norm", kNorms, model.norm);
  model.positions = read_choice(reader, "positions", kPositions, model.positions);
  model.activation = read_choice(reader, "activation", kActivations, model.activation);
  model.linear_bias = read_flag(reader, "linear_bias", model.linear_bias);
  model.qkv_bias = read_flag(reader, "qkv_bias", model.linear_bias);
  model.tied_embeddings = read_flag(reader, "tied_embeddings", model.tied_embeddings);
  model.embedding_norm = read_flag(reader, "embedding_norm", model.embedding_norm);
  model.parallel_block = read_flag(reader, "parallel_block", model.parallel_block);
  model.shared_norm = read_flag(reader, "shared_norm", model.shared_norm);
  if (const auto experts = reader.find("experts")) model.experts = read_experts(*experts);
  if (const auto latent = reader.find("latent")) model.latent = read_latent(*latent);
  if (const auto rotary = reader.find("rotary")) model.rotary = read_rotary(*rotary);
  model.head_norms = read_flag(reader, "head_norms", model.head_norms);
  model.plain_head_norms = read_flag(reader, "plain_head_norms", model.plain_head_norms);
  model.plain_norms = read_flag(reader, "plain_norms", model.plain_norms);
  model.branch_norms = read_flag(reader, "branch_norms", model.branch_norms);
  model.attention_soft_cap = read_number(reader, "attention_soft_cap", 0, kMostFactor, model.attention_soft_cap);
  model.logit_scale = read_number(reader, "logit_scale", kLeastTurns, kMostFactor, model.logit_scale);
  model.logit_soft_cap = read_number(reader, "logit_soft_cap", 0, kMostFactor, model.logit_soft_cap);
  model.embedding_scale = read_number(reader, "embedding_scale", kLeastTurns, kMostFactor, model.embedding_scale);
  model.attention_sinks = read_flag(reader, "attention_sinks", model.attention_sinks);
  if (const auto window = reader.find("window")) model.window = read_window(*window);
  if (const auto extras = reader.find("extras")) {
    for (const JsonReader& one : extras->elements()) model.extras.push_back(read_extra(one));
  }
  if (const auto mtp = reader.find("mtp")) model.mtp = read_multi_token(*mtp);
  if (const auto temperature = reader.find("temperature")) model.temperature = read_temperature(*temperature);
  model.norm_epsilon = read_number(reader, "norm_epsilon", 0, 1, model.norm_epsilon);
  model.attention_scale = read_number(reader, "attention_scale", 0, kMostFactor, model.attention_scale);
  complete_and_validate(model, reader);
  return model;
}

nlohmann::json to_json(const Model& model) {
  nlohmann::json json = {{"schema", kSchema},
                         {"name", model.name},
                         {"source", model.source},
                         {"layers", model.layers},
                         {"hidden", model.hidden},
                         {"heads", model.heads},
                         {"kv_heads", model.kv_heads},
                         {"head_dim", model.head_dim},
                         {"ffn_hidden", model.ffn_hidden},
                         {"vocab", model.vocab},
                         {"max_sequence", model.max_sequence},
                         {"norm", kNorms[static_cast<std::size_t>(model.norm)]},
                         {"positions", kPositions[static_cast<std::size_t>(model.positions)]},
                         {"activation", kActivations[static_cast<std::size_t>(model.activation)]},
                         {"linear_bias", model.linear_bias},
                         {"qkv_bias", model.qkv_bias},
                         {"tied_embeddings", model.tied_embeddings},
                         {"parallel_block", model.parallel_block},
                         {"shared_norm", model.shared_norm}};
  const Model usual;
  if (model.embedding_norm) json["embedding_norm"] = true;
  if (model.rotary != usual.rotary) json["rotary"] = to_json(model.rotary);
  if (model.head_norms) json["head_norms"] = true;
  if (model.attention_sinks) json["attention_sinks"] = true;
  if (model.plain_head_norms) json["plain_head_norms"] = true;
  if (model.window) json["window"] = to_json(*model.window);
  if (model.mtp) json["mtp"] = to_json(*model.mtp);
  for (const Extra& extra : model.extras) json["extras"].push_back(to_json(extra));
  if (model.temperature) json["temperature"] = to_json(*model.temperature);
  if (model.plain_norms) json["plain_norms"] = true;
  if (model.branch_norms) json["branch_norms"] = true;
  if (model.attention_soft_cap != 0) json["attention_soft_cap"] = model.attention_soft_cap;
  if (model.logit_scale != 1) json["logit_scale"] = model.logit_scale;
  if (model.logit_soft_cap != 0) json["logit_soft_cap"] = model.logit_soft_cap;
  if (model.embedding_scale != 1) json["embedding_scale"] = model.embedding_scale;
  if (model.norm_epsilon != usual.norm_epsilon) json["norm_epsilon"] = model.norm_epsilon;
  if (model.attention_scale != usual.attention_scale) json["attention_scale"] = model.attention_scale;
  if (model.experts) json["experts"] = to_json(*model.experts);
  if (model.latent) json["latent"] = to_json(*model.latent);
  return json;
}

}  // namespace trivium::models
