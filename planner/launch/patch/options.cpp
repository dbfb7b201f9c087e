#include "planner/launch/patch/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/json_reader.h"
#include "planner/launch/arguments.h"
#include "planner/launch/yaml/yaml.h"

namespace trivium::planner::launch::patch {
namespace {

using Values = std::vector<std::string>;

/// Names of one setting: a spelling that a file has is kept.
const std::vector<std::vector<std::string>>& spellings() {
  static const std::vector<std::vector<std::string>> kAll{
      {"tensor-model-parallel-size", "model-parallel-size"},
      {"context-parallel-size", "ds-sequence-parallel-size"},
      {"expert-model-parallel-size", "moe-expert-parallel-size"},
      {"micro-batch-size", "batch-size"},
      {"num-virtual-stages-per-pipeline-rank", "virtual-pipeline-model-parallel-size"},
      {"use-megatron-fsdp", "use-custom-fsdp"},
      {"recompute-num-layers", "checkpoint-num-layers"}};
  return kAll;
}

/// Names that say one thing together: where any of them changes, those that the new plan does not have go.
const std::vector<std::vector<std::string>>& families() {
  static const std::vector<std::vector<std::string>> kAll{
      {"num-virtual-stages-per-pipeline-rank", "virtual-pipeline-model-parallel-size",
       "num-layers-per-virtual-pipeline-stage", "pipeline-model-parallel-layout", "decoder-first-pipeline-num-layers",
       "decoder-last-pipeline-num-layers"},
      {"recompute-granularity", "recompute-activations", "checkpoint-activations", "recompute-method",
       "recompute-num-layers", "checkpoint-num-layers", "recompute-modules", "deepspeed-activation-checkpointing"},
      {"use-megatron-fsdp", "use-custom-fsdp", "data-parallel-sharding-strategy", "use-torch-fsdp2",
       "torch-fsdp2-no-reshard-after-forward"},
      {"attention-backend", "use-flash-attn", "use-flash-attn-v2"},
      {"optimizer-cpu-offload", "optimizer-offload-fraction"},
      {"fine-grained-activation-offloading", "offload-modules", "cpu-offloading-num-layers"}};
  return kAll;
}

constexpr std::array<const char*, 2> kVariables{"CUDA_DEVICE_MAX_CONNECTIONS", "UB_SKIPMC"};

const std::vector<std::string>* among(const std::vector<std::vector<std::string>>& all, const std::string& name) {
  const auto found =
      std::ranges::find_if(all, [&](const auto& one) { return std::ranges::find(one, name) != one.end(); });
  return found == all.end() ? nullptr : &*found;
}

void flatten(const nlohmann::json& json, const std::string& path, FileSettings& settings) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (value.is_object()) {
      flatten(value, name, settings);
    } else {
      settings[{Place::kMember, name}] = {value.dump()};
    }
  }
}

