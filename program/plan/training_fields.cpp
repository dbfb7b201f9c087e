// The rows of a training's fields.
#include <nlohmann/json.hpp>

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

}  // namespace

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
