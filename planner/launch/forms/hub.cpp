#include "planner/launch/forms/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_reader.h"
#include "base/quote.h"
#include "models/load.h"

namespace trivium::planner::launch::forms {
namespace {

/// Names without their owner, in lower case and without what training adds ("-instruct", "-hf", …), and the shipped
/// model of that shape. Sources: the config.json of each repository, as `source` of the shipped model says.
constexpr std::array<std::pair<std::string_view, std::string_view>, 63> kOnHub{{
    {"llama-7b", "llama-7b"},
    {"llama-13b", "llama-13b"},
    {"llama-30b", "llama-33b"},
    {"llama-65b", "llama-65b"},
    {"llama-2-70b", "llama2-70b"},
    {"llama-3-8b", "llama3-8b"},
    {"llama-3-70b", "llama3-70b"},
    {"llama-3.1-8b", "llama3.1-8b"},
    {"llama-3.1-70b", "llama3.1-70b"},
    {"llama-3.3-70b", "llama3.1-70b"},
    {"llama-3.1-405b", "llama3.1-405b"},
    {"llama-3.2-1b", "llama3.2-1b"},
    {"llama-3.2-3b", "llama3.2-3b"},
    {"llama-4-scout-17b-16e", "llama4-scout"},
    {"llama-4-maverick-17b-128e", "llama4-maverick"},
    {"mistral-7b-v0.2", "mistral-7b"},
    {"mistral-7b-v0.3", "mistral-7b"},
    {"mistral-small-24b", "mistral-small-24b"},
    {"mixtral-8x7b", "mixtral-8x7b"},
    {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
    {"qwen2.5-7b", "qwen2.5-7b"},
    {"qwen2.5-32b", "qwen2.5-32b"},
    {"qwen2.5-72b", "qwen2.5-72b"},
    {"qwen3-0.6b", "qwen3-0.6b"},
    {"qwen3-8b", "qwen3-8b"},
    {"qwen3-32b", "qwen3-32b"},
    {"qwen3-30b-a3b", "qwen3-30b-a3b"},
    {"qwen3-235b-a22b", "qwen3-235b-a22b"},
    {"deepseek-v2-lite", "deepseek-v2-lite"},
    {"deepseek-v2", "deepseek-v2"},
    {"deepseek-v3", "deepseek-v3"},
    {"deepseek-r1", "deepseek-v3"},
    {"kimi-k2", "kimi-k2"},
    {"glm-4.5", "glm4.5"},
    {"glm-4.5-air", "glm4.5-air"},
    {"gpt-oss-20b", "gpt-oss-20b"},
    {"gpt-oss-120b", "gpt-oss-120b"},
    {"gpt-oss-safeguard-20b", "gpt-oss-20b"},
    {"gemma-2-2b", "gemma2-2b"},
    {"gemma-2-9b", "gemma2-9b"},
    {"gemma-2-27b", "gemma2-27b"},
    {"gemma-3-1b", "gemma3-1b"},
    {"phi-3-mini-4k", "phi3-mini"},
    {"phi-3-medium-4k", "phi3-medium"},
    {"phi-4", "phi4"},
    {"falcon-7b", "falcon-7b"},
    {"falcon-40b", "falcon-40b"},
    {"falcon-180b", "falcon-180b"},
    {"gpt2", "gpt2-124m"},
    {"gpt2-medium", "gpt2-350m"},
    {"gpt2-large", "gpt2-774m"},
    {"gpt2-xl", "gpt2-1.5b"},
    {"nemotron-4-340b", "nemotron4-340b"},
    {"switch-base-8", "switch-base-8"},
    {"switch-base-128", "switch-base-128"},
    {"switch-c-2048", "switch-c"},
    {"grok-1", "grok-1"},
    {"cogito-v1-preview-llama-3b", "llama3.2-3b"},
    {"cogito-v1-preview-llama-8b", "llama3.1-8b"},
    {"cogito-v1-preview-llama-70b", "llama3.1-70b"},
    {"deepseek-r1-distill-llama-8b", "llama3.1-8b"},
    {"deepseek-r1-distill-llama-70b", "llama3.1-70b"},
    {"qwq-32b", "qwen2.5-32b"},
}};

/// What names of copies and of further training add to the same shape.
constexpr std::array<std::string_view, 13> kAdded{"-hf",          "-instruct", "-base",     "-chat", "-it",
                                                  "-bf16",        "-fp16",     "-original", "-fp8",  "-2507",
                                                  "-dequantized", "-0324",     "-0528"};

std::string without_training(std::string name) {
  name = name.substr(name.find_last_of('/') + 1);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.starts_with("meta-")) name.erase(0, 5);
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view end : kAdded) {
      if (!name.ends_with(end)) continue;
      name.erase(name.size() - end.size());
      changed = true;
    }
  }
  return name;
}

}  // namespace

std::optional<models::Model> model_of_hub(const std::string& repository) {
  const std::string name = without_training(repository);
  for (const auto& [known, shipped] : kOnHub) {
    if (known == name) return models::load_model(std::string(shipped));
  }
  for (const models::Model& shipped : all_shipped()) {
    if (shipped.name == name) return shipped;
  }
  return std::nullopt;
}

models::Model named_model(Settings& settings, const Argument& name, const ImportRequest& request) {
  if (request.model) return *request.model;
  const std::string& repository = name.values.empty() ? name.name : name.values.front();
  if (request.surroundings.read_file) {
    if (const auto config = request.surroundings.read_file(repository + "/config.json")) {
      const std::string where = base::one_line(repository) + "/config.json";
      return models::model_from_hugging_face(base::parse_json(*config, where), where);
    }
  }
  if (auto known = model_of_hub(repository)) return *known;
  settings.fail_at(name,
                   fmt::format("the shape of {} is not known; give --model with a shipped name or its config.json",
                               base::quote(repository)));
}

}  // namespace trivium::planner::launch::forms
