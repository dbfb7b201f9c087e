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
const std::array<std::string, 3> kPositions = {"learned", "rotary", "none"};
const std::array<std::string, 7> kActivations = {"gelu",     "relu",         "swiglu",        "geglu",
                                                 "gelu_erf", "squared_relu", "clamped_swiglu"};
const std::array<std::string, 4> kScalings = {"none", "linear", "llama3", "yarn"};

constexpr double kMostCapacity = 1e6, kMostBalance = 1e6;
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

Experts read_experts(const JsonReader& reader) {
  reader.allow_only({"count", "top_k", "every", "capacity_factor", "balance_loss"});
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
  return experts;
}

double read_number(const JsonReader& reader, std::string_view key, double least, double most, double otherwise) {
  const auto member = reader.find(key);
  if (!member) return otherwise;
  const double value = member->number();
  if (!(value >= least && value <= most)) member->fail(fmt::format("must lie between {:g} and {:g}", least, most));
  return value;
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
  reader.allow_only({"keys", "first_layer", "full_every", "rotary"});
  Window window;
  window.keys = reader.at("keys").integer(1, kMostPositions);
  if (const auto first = reader.find("first_layer")) window.first_layer = first->integer(0, kMostLayers);
  if (const auto every = reader.find("full_every")) window.full_every = every->integer(0, kMostLayers);
  if (const auto rotary = reader.find("rotary")) window.rotary = read_rotary(*rotary);
  return window;
}

nlohmann::json to_json(const Window& window) {
  nlohmann::json json = {{"keys", window.keys}, {"first_layer", window.first_layer}, {"full_every", window.full_every}};
  if (window.rotary) json["rotary"] = to_json(*window.rotary);
  return json;
}

}  // namespace

Model model_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonReader reader = JsonReader(json, where);
  reader.allow_only({"schema",          "name",
                     "source",          "layers",
                     "hidden",          "heads",
                     "kv_heads",        "head_dim",
                     "ffn_hidden",      "vocab",
                     "max_sequence",    "norm",
                     "positions",       "activation",
                     "linear_bias",     "qkv_bias",
                     "tied_embeddings", "parallel_block",
                     "shared_norm",     "experts",
                     "rotary",          "norm_epsilon",
                     "attention_scale", "head_norms",
                     "window",          "attention_sinks",
                     "branch_norms",    "attention_soft_cap",
                     "logit_soft_cap",  "embedding_scale"});
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
  model.qkv_bias = read_flag(reader, "qkv_bias", model.qkv_bias);
  model.tied_embeddings = read_flag(reader, "tied_embeddings", model.tied_embeddings);
  model.parallel_block = read_flag(reader, "parallel_block", model.parallel_block);
  model.shared_norm = read_flag(reader, "shared_norm", model.shared_norm);
  if (const auto experts = reader.find("experts")) model.experts = read_experts(*experts);
  if (const auto rotary = reader.find("rotary")) model.rotary = read_rotary(*rotary);
  model.head_norms = read_flag(reader, "head_norms", model.head_norms);
  model.branch_norms = read_flag(reader, "branch_norms", model.branch_norms);
  model.attention_soft_cap = read_number(reader, "attention_soft_cap", 0, kMostFactor, model.attention_soft_cap);
  model.logit_soft_cap = read_number(reader, "logit_soft_cap", 0, kMostFactor, model.logit_soft_cap);
  model.embedding_scale = read_number(reader, "embedding_scale", kLeastTurns, kMostFactor, model.embedding_scale);
  model.attention_sinks = read_flag(reader, "attention_sinks", model.attention_sinks);
  if (const auto window = reader.find("window")) model.window = read_window(*window);
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
  if (model.rotary != usual.rotary) json["rotary"] = to_json(model.rotary);
  if (model.head_norms) json["head_norms"] = true;
  if (model.attention_sinks) json["attention_sinks"] = true;
  if (model.window) json["window"] = to_json(*model.window);
  if (model.branch_norms) json["branch_norms"] = true;
  if (model.attention_soft_cap != 0) json["attention_soft_cap"] = model.attention_soft_cap;
  if (model.logit_soft_cap != 0) json["logit_soft_cap"] = model.logit_soft_cap;
  if (model.embedding_scale != 1) json["embedding_scale"] = model.embedding_scale;
  if (model.norm_epsilon != usual.norm_epsilon) json["norm_epsilon"] = model.norm_epsilon;
  if (model.attention_scale != usual.attention_scale) json["attention_scale"] = model.attention_scale;
  if (model.experts) {
    json["experts"] = {{"count", model.experts->count},
                       {"top_k", model.experts->top_k},
                       {"every", model.experts->every},
                       {"capacity_factor", model.experts->capacity_factor},
                       {"balance_loss", model.experts->balance_loss}};
  }
  return json;
}

}  // namespace trivium::models
