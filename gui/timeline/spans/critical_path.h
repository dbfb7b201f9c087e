// What set the length of a timeline: the chain of spans that ends last.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

struct CriticalPath {
  std::vector<std::uint32_t> spans;       ///< in order of time; waiting is never on the path
  std::vector<std::int64_t> ps;           ///< by category: time of the path; spans that overlap count once
  std::int64_t idle_ps = 0;               ///< within the path's length, between its spans
  std::int64_t begin_ps = 0, end_ps = 0;  ///< of the timeline; ps and idle_ps sum up to the difference
};

/// Walks back from the span that ends last: to what ended last on the same device before it began, and on. What a span
/// meets (a transfer's other end, the members of a collective that joins devices) begins with it, so what ended last on
/// any of their devices counts. In a simulation every span begins at the end of what it waited for, so the path has no
/// gap; where two predecessors end at the same moment, the first of them stands for both. Errors: Failure(kInterrupted)
/// where `stop` was requested.
CriticalPath critical_path(const SpanStore& store, const std::stop_token& stop = {});

}  // namespace trivium::gui
