// Which plans a search was about.
#pragma once

#include <string>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// What narrows or widens the space of a scenario's search: " with tensor parallel 8 held, on 64 devices"; empty where
/// nothing was said.
std::string space_words(const Scenario& scenario);

}  // namespace trivium::gui
