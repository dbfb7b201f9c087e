#include "models/hugging_face_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/quote.h"
#include "models/validate.h"

namespace trivium::models {

using base::JsonReader;

std::optional<JsonReader> given(const Config& config, std::string_view key) {
  auto member = config.find(key);
  if (member && member->json().is_null()) return std::nullopt;
  return member;
}

std::int64_t count_or(const Config& config, std::string_view key, std::int64_t most, std::int64_t otherwise) {
  const auto member = given(config, key);
  return member ? member->integer(1, most) : otherwise;
}

std::int64_t amount_or(const Config& config, std::string_view key, std::int64_t most, std::int64_t otherwise) {
  const auto member = given(config, key);
  return member ? member->integer(0, most) : otherwise;
}

void only(const Config& config, std::string_view key, bool holds, const char* what) {
  if (!holds) config.at(key).fail(fmt::format("is not supported but {}", what));
}

bool flag_or(const Config& config, std::string_view key, bool otherwise) {
  const auto member = given(config, key);
  return member ? member->boolean() : otherwise;
}

Activation activation_of(const Config& config, std::string_view key, bool gated, const std::string& otherwise) {
  const auto member = given(config, key);
  const std::string name = member ? member->text() : otherwise;
  const bool tanh_form = name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh";
  if (gated && (name == "silu" || name == "swish")) return Activation::kSwiglu;
  if (gated && tanh_form) return Activation::kGeglu;
  if (!gated && tanh_form) return Activation::kGelu;
  if (!gated && name == "gelu") return Activation::kGeluErf;
  if (!gated && name == "relu") return Activation::kRelu;
  if (!gated && name == "relu2") return Activation::kSquaredRelu;
  (member ? *member : config)
      .fail(fmt::format("unsupported activation {}; supported here: {}", base::quote(name),
                        gated ? "silu, gelu_pytorch_tanh" : "gelu, gelu_new, relu, relu2"));
}

double number_or(const Config& config, std::string_view key, double otherwise) {
  const auto member = given(config, key);
  if (!member) return otherwise;
  if (!(member->number() >= 0)) member->fail("must not be negative");
  return member->number();
}

double factor_or(const Config& config, std::string_view key, double otherwise) {
  const double value = number_or(config, key, otherwise);
  if (value == 0) config.at(key).fail("must be more than 0");
  return value;
}

double yarn_amplitude(double factor, double weight) { return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1; }

static void read_yarn(const Config& scaling, Rotary& rotary) {
  rotary.fast_turns = factor_or(scaling, "beta_fast", 32);
  rotary.slow_turns = factor_or(scaling, "beta_slow", 1);
  rotary.whole_pairs = flag_or(scaling, "truncate", true);
  const double mine = number_or(scaling, "mscale", 0), all = number_or(scaling, "mscale_all_dim", 0);
  const double usual = mine > 0 && all > 0 ? yarn_amplitude(rotary.factor, mine) / yarn_amplitude(rotary.factor, all)
                                           : yarn_amplitude(rotary.factor, 1);
  rotary.amplitude = factor_or(scaling, "attention_factor", usual);
}

void read_scaling(const Config& config, std::string_view key, Model& model) {
  static const std::array<std::string, 4> kKinds = {"default", "linear", "llama3", "yarn"};
  const auto member = given(config, key);
  if (!member) return;
  const Config scaling(*member);
  Rotary& rotary = model.rotary;
  rotary.theta = factor_or(scaling, "rope_theta", rotary.theta);
  rotary.share = factor_or(scaling, "partial_rotary_factor", rotary.share);
  const auto kind = given(scaling, given(scaling, "rope_type") ? "rope_type" : "type");
  const std::string name = kind ? kind->one_of(kKinds) : "default";
  if (name == "default") return;
  rotary.factor = factor_or(scaling, "factor", 1);
  if (name == "linear") {
    rotary.scaling = RotaryScaling::kLinear;
    return;
  }
  rotary.original_sequence = count_or(scaling, "original_max_position_embeddings", kMostPositions, model.max_sequence);
  rotary.scaling = name == "llama3" ? RotaryScaling::kLlama3 : RotaryScaling::kYarn;
  if (name == "yarn") return read_yarn(scaling, rotary);
  rotary.slow_turns = factor_or(scaling, "low_freq_factor", rotary.slow_turns);
  rotary.fast_turns = factor_or(scaling, "high_freq_factor", rotary.fast_turns);
}

void read_rotary(const Config& config, Model& model, std::string_view theta, std::string_view share,
                 double usual_share) {
  model.rotary.theta = factor_or(config, theta, model.rotary.theta);
  model.rotary.share = factor_or(config, share, usual_share);
  if (model.rotary.share > 1) config.at(share).fail("must be at most 1");
  read_scaling(config, "rope_scaling", model);
  read_scaling(config, "rope_parameters", model);
}

void refuse_flag(const Config& config, std::string_view key) {
  const auto member = given(config, key);
  if (member && member->boolean()) member->fail("is not supported: it changes what attention computes");
}

void read_common(const Config& config, Model& model) {
  model.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  model.hidden = config.at("hidden_size").integer(1, kMostWidth);
  model.heads = config.at("num_attention_heads").integer(1, kMostHeads);
  model.vocab = config.at("vocab_size").integer(1, kMostVocab);
}

std::vector<bool> windowed_layers(const JsonReader& types, std::int64_t layers, const std::string& type) {
  const std::array<std::string, 2> names = {"full_attention", type};
  std::vector<bool> windowed;
  for (const JsonReader& one : types.elements()) windowed.push_back(one.one_of(names) == type);
  if (std::ssize(windowed) != layers) {
    types.fail(fmt::format("has {} entries for {} layers", windowed.size(), layers));
  }
  return windowed;
}

void read_layer_types(const JsonReader& types, Model& model, std::int64_t keys) {
  set_windows(types, model, keys, windowed_layers(types, model.layers, "sliding_attention"));
}

void set_windows(const JsonReader& where, Model& model, std::int64_t keys, const std::vector<bool>& windowed) {
  const auto first = std::find(windowed.begin(), windowed.end(), true);
  model.window.reset();
  if (first == windowed.end()) return;
  const auto full = std::find(first, windowed.end(), false);
  Window window{.keys = keys};
  if (full == windowed.end()) {
    window.first_layer = first - windowed.begin();
  } else {
    window.full_every = full - windowed.begin() + 1;
  }
  model.window = window;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if ((model.layer_kind(layer).window > 0) == windowed[static_cast<std::size_t>(layer)]) continue;
    where.fail(
        fmt::format("layer {} breaks the pattern of those before; supported are full layers before windowed "
                    "ones, and a full one every so many",
                    layer));
  }
}

}  // namespace trivium::models
