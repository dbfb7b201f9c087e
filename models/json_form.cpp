// Our own JSON form of a model, schema trivium.model/1.
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
const std::array<std::string, 4> kActivations = {"gelu", "relu", "swiglu", "geglu"};

constexpr double kMostCapacity = 1e6, kMostBalance = 1e6;

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

}  // namespace

Model model_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonReader reader = JsonReader(json, where);
  reader.allow_only({"schema",      "name",       "source",      "layers",   "hidden",          "heads",
                     "kv_heads",    "head_dim",   "ffn_hidden",  "vocab",    "max_sequence",    "norm",
                     "positions",   "activation", "linear_bias", "qkv_bias", "tied_embeddings", "parallel_block",
                     "shared_norm", "experts"});
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
