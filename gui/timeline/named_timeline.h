// A timeline with what is needed to read it.
#pragma once

#include <memory>
#include <string>

#include "program/program.h"
#include "program/timeline.h"

namespace trivium::gui {

/// Events are keys into the program; without one they have no names.
struct NamedTimeline {
  std::string name;  ///< "predicted", "measured"
  std::shared_ptr<const program::Program> program;
  std::shared_ptr<const program::Timeline> timeline;
};

}  // namespace trivium::gui
