// A timeline with what is needed to read it.
#pragma once

#include <memory>
#include <string>

#include "gui/timeline/spans/span_store.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "program/ir/timeline.h"

namespace trivium::gui {

/// Either spans, or a timeline whose events are keys into the program.
struct NamedTimeline {
  std::string name;  ///< "predicted", "measured"
  std::shared_ptr<const program::Program> program;
  std::shared_ptr<const program::Timeline> timeline;
  std::shared_ptr<const hardware::Cluster> cluster = {};  ///< which node holds a rank; null: one node
  std::shared_ptr<const SpanStore> spans = {};            ///< made of the timeline where absent
};

}  // namespace trivium::gui