bool is_json_text(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

void read_json(const std::string& text, const std::string& where, FileSettings& settings) {
  flatten(base::parse_json(text, where, base::Comments::kTaken), "", settings);
}

void read_keys(const std::string& text, const std::string& where, FileSettings& settings) {
  for (const Argument& argument : read_assignments(text, where).arguments) {
    settings[{Place::kKey, argument.name}] = argument.values;
  }
}

/// Settings that may mean another value of a field next to others.
const std::multimap<std::string, Key>& settings_of_field() {
  static const std::multimap<std::string, Key> kAll{
      {"zero_stage", {Place::kOption, "zero-stage"}},
      {"zero_stage", {Place::kMember, "zero_optimization.stage"}},
      {"zero_stage", {Place::kOption, "use-distributed-optimizer"}},
      {"overlap.gradient_reduction", {Place::kMember, "zero_optimization.overlap_comm"}},
      {"overlap.gradient_reduction", {Place::kOption, "overlap-grad-reduce"}},
      {"overlap.parameter_gather", {Place::kOption, "overlap-param-gather"}},
      {"sequence_parallel", {Place::kOption, "sequence-parallel"}},
      {"micro_batch", {Place::kMember, "train_micro_batch_size_per_gpu"}},
      {"attention", {Place::kOption, "attention-backend"}},
      {"expert_tensor", {Place::kOption, "expert-tensor-parallel-size"}},
      {"virtual_stages", {Place::kOption, "num-virtual-stages-per-pipeline-rank"}},
      {"stage_layers", {Place::kOption, "pipeline-model-parallel-layout"}},
      {"recompute", {Place::kOption, "recompute-granularity"}}};
  return kAll;
}

/// `--name: value` of Megatron-LM's functional tests: true is a switch, false and null are none.
void read_argument_lines(const std::string& text, const std::string& where, FileSettings& settings) {
  const yaml::Node root = yaml::read(text, where);
  const yaml::Node* arguments = root.find("MODEL_ARGS");
  if (arguments == nullptr) return;
  for (const yaml::Member& member : arguments->members) {
    const std::string& value = member.value.text;
    if (!member.key.starts_with("--") || value == "false" || member.value.kind == yaml::Node::Kind::kNull) continue;
    std::istringstream words(value == "true" ? "" : value);
    std::string name = member.key.substr(2);
    std::ranges::replace(name, '_', '-');
    Values& values = settings[{Place::kOption, std::move(name)}];
    values.clear();
    for (std::string word; words >> word;) values.push_back(std::move(word));
  }
}

/// Whether a file that has no such setting runs as with this value of it.
bool is_default(const Key& key, const Values& values) {
  static const std::set<std::string> kOnes{"pipeline-model-parallel-size", "tensor-model-parallel-size",
                                           "context-parallel-size", "expert-model-parallel-size"};
  if (key.place == Place::kOption) return kOnes.contains(key.name) && values == Values{"1"};
  return false;
}

class Changes {
 public:
  Changes(const FileSettings& own, const FileSettings& from, const FileSettings& to)
      : own_(own), from_(from), to_(to) {}

  std::vector<OptionChange> list(std::int64_t layers, const program::Plan& after,
                                 const std::vector<std::string>& unsettled) {
    for (const std::string& field : unsettled) {
      const auto [first, last] = settings_of_field().equal_range(field);
      for (auto setting = first; setting != last; ++setting) dirty(setting->second);
    }
    for (const FileSettings* side : {&from_, &to_}) {
      for (const auto& [key, values] : *side) {
        if (value_in(from_, key) != value_in(to_, key)) dirty(key);
      }
    }
    virtual_stages(layers, after);
    connections();
    for (const Key& key : dirty_) change(key);
    if (after.tensor == 1) keep("sequence-parallel");  // switched off by itself
    if (to_.contains({Place::kOption, "use-megatron-fsdp"})) keep("use-distributed-optimizer");  // which it implies
    std::ranges::stable_sort(changes_, {}, [](const OptionChange& c) { return !c.before ? 2 : !c.after ? 1 : 0; });
    return std::move(changes_);
  }

 private:
  static std::optional<Values> value_in(const FileSettings& settings, const Key& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::nullopt : std::optional(found->second);
  }

  // Megatron-LM refuses its FSDP with one connection (training/arguments.py).
  void connections() {
    const Key key{Place::kVariable, kVariables.front()};
    const bool is_fsdp = to_.contains({Place::kOption, "use-megatron-fsdp"});
    if (is_fsdp && value_in(own_, key) == Values{"1"}) dirty(key);
  }

  /// The option stays where the file has it.
  void keep(std::string_view name) {
    std::erase_if(changes_, [&](const OptionChange& c) { return c.key.name == name && !c.after; });
  }

  void dirty(const Key& key) {
    dirty_.insert(key);
    if (key.place != Place::kOption) return;
    if (const auto* family = among(families(), key.name)) {
      for (const std::string& name : *family) dirty_.insert({Place::kOption, name});
    }
  }

  // Megatron's older option counts the layers of a chunk, which change with the number of stages too.
  void virtual_stages(std::int64_t layers, const program::Plan& after) {
    const Key key{Place::kOption, "num-layers-per-virtual-pipeline-stage"};
    const auto own = value_in(own_, key);
    if (!own) return;
    const bool even = after.stage_layers.empty() && layers % after.chunks() == 0;
    const Values wanted{std::to_string(layers / std::max(1, after.chunks()))};
    if (after.virtual_stages > 1 && even) {
      if (*own != wanted) changes_.push_back({key, own, wanted});
      dirty_.erase(key);
      dirty_.erase({Place::kOption, "num-virtual-stages-per-pipeline-rank"});
    } else if (after.virtual_stages == 1) {
      dirty(key);
    }
  }

  /// As the file spells it.
  Key spelled(const Key& key) const {
    if (key.place != Place::kOption || own_.contains(key)) return key;
    const auto* names = among(spellings(), key.name);
    if (names == nullptr) return key;
    for (const std::string& name : *names) {
      if (own_.contains({Place::kOption, name})) return {Place::kOption, name};
    }
    return key;
  }

  bool is_of_new_plan(const Key& key) const {
    if (to_.contains(key)) return true;
    const auto* names = among(spellings(), key.name);
    return names != nullptr && std::ranges::any_of(*names, [&](const std::string& name) {
             return to_.contains({key.place, name});
           });
  }

  void change(const Key& key) {
    const Key mine = spelled(key);
    const auto own = value_in(own_, mine);
    auto wanted = value_in(to_, key);
    if (!wanted && key.place == Place::kMember && own && key.name.ends_with(".device")) wanted = Values{"\"none\""};
    if (!wanted && own && is_default(key, {"1"})) wanted = Values{"1"};  // a variable of the file may hold it
    if (!wanted) {
      const bool goes = own && (key.place == Place::kOption || key.place == Place::kVariable) && !is_of_new_plan(mine);
      if (goes) changes_.push_back({mine, own, std::nullopt});
      return;
    }
    if (own == wanted || (!own && is_default(key, *wanted))) return;
    if (own && (*own == Values{"\"auto\""} || *own == Values{"-1"})) return;  // follows from the rest
    // Other members are what the exporter writes down although they follow from the rest.
    static const std::set<std::string> kNeeded{"zero_optimization.stage", "zero_optimization.overlap_comm",
                                               "zero_optimization.offload_optimizer.device",
                                               "zero_optimization.offload_param.device"};
    if (!own && key.place == Place::kMember && !kNeeded.contains(key.name)) return;
    changes_.push_back({mine, own, wanted});
  }

  const FileSettings &own_, &from_, &to_;
  std::set<Key> dirty_;
  std::vector<OptionChange> changes_;
};

}  // namespace

