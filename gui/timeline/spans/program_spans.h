// A timeline of a Program, predicted or measured, as spans.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "gui/timeline/spans/span_store.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "program/ir/timeline.h"

namespace trivium::gui {

/// Cluster > node > rank > lane. Steps stand one after the other. Time spent waiting for a partner is a span of its own
/// before the work; transfers are flows from send to receive. `cluster` (null: all ranks on one node) says which node
/// holds a rank. Events that name no task or op of the program are named by their numbers. Errors:
/// Failure(kInterrupted) where `stop` was requested.
std::shared_ptr<const SpanStore> spans_of(const program::Program& program, const program::Timeline& timeline,
                                          const hardware::Cluster* cluster, const std::stop_token& stop = {});

/// Events of `timeline` whose key names no task or op of the program: the record was made of another plan.
std::size_t foreign_events(const program::Program& program, const program::Timeline& timeline);

/// What a span is called: the task ("forward mb3") and the op ("layer 2 matmul"; empty where it says the same again).
struct SpanName {
  std::string title, detail;
};
SpanName span_name(const program::Program& program, const program::Event& event);

/// "rank 3 · stage 1 · tp 0 · dp 1": coordinates of the dimensions that are split.
std::string rank_name(const program::Program& program, int rank);

/// Task and op of an event; null where the program has none of that number, or the event is a whole segment.
const program::Task* task_of(const program::Program& program, const program::Event& event);
const program::Op* op_of(const program::Program& program, const program::Event& event);

}  // namespace trivium::gui
