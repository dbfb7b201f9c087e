#include "planner/launch/forms/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::planner::launch::forms {
namespace {

constexpr std::array<Form, 7> kForms{{
    {"megatron-test", "Megatron-LM's functional tests", Trainer::kMegatron, is_functional_test, import_functional_test},
    {"megatron-yaml", "Megatron-LM's --yaml-cfg", Trainer::kMegatron, is_megatron_yaml, import_megatron_yaml},
    {"gpt-neox", "GPT-NeoX", Trainer::kDeepspeed, is_gpt_neox, import_gpt_neox},
    {"nanotron", "nanotron", Trainer::kMegatron, is_nanotron, import_nanotron},
    {"llm-foundry", "LLM Foundry", Trainer::kFsdp2, is_llm_foundry, import_llm_foundry},
    {"axolotl", "axolotl", Trainer::kAccelerate, is_axolotl, import_axolotl},
    {"accelerate", "accelerate", Trainer::kAccelerate, is_accelerate, import_accelerate},
}};

}  // namespace

std::span<const Form> all() { return kForms; }

const Form& form_of(const yaml::Node& root, const std::string& where) {
  for (const Form& form : kForms) {
    if (form.recognises(root)) return form;
  }
  std::vector<std::string> known, keys;
  for (const Form& form : kForms) known.emplace_back(form.software);
  for (const yaml::Member& member : root.members) keys.push_back(base::one_line(member.key));
  throw base::Failure(base::ErrorKind::kInput,
                      fmt::format("{}: this YAML ({}) is not one of {}", where,
                                  keys.empty() ? "no keys" : base::listed(keys), base::listed(known)));
}

bool in_braces(const ImportRequest& request) {
  if (!yaml::begins_with_brace(request.text)) return false;
  try {
    const yaml::Node root = yaml::read(request.text, request.where);
    return std::ranges::any_of(kForms, [&](const Form& form) { return form.recognises(root); });
  } catch (const base::Failure&) {
    return false;
  }
}

Document document_of(const ImportRequest& request) { return {yaml::read(request.text, request.where), nullptr}; }

std::int64_t tokens_of(std::int64_t steps, const program::Training& training) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  const std::int64_t of_step = std::max<std::int64_t>(1, training.global_batch) * training.sequence;
  return steps > kMost / std::max<std::int64_t>(1, of_step) ? kMost : steps * of_step;
}

void lose_unread_keys(const Settings& settings, std::initializer_list<std::string_view> beside,
                      std::vector<Loss>& losses) {
  std::string passed;
  for (const Argument& argument : settings.unread()) {
    const std::string name = base::one_line(argument.name);
    const bool is_beside =
        std::ranges::any_of(beside, [&](std::string_view part) { return argument.name.starts_with(part); });
    if (is_beside) {
      passed += (passed.empty() ? "" : " ") + name;
      continue;
    }
    std::string value;
    for (const std::string& word : argument.values) value += " " + base::one_line(word);
    losses.push_back({name, fmt::format("line {}: {} ={} has no place in a plan", argument.line, name, value)});
  }
  if (!passed.empty()) {
    losses.push_back({"settings", "ignored, about data, logs, checkpoints and hosts: " + passed});
  }
}

}  // namespace trivium::planner::launch::forms
