// Which plans a search was about.
#pragma once

#include <string>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// What narrows or widens the space of a scenario's search: " with tensor parallel 8 held, on 64 devices"; empty where
/// nothing was said.
std::string space_words(const Scenario& scenario);

/// How far a search is.
struct SearchProgress {
  std::int64_t done = 0, all = 0;  ///< plans
  double best_s = 0, bound_s = 0;  ///< the fastest so far; what none of the space can be faster than. 0: not known
  double seconds = 0;              ///< since it began
};

/// "120 of 4,096 plans, best so far 12.4 s, none can be faster than 11.9 s (4.0 % below), 3.2 s".
std::string progress_words(const SearchProgress& progress);

}  // namespace trivium::gui
