// A range of time over some rows: where its time goes.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

/// Time of a category within a range.
struct Share {
  int category = 0;
  std::int64_t ps = 0;
  std::uint64_t spans = 0;  ///< that touch the range
};

/// What a range holds. On the lanes that stand for their devices, shares and idle time sum up to tracks x length
/// exactly; concurrent lanes (communication under way while the device computes) are counted apart.
struct Breakdown {
  std::int64_t begin_ps = 0, end_ps = 0;
  std::uint32_t tracks = 0;           ///< on lanes that stand for their devices
  std::vector<Share> shares, beside;  ///< longest first; none of no time and no span
  std::int64_t idle_ps = 0;
  std::int64_t total_ps() const { return (end_ps - begin_ps) * tracks; }
};

/// Of [begin, end) over the rows below `row`, or `row` itself; a lane on its own stands for its device. Spans are
/// counted up to `kCountedSpans`, beyond that `Share::spans` is 0. Precondition: begin <= end.
Breakdown break_down(const SpanStore& store, std::int32_t row, std::int64_t begin_ps, std::int64_t end_ps);
/// Over several rows that do not lie below each other.
Breakdown break_down(const SpanStore& store, const std::vector<std::int32_t>& rows, std::int64_t begin_ps,
                     std::int64_t end_ps);
/// Over all rows.
Breakdown break_down(const SpanStore& store, std::int64_t begin_ps, std::int64_t end_ps);

constexpr std::uint64_t kCountedSpans = 4'000'000;

}  // namespace trivium::gui
