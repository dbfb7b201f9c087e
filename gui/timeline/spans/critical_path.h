// What set the length of a timeline: the chain of spans that ends last.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

struct CriticalPath {
  std::vector<std::uint32_t> spans;       ///< in order of time; waiting is never on the path
  std::vector<std::int64_t> ps;           ///< by category: time of the path; spans that overlap count once
  std::int64_t idle_ps = 0;               ///< within the path's length, between its spans
  std::int64_t begin_ps = 0, end_ps = 0;  ///< of the timeline; ps and idle_ps sum up to the difference
};

/// Adds spans that must have ended before a span could start.
using Predecessors = std::function<void(std::uint32_t span, std::vector<std::uint32_t>& out)>;

/// Walks back from the span that ends last: to whatever of its predecessors ends last, and on. What a span meets (a
/// transfer's other end, the members of a collective that joins devices) starts with it, so the predecessors of all of
/// them count. `predecessors`: as the Program says; without it, everything that ended on the same device before the
/// span began.
CriticalPath critical_path(const SpanStore& store, const Predecessors& predecessors = nullptr);

}  // namespace trivium::gui