FileSettings file_settings(const ImportRequest& request, Trainer trainer) {
  FileSettings settings;
  if (trainer == Trainer::kDeepspeed && is_json_text(request.text)) {
    read_json(request.text, request.where, settings);
    return settings;
  }
  const bool is_titan = trainer == Trainer::kTorchtitan;
  const bool is_shell = request.text.starts_with("#!") || request.text.find("<<") != std::string::npos ||
                        request.text.find("torchrun ") != std::string::npos;
  if (is_titan && !is_shell) {
    read_keys(request.text, request.where, settings);
    return settings;
  }
  if (yaml::is_document(request.text) && !is_shell) {
    read_argument_lines(request.text, request.where, settings);
    return settings;
  }
  const Script script = read_script(request.text, request.where, request.surroundings);
  for (const Argument& argument : script.arguments) settings[{Place::kOption, argument.name}] = argument.values;
  for (const std::string& document : script.documents) {
    if (is_json_text(document)) read_json(document, request.where, settings);
    if (is_titan && document.find("[parallelism]") != std::string::npos) {
      read_keys(document, request.where, settings);
    }
  }
  for (const char* name : kVariables) {
    const auto found = script.variables.find(name);
    if (found != script.variables.end()) settings[{Place::kVariable, name}] = {found->second};
  }
  return settings;
}

void apply(const std::vector<OptionChange>& changes, FileSettings& settings) {
  for (const OptionChange& change : changes) {
    if (change.after) {
      settings[change.key] = *change.after;
    } else {
      settings.erase(change.key);
    }
  }
}

std::string text_of(const OptionChange& change) {
  const std::string name = change.key.place == Place::kOption ? "--" + change.key.name : change.key.name;
  const char* between = change.key.place == Place::kOption ? " " : change.key.place == Place::kVariable ? "=" : ": ";
  const auto with = [&](const Values& values) {
    return values.empty() ? name : name + between + fmt::format("{}", fmt::join(values, " "));
  };
  if (!change.before) return "add " + with(*change.after);
  if (!change.after) return "remove " + with(*change.before);
  return with(*change.before) + " -> " + fmt::format("{}", fmt::join(*change.after, " "));
}

std::vector<OptionChange> option_changes(const FileSettings& own, const FileSettings& from, const FileSettings& to,
                                         std::int64_t layers, const program::Plan& after,
                                         const std::vector<std::string>& unsettled) {
  return Changes(own, from, to).list(layers, after, unsettled);
}

bool is_setting(const Values& values) {
  for (const std::string& value : values) {
    const bool has_digit = std::ranges::any_of(value, [](char c) { return std::isdigit(c & 0x7f) != 0; });
    const bool has_letter = std::ranges::any_of(value, [](char c) { return std::isalpha(c & 0x7f) != 0; });
    if (value.find('/') != std::string::npos || (has_digit && has_letter)) return false;
  }
  return true;
}

}  // namespace trivium::planner::launch::patch
