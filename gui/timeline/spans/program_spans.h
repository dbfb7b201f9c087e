// A timeline of a Program, predicted or measured, as spans.
#pragma once

#include <memory>

#include "gui/timeline/spans/span_store.h"
#include "hardware_profiles/hardware.h"
#include "program/program.h"
#include "program/timeline.h"

namespace trivium::gui {

/// Cluster > node > rank > lane. Steps stand one after the other. Time spent waiting for a partner is a span of its own
/// before the work; transfers are flows from send to receive. `cluster` (null: all ranks on one node) says which node
/// holds a rank. Events that name no task or op of the program are named by their numbers.
std::shared_ptr<const SpanStore> spans_of(const program::Program& program, const program::Timeline& timeline,
                                          const hardware::Cluster* cluster);

/// Events of `timeline` whose key names no task or op of the program: the record was made of another plan.
std::size_t foreign_events(const program::Program& program, const program::Timeline& timeline);

/// Task and op of an event; null where the program has none of that number, or the event is a whole segment.
const program::Task* task_of(const program::Program& program, const program::Event& event);
const program::Op* op_of(const program::Program& program, const program::Event& event);

}  // namespace trivium::gui
