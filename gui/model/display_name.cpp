#include "gui/model/display_name.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <string_view>

#include "gui/model/axis.h"
#include "program/plan/fields.h"

namespace trivium::gui {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

/// As it stands inside of a sentence: "Micro-batch" is "micro-batch", "ZeRO stage" stays.
std::string within_a_sentence(std::string words) {
  const auto end = std::find(words.begin(), words.end(), ' ');
  if (std::none_of(words.begin() + 1, end, is_upper)) {
    words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  }
  return words;
}

/// Of fields whose names do not read as words.
const std::map<std::string, std::string>& names() {
  static const std::map<std::string, std::string> kNames = [] {
    std::map<std::string, std::string> names{{"all_to_all", "all to all"},
                                             {"expert_data", "expert data"},
                                             {"global_batch", "global batch"},
                                             {"kv_heads", "heads of keys and values"},
                                             {"linear_bias", "linear biases"},
                                             {"moment_dtype", "type of moments"},
                                             {"reduce_dtype", "type of reduced gradients"},
                                             {"top_k", "top k"}};
    for (const program::ScheduleTraits& schedule : program::schedule_table()) {
      std::string words(schedule.name);
      std::replace(words.begin(), words.end(), '_', ' ');
      names.emplace(schedule.name, words);
    }
    for (int i = 0; i < program::kModules; ++i) {
      const std::string name(program::name_of(static_cast<program::Module>(i)));
      std::string words = name;
      std::replace(words.begin(), words.end(), '_', ' ');
      if (words != name) names.emplace(name, words);
    }
    for (const program::PlanField& field : program::plan_field_table()) {
      const std::string name = field.name;
      if (name.find_first_of("_.") != std::string::npos) names.emplace(name, within_a_sentence(field.title));
    }
    return names;
  }();
  return kNames;
}

/// "placement=tensor-context-pipeline-data" as summaries call the axes: "placement=TP-CP-PP-DP".
std::string with_short_axes(std::string words) {
  constexpr std::string_view kBefore = "placement=";
  const std::size_t begin = words.find(kBefore);
  if (begin == std::string::npos) return words;
  const std::size_t order = begin + kBefore.size(), end = std::min(words.find(' ', order), words.size());
  std::string axes = words.substr(order, end - order);
  for (const auto& [name, brief] : {std::pair("tensor", "TP"), {"context", "CP"}, {"pipeline", "PP"}, {"data", "DP"}}) {
    const std::size_t at = axes.find(name);
    if (at != std::string::npos) axes.replace(at, std::string_view(name).size(), brief);
  }
  return words.replace(order, end - order, axes);
}

}  // namespace

std::string display_name(const std::string& text) {
  static const std::regex kName("[A-Za-z0-9]+(?:[_.][A-Za-z0-9]+)+");
  std::string said;
  std::size_t done = 0;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), kName); match != std::sregex_iterator(); ++match) {
    const auto at = static_cast<std::size_t>(match->position());
    const std::size_t end = at + static_cast<std::size_t>(match->length());
    const auto known = names().find(match->str());
    const bool part = at > 0 && std::string_view("\"/-_.").find(text[at - 1]) != std::string_view::npos;
    const bool goes_on = end < text.size() && std::string_view("\"/_").find(text[end]) != std::string_view::npos;
    if (known == names().end() || part || goes_on) continue;
    said += text.substr(done, at - done) + known->second;
    done = end;
  }
  return with_micro_sign(with_short_axes(said + text.substr(done)));
}

}  // namespace trivium::gui
