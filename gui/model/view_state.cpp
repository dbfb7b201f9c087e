#include "gui/model/view_state.h"

#include <nlohmann/json.hpp>

#include "base/json_reader.h"

namespace trivium::gui {
namespace {

constexpr std::size_t kMostMarks = 10'000;

struct Texts {
  const char* name;
  std::string ViewState::*text;
};
constexpr Texts kTexts[] = {{"view", &ViewState::view},
                            {"device_colour", &ViewState::device_colour},
                            {"plans_filter", &ViewState::plans_filter},
                            {"question", &ViewState::question},
                            {"question_value", &ViewState::question_value},
                            {"search", &ViewState::search},
                            {"rows", &ViewState::rows}};
struct Switches {
  const char* name;
  bool ViewState::*is_on;
};
constexpr Switches kSwitches[] = {
    {"memory_by_rank", &ViewState::memory_by_rank}, {"two_plans", &ViewState::two_plans}, {"flame", &ViewState::flame}};

}  // namespace

nlohmann::json to_json(const ViewState& state) {
  nlohmann::json json = nlohmann::json::object();
  for (const Texts& one : kTexts) json[one.name] = state.*one.text;
  for (const Switches& one : kSwitches) json[one.name] = state.*one.is_on;
  json["time_s"] = {state.timeline_begin_s, state.timeline_end_s};
  json["marks_s"] = state.marks_s;
  return json;
}

ViewState view_state_from_json(const base::JsonReader& reader) {
  ViewState state;
  std::vector<std::string> names{"time_s", "marks_s"};
  for (const Texts& one : kTexts) names.emplace_back(one.name);
  for (const Switches& one : kSwitches) names.emplace_back(one.name);
  reader.allow_only(names);
  for (const Texts& one : kTexts) {
    if (const auto text = reader.find(one.name)) state.*one.text = text->text();
  }
  for (const Switches& one : kSwitches) {
    if (const auto is_on = reader.find(one.name)) state.*one.is_on = is_on->boolean();
  }
  if (const auto time = reader.find("time_s")) {
    const auto ends = time->elements();
    if (ends.size() == 2) {
      state.timeline_begin_s = ends[0].number();
      state.timeline_end_s = ends[1].number();
    }
  }
  if (const auto marks = reader.find("marks_s")) {
    for (const base::JsonReader& mark : marks->elements()) {
      if (state.marks_s.size() < kMostMarks) state.marks_s.push_back(mark.number());
    }
  }
  return state;
}

}  // namespace trivium::gui
