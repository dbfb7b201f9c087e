// How the views of a window stand, as a project keeps it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trivium::base {
class JsonReader;
}

namespace trivium::gui {

struct ViewState {
  std::string view;  ///< that is open: "timeline"; empty: nothing is known of the views
  std::string device_colour;
  bool memory_by_rank = false;
  std::string plans_filter;
  std::string question, question_value;             ///< of What if
  bool two_plans = false;                           ///< what Compare shows
  double timeline_begin_s = 0, timeline_end_s = 0;  ///< equal: all of it
  std::vector<double> marks_s;
  std::string search, rows;  ///< what is searched for in the timeline, and which rows are shown
  bool flame = false;        ///< stands below it
};

/// Member "views" of `trivium.project/1`.
nlohmann::json to_json(const ViewState& state);
/// Errors: Failure(kInput) with the JSON pointer.
ViewState view_state_from_json(const base::JsonReader& reader);

}  // namespace trivium::gui
