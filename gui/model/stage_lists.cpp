#include "gui/model/stage_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "program/lower/lower.h"
#include "program/plan/fields.h"

namespace trivium::gui {
namespace {

constexpr std::string_view kModules = "recompute_modules";  // a list of names, each once
constexpr int kMostEntries = 100'000;                       // of a list that was typed

/// Every value of the field as text.
std::vector<std::string> values_of(const program::Plan& plan, const std::string& field) {
  std::vector<std::string> values;
  std::istringstream words(program::text_of(plan, field));
  for (std::string word; std::getline(words, word, ',');) values.push_back(word);
  return values;
}

void clear(program::Plan& plan, const std::string& field) {
  if (field == "stage_recompute") plan.stage_recompute.clear();
  if (field == kModules) plan.recompute_modules.clear();
  if (field == "stage_layers") plan.stage_layers.clear();
  if (field == "stage_nodes") plan.stage_nodes.clear();
  if (field == "replica_micro_batch") plan.replica_micro_batch.clear();
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// "layernorm, moe act": names as they are shown, which have spaces.
std::string module_names_of(const std::string& text) {
  std::string all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    word = trimmed(word);
    std::replace(word.begin(), word.end(), ' ', '_');
    all += (all.empty() ? "" : ",") + word;
  }
  return all;
}

/// "6x8" or "full:3": the value and how often; "full": once.
std::pair<std::string, int> run_of(const std::string& word) {
  const auto at = word.find_first_of(":x*");
  if (at == std::string::npos) return {word, 1};
  const std::string digits = trimmed(word.substr(at + 1));
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1 || count > kMostEntries) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("\"{}\": how often is a whole number from 1, as in full:8", word));
  }
  return {trimmed(word.substr(0, at)), count};
}

/// "6,6,3" for "6x2, 3".
std::string single_values(const std::string& text) {
  std::string all;
  int entries = 0;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto [value, count] = run_of(trimmed(word));
    entries += count;
    if (entries > kMostEntries) throw base::Failure(base::ErrorKind::kUsage, "the list is too long");
    for (int i = 0; i < count; ++i) all += (all.empty() ? "" : ",") + value;
  }
  return all;
}

}  // namespace

const std::vector<StageList>& stage_lists() {
  static const std::vector<StageList> kLists{
      {"stage_layers", "schedule", "… layers by chunk", "Layers of every chunk in model order: 6x8, 3x8"},
      {"stage_recompute", "recompute", "… by chunk",
       "What every chunk recomputes, in model order: selective:40, none:56"},
      {"recompute_modules", "recompute", "… modules",
       "What selective recomputation drops: core attn, mlp, moe, shared experts, layernorm, moe act, mla up proj"},
      {"stage_nodes", "placement", "Nodes by stage", "Which kind of node, from 0, holds every stage: 0x8, 1x8"},
      {"replica_micro_batch", "micro_batch", "… by replica", "Samples of a micro-batch of every replica: 4x16, 1x8"}};
  return kLists;
}

std::string list_text(const program::Plan& plan, const std::string& field) {
  const std::vector<std::string> values = values_of(plan, field);
  if (field == kModules) {
    std::string names = fmt::format("{}", fmt::join(values, ", "));
    std::replace(names.begin(), names.end(), '_', ' ');
    return names;
  }
  std::string text;
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = std::find_if(begin, values.end(), [&](const std::string& value) { return value != *begin; });
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : ", ", *begin, field == "stage_recompute" ? ":" : "x", end - begin);
    begin = end;
  }
  return text;
}

std::string list_hint(const Scenario& scenario, const std::string& field) {
  const program::Plan& plan = scenario.file.job.plan;
  if (field == kModules) return "core attn";
  if (field == "stage_recompute") return fmt::format("{} in all {} chunks", name_of(plan.recompute), plan.chunks());
  if (field == "replica_micro_batch") return fmt::format("{} in all {} replicas", plan.micro_batch, plan.data);
  return field == "stage_layers" ? "even" : "in order";
}

bool list_applies(const Scenario& scenario, const std::string& field) {
  const program::Plan& plan = scenario.file.job.plan;
  if (!values_of(plan, field).empty()) return true;
  if (field == kModules) return recomputes(plan, program::Recompute::kSelective);
  if (field == "replica_micro_batch") return plan.data > 1 && scenario.cluster.groups.size() > 1;
  return field == "stage_nodes" ? plan.pipeline > 1 && scenario.cluster.groups.size() > 1 : plan.chunks() > 1;
}

Scenario with_list(Scenario scenario, const std::string& field, const std::string& text) {
  const std::string wanted = trimmed(text);
  if (wanted.empty()) {
    clear(scenario.file.job.plan, field);
    return scenario;
  }
  scenario =
      with_field(std::move(scenario), field, field == kModules ? module_names_of(wanted) : single_values(wanted));
  // Only what is wrong with lists: whatever else cannot be is said of the plan.
  if (const auto no = program::check(scenario.file.job);
      no && (no->rule.starts_with("stage-") || no->rule.starts_with("replica") || no->rule.starts_with("recompute-"))) {
    throw base::Failure(base::ErrorKind::kUsage, no->reason);
  }
  return scenario;
}

}  // namespace trivium::gui
