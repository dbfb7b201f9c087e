// The rows of a training's fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "program/plan/fields.h"

namespace trivium::program {
namespace {

using base::JsonReader;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 53;

double positive(const JsonReader& reader, bool zero_allowed = true) {
  const double value = reader.number();
  if (!(value >= 0)) reader.fail("must not be negative");
  if (!zero_allowed && value == 0) reader.fail("must be above zero");
  return value;
}

double below_one(const JsonReader& reader, bool zero_allowed = true) {
  const double value = positive(reader, zero_allowed);
  if (value >= 1) reader.fail("must be below 1");
  return value;
}

double probability(const JsonReader& reader) {
  const double value = positive(reader);
  if (value >= 1) reader.fail("is a probability; give a number below 1");
  return value;
}

double one_or_more(const JsonReader& reader) {
  const double value = reader.number();
  if (!(value >= 1)) reader.fail("must be 1 or more");
  return value;
}

double zipf_of(const JsonReader& reader) {
  const double value = positive(reader);
  if (value > 10) reader.fail("is the exponent of Zipf's law; give 10 or less");
  return value;
}

constexpr std::int64_t kMostRank = 4096;
constexpr std::int64_t kMostIterations = 100;

Update update_of(const JsonReader& reader) {
  const std::vector<std::string> names{std::string(name_of(Update::kAdamW)), std::string(name_of(Update::kMuon))};
  return reader.one_of(names) == names[1] ? Update::kMuon : Update::kAdamW;
}

const std::array<std::pair<const char*, bool Lora::*>, 4> kTargets{
    {{"qkv", &Lora::qkv}, {"projection", &Lora::projection}, {"fc1", &Lora::fc1}, {"fc2", &Lora::fc2}}};

nlohmann::json targets_of(const Lora& lora) {
  auto names = nlohmann::json::array();
  for (const auto& [name, member] : kTargets) {
    if (lora.*member) names.push_back(name);
  }
  return names;
}

void read_targets(const JsonReader& reader, Lora& lora) {
  std::vector<std::string> names;
  for (const auto& [name, member] : kTargets) names.emplace_back(name), lora.*member = false;
  const auto chosen = reader.elements();
  if (chosen.empty()) reader.fail("adapters need a target; give qkv, projection, fc1, fc2 or several of them");
  for (const JsonReader& element : chosen) {
    const std::string name = element.one_of(names);
    for (const auto& [known, member] : kTargets) lora.*member = lora.*member || name == known;
  }
}

std::vector<std::int64_t> counts(const JsonReader& reader) {
  std::vector<std::int64_t> values;
  for (const JsonReader& element : reader.elements()) values.push_back(element.integer(1, kMostCount));
  if (values.size() > kMostLengths) reader.fail(fmt::format("has {} entries; at most {}", values.size(), kMostLengths));
  return values;
}

std::vector<std::int64_t> choices(const JsonReader& reader) {
  std::vector<std::int64_t> values;
  for (const JsonReader& element : reader.elements()) values.push_back(element.integer(0, kMostChoices));
  if (values.size() > kMostLengths) reader.fail(fmt::format("has {} entries; at most {}", values.size(), kMostLengths));
  if (!values.empty() && std::ranges::max(values) == 0) reader.fail("is 0 for all experts; one at least was chosen");
  return values;
}

}  // namespace

bool TrainingField::is_list() const { return json(Training{}).is_array(); }

#define TRIVIUM_ROW(name, values, help, member, value)                              \
  {                                                                                 \
    name, values, help, [](const Training& t) { return nlohmann::json(t.member); }, \
        [](const JsonReader& r, Training& t) { t.member = value; }                  \
  }

const std::vector<TrainingField>& training_field_table() {
  static const std::vector<TrainingField> kTable{
      TRIVIUM_ROW("sequence", "TOKENS", "Tokens of a sample; default: the model's longest", sequence,
                  r.integer(0, kMostCount)),
      TRIVIUM_ROW("global_batch", "SAMPLES", "Samples of an optimizer step", global_batch, r.integer(0, kMostCount)),
      TRIVIUM_ROW("total_tokens", "N[K|M|B|T]", "The same as --tokens", total_tokens, r.integer(0, kMostTokens)),
      TRIVIUM_ROW("dropout", "P", "Probability of dropout", dropout, probability(r)),
      TRIVIUM_ROW("seed", "N", "Seed of parameters and sample order", seed,
                  static_cast<std::uint64_t>(r.integer(0, kMostTokens))),
      TRIVIUM_ROW("learning_rate", "RATE", "Highest learning rate", optimizer.learning_rate, positive(r)),
      TRIVIUM_ROW("min_learning_rate", "RATE", "Learning rate after the decay", optimizer.min_learning_rate,
                  positive(r)),
      TRIVIUM_ROW("warmup_steps", "N", "Steps of linear warm-up", optimizer.warmup_steps, r.integer(0, kMostTokens)),
      TRIVIUM_ROW("decay_steps", "N", "Steps of cosine decay; 0: the steps of the run", optimizer.decay_steps,
                  r.integer(0, kMostTokens)),
      TRIVIUM_ROW("beta1", "B", "AdamW: decay of the first moment", optimizer.beta1, below_one(r)),
      TRIVIUM_ROW("beta2", "B", "AdamW: decay of the second moment", optimizer.beta2, below_one(r)),
      TRIVIUM_ROW("epsilon", "E", "AdamW: added to the root of the second moment", optimizer.epsilon,
                  positive(r, false)),
      TRIVIUM_ROW("weight_decay", "W", "AdamW: decoupled weight decay of matrices", optimizer.weight_decay,
                  positive(r)),
      TRIVIUM_ROW("clip_norm", "NORM", "Largest gradient norm; 0: no clipping", optimizer.clip_norm, positive(r)),
      TRIVIUM_ROW("loss_scale", "SCALE", "fp16: what the loss is multiplied by at the start", loss_scaling.initial,
                  one_or_more(r)),
      TRIVIUM_ROW("loss_scale_interval", "N", "fp16: steps without overflow after which the scale doubles",
                  loss_scaling.interval, r.integer(1, kMostTokens)),
      TRIVIUM_ROW("loss_scale_backoff", "F", "fp16: factor of the scale after an overflow", loss_scaling.backoff,
                  below_one(r, false)),
      {"optimizer", "adamw|muon", "What steps the layers' matrices; embeddings, head, norms and biases: AdamW",
       [](const Training& t) { return nlohmann::json(name_of(t.optimizer.kind)); },
       [](const JsonReader& r, Training& t) { t.optimizer.kind = update_of(r); }, true},
      {"muon_momentum", "MU", "Muon: what is kept of the momentum",
       [](const Training& t) { return nlohmann::json(t.optimizer.muon_momentum); },
       [](const JsonReader& r, Training& t) { t.optimizer.muon_momentum = below_one(r); }, true},
      {"muon_iterations", "N", "Muon: iterations of Newton-Schulz",
       [](const Training& t) { return nlohmann::json(t.optimizer.muon_iterations); },
       [](const JsonReader& r, Training& t) { t.optimizer.muon_iterations = r.integer(1, kMostIterations); }, true},
      {"lora_rank", "R", "LoRA: rank of the adapters that are trained; 0: all parameters are",
       [](const Training& t) { return nlohmann::json(t.lora.rank); },
       [](const JsonReader& r, Training& t) { t.lora.rank = r.integer(0, kMostRank); }, true},
      {"lora_alpha", "ALPHA", "LoRA: alpha / rank is the factor on adapters; 0: the rank",
       [](const Training& t) { return nlohmann::json(t.lora.alpha); },
       [](const JsonReader& r, Training& t) { t.lora.alpha = positive(r); }, true},
      {"lora_targets", "NAME,NAME,...", "LoRA: what has adapters: qkv, projection, fc1, fc2; default: all",
       [](const Training& t) { return targets_of(t.lora); },
       [](const JsonReader& r, Training& t) { read_targets(r, t.lora); }, true},
      {"document_lengths", "N,N,...|FILE", "Tokens of the documents that samples are packed of, or a file of them",
       [](const Training& t) { return nlohmann::json(t.documents.lengths); },
       [](const JsonReader& r, Training& t) { t.documents.lengths = counts(r); }, true},
      {"document_weights", "N,N,...", "How often each of these lengths comes; default: all as often",
       [](const Training& t) { return nlohmann::json(t.documents.weights); },
       [](const JsonReader& r, Training& t) { t.documents.weights = counts(r); }, true},
      {"expert_load", "N,N,...|FILE", "How often each expert is chosen, or a file of it; default: all as often",
       [](const Training& t) { return nlohmann::json(t.expert_load.choices); },
       [](const JsonReader& r, Training& t) { t.expert_load.choices = choices(r); }, true},
      {"expert_zipf", "S", "The i-th most popular expert is chosen 1 / i^S as often as the first; 0: all as often",
       [](const Training& t) { return nlohmann::json(t.expert_load.zipf); },
       [](const JsonReader& r, Training& t) { t.expert_load.zipf = zipf_of(r); }, true},
  };
  return kTable;
}

#undef TRIVIUM_ROW

const std::vector<std::string>& training_fields() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const TrainingField& field : training_field_table()) names.emplace_back(field.name);
    return names;
  }();
  return kNames;
}

}  // namespace trivium::program
