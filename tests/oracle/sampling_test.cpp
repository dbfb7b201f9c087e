// Text from models of every family: what is drawn with keys and values kept is what is drawn from the whole text each
// time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "models/load.h"
#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "runtime/checkpoint/whole.h"
#include "runtime/generate/forward.h"
#include "runtime/generate/sample.h"

namespace trivium::oracle {
namespace {

namespace checkpoint = runtime::checkpoint;
namespace generate = runtime::generate;

/// A model with weights in memory.
struct Weighed {
  models::Model model;
  checkpoint::WholeTensors tensors;
  checkpoint::StoredTensors stored() const {
    std::map<std::string, checkpoint::StoredTensors::Borrowed> borrowed;
    for (const auto& [name, tensor] : tensors) borrowed[name] = {tensor.rows, tensor.columns, tensor.values.data()};
    return {borrowed, "weights"};
  }
};

Weighed golden(const std::string& name) {
  const auto folder = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/oracle/golden" / name;
  Weighed w{models::load_model((folder / "config.json").string()), {}};
  const checkpoint::SafetensorsFile file(folder / "model.safetensors");
  w.tensors = checkpoint::from_hugging_face(file, w.model, name);
  return w;
}

/// Weights for a model that no file has: normal, norms near 1.
Weighed invented(const models::Model& model) {
  Weighed w{model, {}};
  program::Job job;
  job.model = model;
  job.training.sequence = 1;
  job.training.global_batch = 1;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto program = std::get<program::Program>(program::lower(job));
  for (const program::Parameter& p : program.kinds.front().parameters) {
    checkpoint::WholeTensor& tensor = w.tensors[program::global_name(p, 0)];
    tensor = {p.rows, p.columns, std::vector<float>(static_cast<std::size_t>(p.rows * p.columns))};
    for (float& value : tensor.values) value = static_cast<float>(p.init_value) + 0.2F * normal(random);
  }
  return w;
}

models::Model small() {
  models::Model model;
  model.name = "small";
  model.layers = 4, model.hidden = 32, model.heads = 4, model.kv_heads = 2, model.head_dim = 8;
  model.ffn_hidden = 48, model.vocab = 61, model.max_sequence = 100;
  model.norm = models::Norm::kRmsNorm;
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kGeglu;
  model.linear_bias = model.qkv_bias = false;
  return model;
}

/// As sample() without anything kept.
std::vector<std::int32_t> recomputed(const Weighed& w, std::vector<std::int32_t> text,
                                     generate::SampleOptions options) {
  std::vector<std::int32_t> drawn;
  const auto stored = w.stored();
  const std::int64_t tokens = std::exchange(options.tokens, 1);
  generate::Forward forward(w.model, stored, std::min(w.model.max_sequence, std::ssize(text) + tokens));
  for (std::int64_t i = 0; i < tokens; ++i) {
    const std::int64_t seen = std::min(std::ssize(text), forward.longest());
    const auto rows = forward(std::span(text).last(static_cast<std::size_t>(seen)));
    text.push_back(generate::choose(rows.back(), options.temperature, options.top_k, generate::drawn(options.seed, i)));
    drawn.push_back(text.back());
  }
  return drawn;
}

void expect_same_text(const Weighed& w, std::int64_t tokens, const std::vector<std::int32_t>& prompt) {
  const auto stored = w.stored();
  generate::SampleOptions options;
  options.tokens = tokens;
  for (const double temperature : {0.0, 1.0}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      options.temperature = temperature, options.seed = seed;
      EXPECT_EQ(generate::sample(w.model, stored, prompt, options), recomputed(w, prompt, options))
          << w.model.name << " temperature " << temperature << " seed " << seed;
    }
  }
}

// Beyond the 16 tokens of these models their oldest ones are forgotten.
TEST(Sampling, KeysThatAreKeptChangeNoToken) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/oracle/golden")) {
    const Weighed w = golden(entry.path().filename().string());
    expect_same_text(w, 15, {1, 7, 3, 9});
    expect_same_text(w, 14, {5});
  }
}

// The cache moves to a larger buffer after 64 tokens.
TEST(Sampling, LongTextsGrowTheirRoom) {
  models::Model model = small();
  model.window = models::Window{.keys = 24, .full_every = 2};
  expect_same_text(invented(model), 90, {1, 2, 3, 4, 5, 6, 7});
  model.window->chunked = model.window->plain_full = true;
  model.plain_head_norms = true;
  model.temperature = models::Temperature{.slope = 0.5, .run = 10};
  expect_same_text(invented(model), 90, {1, 2, 3, 4, 5, 6, 7});
}

// A capacity is for training: here nobody's choice is dropped for what others chose.
TEST(Sampling, MixturesOfACapacityDropNoToken) {
  models::Model model = small();
  model.experts = models::Experts{.count = 4, .top_k = 2, .capacity_factor = 0.5};
  const Weighed tight = invented(model);
  expect_same_text(tight, 20, {1, 2, 3});
  Weighed roomy = tight;
  roomy.model.experts->capacity_factor = 4;
  generate::SampleOptions options;
  options.tokens = 20;
  EXPECT_EQ(generate::sample(tight.model, tight.stored(), {1, 2, 3}, options),
            generate::sample(roomy.model, roomy.stored(), {1, 2, 3}, options));
}

// Grok-1's norms, caps and factors.
TEST(Sampling, ScaledAndCappedLogitsAreThoseOfTheLoss) {
  models::Model model = small();
  model.branch_norms = true;
  model.attention_soft_cap = 2, model.embedding_scale = 4, model.logit_scale = 0.6, model.logit_soft_cap = 3;
  model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true, .normalised = false};
  const Weighed w = invented(model);
  expect_same_text(w, 20, {1, 2, 3});
  models::Model plain = model;
  plain.logit_scale = 1, plain.logit_soft_cap = 0;
  const auto stored = w.stored();
  generate::Forward forward(model, stored, 4), raw(plain, stored, 4);
  const std::vector<std::int32_t> text{1, 2, 3, 4};
  const auto capped = forward.next(text), logits = raw.next(text);
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(capped[i], 3 * std::tanh(0.2 * logits[i]), 1e-5);
}

}  // namespace
}  // namespace trivium::oracle
