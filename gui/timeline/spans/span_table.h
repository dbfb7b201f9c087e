// Spans of a stretch as a table for other programs.
#pragma once

#include <string>

#include "gui/timeline/spans/op_totals.h"

namespace trivium::gui {

constexpr std::size_t kMostTableSpans = 2'000'000;

/// With a header: rank,lane,span,kind,start_s,length_s; row by row, each by time. Spans that the stretch cuts stand
/// there whole; times count from the store's begin. Errors: Failure(kUsage) where there are more than
/// `kMostTableSpans`.
std::string spans_csv(const SpanStore& store, const Stretch& stretch);

}  // namespace trivium::gui
