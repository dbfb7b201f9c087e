// Megatron-LM's YAML: MODEL_ARGS of its functional tests, and --yaml-cfg (megatron/training/yaml_arguments.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "planner/launch/forms/forms.h"

namespace trivium::planner::launch::forms {
namespace {

constexpr std::string_view kArguments = "MODEL_ARGS";

/// The words that tests/functional_tests/shell_test_utils/_run_training.sh makes of a value: those in brackets are
/// several, all else is one.
std::vector<std::string> words_of_value(const yaml::Node& value) {
  std::vector<std::string> words;
  const auto split = [&](const std::string& text) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(std::move(word));
  };
  for (const yaml::Node& item : value.items) split(item.text);
  if (value.kind == yaml::Node::Kind::kList) return words;
  const std::string& text = value.text;
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') {
    split(text.substr(1, text.size() - 2));
  } else {
    words.push_back(text);
  }
  return words;
}

Argument argument_of(const std::string& name, const yaml::Node& value) {
  Argument argument{name, {}, value.line};
  std::ranges::replace(argument.name, '_', '-');
  if (value.text != "true" || value.quoted) argument.values = words_of_value(value);
  return argument;
}

bool is_off(const yaml::Node& value) {
  return value.kind == yaml::Node::Kind::kNull || (value.text == "false" && !value.quoted) || value.is_map();
}

/// Members of Megatron-Core's TransformerConfig by other names than the arguments have, and those whose switch says the
/// opposite.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kYamlNames{
    {{"num_moe_experts", "num-experts"},
     {"layernorm_epsilon", "norm-epsilon"},
     {"moe_router_group_topk", "moe-router-group-topk"},
     {"fp8", "fp8-format"},
     {"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
     {"cpu_offloading", "fine-grained-activation-offloading"}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOpposites{
    {{"add_bias_linear", "disable-bias-linear"}, {"overlap_p2p_comm", "no-overlap-p2p-communication"}}};

void take_member(const yaml::Member& member, Script& script) {
  if (member.value.is_map()) {
    for (const yaml::Member& inner : member.value.members) take_member(inner, script);
    return;
  }
  for (const auto& [name, opposite] : kOpposites) {
    if (member.key != name) continue;
    if (is_off(member.value)) script.arguments.push_back({std::string(opposite), {}, member.value.line});
    return;
  }
  // A width of 0 layers is off; the function of a gated MLP is the argument `swiglu`.
  if (is_off(member.value) || (member.key == "cpu_offloading_num_layers" && member.value.text == "0")) return;
  if (member.key == "activation_func") {
    if (member.value.text == "swiglu") script.arguments.push_back({"swiglu", {}, member.value.line});
    if (member.value.text == "squaredrelu") script.arguments.push_back({"squared-relu", {}, member.value.line});
    return;
  }
  const auto renamed = std::ranges::find(kYamlNames, member.key, [](const auto& pair) { return pair.first; });
  script.arguments.push_back(
      argument_of(renamed == kYamlNames.end() ? member.key : std::string(renamed->second), member.value));
}

}  // namespace

bool is_functional_test(const yaml::Node& root) { return root.has(kArguments); }

Imported import_functional_test(const ImportRequest& request, const Document& document) {
  Script script;
  script.command = {"torchrun"};
  const yaml::Node& arguments = *document.root.find(kArguments);
  bool is_nemo = false;
  for (const yaml::Member& member : arguments.members) {
    is_nemo = is_nemo || member.key.starts_with("trainer.");
    if (!member.key.starts_with("--") || is_off(member.value)) continue;
    script.arguments.push_back(argument_of(member.key.substr(2), member.value));
  }
  if (script.arguments.empty()) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}:{}: MODEL_ARGS has no argument of Megatron-LM (--name: value){}", request.where,
                                    arguments.line, is_nemo ? "; these are a recipe's of NeMo" : ""));
  }
  return import_megatron(request, std::move(script));
}

bool is_megatron_yaml(const yaml::Node& root) {
  const yaml::Node* model = root.find("language_model");
  return model != nullptr && model->is_map() && model->has("num_layers");
}

Imported import_megatron_yaml(const ImportRequest& request, const Document& document) {
  Script script;
  if (document.command != nullptr) script = *document.command;
  // The file's values are those of a parser without defaults; what the command says besides is refused there.
  for (const yaml::Member& member : document.root.members) take_member(member, script);
  return import_megatron(request, std::move(script));
}

namespace {

/// A log lists every setting: a GPT's has the size of images by default, and its layers as an encoder's.
bool is_logged_by_gpt(std::string_view option, Settings& settings) {
  return option == "img-h" || (option == "encoder-num-layers" && !settings.has({"decoder-num-layers"}));
}

}  // namespace

void refuse_other_models(Settings& settings, const ImportRequest& request) {
  if (request.model) return;
  const auto refuse = [&](const std::string& what) {
    settings.fail(what + " is not a GPT, which is what is modelled; give --model NAME to read the split only");
  };
  constexpr std::array<std::array<std::string_view, 2>, 7> kPrograms{{{"pretrain_bert", "BERT"},
                                                                      {"pretrain_t5", "T5"},
                                                                      {"pretrain_mamba", "Mamba"},
                                                                      {"pretrain_hybrid", "a hybrid with Mamba"},
                                                                      {"pretrain_ict", "ICT"},
                                                                      {"pretrain_vision", "a vision model"},
                                                                      {"pretrain_vlm", "a model of images"}}};
  for (const std::string& word : settings.script().command) {
    for (const auto& [program, what] : kPrograms) {
      if (word.find(program) != std::string::npos) refuse(std::string(what) + " (" + base::one_line(word) + ")");
    }
  }
  constexpr std::array<std::array<std::string_view, 2>, 9> kOptions{
      {{"hybrid-layer-pattern", "a hybrid with Mamba"},
       {"hybrid-override-pattern", "a hybrid with Mamba"},
       {"is-hybrid-model", "a hybrid with Mamba"},
       {"mamba-num-heads", "a hybrid with Mamba"},
       {"encoder-num-layers", "a model of encoder and decoder"},
       {"img-h", "a model of images"},
       {"vision-model-type", "a model of images"},
       {"bert-load", "BERT"},
       {"model-provider", "another provider's model"}}};
  for (const Argument& argument : settings.script().arguments) {
    for (const auto& [option, what] : kOptions) {
      const bool is_gpt = argument.values.empty() ? option == "model-provider" : argument.values.front() == "gpt";
      if (argument.name == option && !is_gpt && !(settings.script().is_dump && is_logged_by_gpt(option, settings))) {
        refuse(fmt::format("{} ({})", what, settings.spelled(argument.name)));
      }
    }
    if (argument.name == "num-tokens-to-generate") {
      settings.fail("this is inference (--num-tokens-to-generate), which trains nothing");
    }
    if (argument.values.empty()) continue;
    const std::string& last = argument.values.back();
    const bool has_sentences = argument.name == "data-path" && last.ends_with("_text_sentence");
    if (has_sentences || (argument.name == "vocab-file" && last.ends_with("vocab.txt"))) {
      refuse(fmt::format("BERT, whose words are pieces and whose data are sentences ({}),",
                         settings.spelled(argument.name)));
    }
  }
}

}  // namespace trivium::planner::launch::forms
