// How much of every pixel's time each kind of work covers: exact, so that a bubble never vanishes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

/// A stretch of time over columns of pixels: column c stands for [edge(c), edge(c + 1)).
struct TimeScale {
  std::int64_t begin_ps = 0, end_ps = 1;  ///< begin < end
  int columns = 1;

  std::int64_t edge(int column) const;
  double x_of(std::int64_t ps) const;  ///< in columns, unclipped
  std::int64_t time_at(double x) const;
  bool operator==(const TimeScale&) const = default;
  double column_ps() const { return static_cast<double>(end_ps - begin_ps) / columns; }
};

/// Adds, for every column and category, the share (0 … 1) of the column's time that the track's spans cover, times
/// `weight`. `shares`: columns x categories of the store. Work grows with the columns, not with the spans: running sums
/// stand at every boundary where there are many.
void add_coverage(const SpanStore& store, std::uint32_t track, const TimeScale& scale, float weight,
                  std::span<float> shares);

/// What covers a track, at weight 1, where it is known already on the same scale; else nothing.
using KnownShares = std::function<std::span<const float>(std::uint32_t track)>;

/// The mean over the tracks that a row shows; known ones are not walked again. Where columns are wide compared with the
/// bins of the row's summary, their edges move to bin edges, at most an eighth of a column away; the share is exact for
/// the column so moved.
void add_row_coverage(const SpanStore& store, std::int32_t row, const TimeScale& scale, std::span<float> shares,
                      const KnownShares& known = {});

}  // namespace trivium::gui
