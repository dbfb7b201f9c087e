// A timeline laid out for drawing: spans side by side in memory, by row and time, with running sums over blocks.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/timeline/spans/category.h"

namespace trivium::gui {

constexpr std::uint32_t kNoSpan = std::numeric_limits<std::uint32_t>::max();
constexpr std::int32_t kNoRow = -1;

enum class RowKind : std::uint8_t { kCluster, kNode, kDevice, kLane };

/// A row of the hierarchy. Rows stand in preorder: the descendants of row r are the rows (r, end).
struct Row {
  std::string name;
  RowKind kind = RowKind::kLane;
  std::int32_t parent = kNoRow;
  std::int32_t depth = 0;
  std::int32_t end = 0;
  std::uint32_t first_track = 0, tracks = 0;  ///< of lanes
  bool primary = true;  ///< a lane that its folded ancestors show: compute where there is one, else every lane
  bool work = true;     ///< its spans count in shares, totals and critical path; not of ranges that only name work
};

/// Spans of a lane that do not overlap, in order of time. A lane has several where its spans overlap.
struct Track {
  std::int32_t row = 0;
  std::uint32_t first = 0, count = 0;  ///< spans
  std::uint32_t first_block = 0;
};

/// A transfer or a rendezvous: what happens in `from` reaches `to`.
struct Flow {
  std::uint32_t from = 0, to = 0;
  bool transfer = true;  ///< false: a collective that joins devices; no arrow, but the critical path passes through it
};

/// How much of a folded row's lanes is covered, in equal bins of time.
struct Summary {
  std::int64_t bin_ps = 1;
  std::int64_t bins = 0;                 ///< from the store's begin
  std::uint32_t tracks = 0;              ///< summed up
  std::vector<std::int64_t> cumulative;  ///< (bins + 1) x categories: ps covered before the bin
};

/// Immutable once built; safe to share between threads. Times are picoseconds. About 30 bytes a span.
class SpanStore {
 public:
  static constexpr std::uint32_t kBlock = 16;  ///< spans between two running sums

  std::uint32_t size() const { return static_cast<std::uint32_t>(start_.size()); }
  std::int64_t begin() const { return begin_; }  ///< of the first span; 0 without spans
  std::int64_t end() const { return end_; }      ///< of the last
  std::int64_t start_of(std::uint32_t span) const { return start_[span]; }
  std::int64_t end_of(std::uint32_t span) const { return stop_[span]; }
  int category_of(std::uint32_t span) const { return category_[span]; }
  bool is_waiting(std::uint32_t span) const { return category_of(span) == waiting_; }
  /// The event it was made of: an index into the timeline's events, or kNoSpan.
  std::uint32_t event_of(std::uint32_t span) const { return event_.empty() ? kNoSpan : event_[span]; }
  std::uint32_t title_of(std::uint32_t span) const { return title_[span]; }
  std::uint32_t detail_of(std::uint32_t span) const { return detail_[span]; }
  /// "forward mb3 layer 2 matmul": the title, then the detail.
  std::string name_of(std::uint32_t span) const;
  const std::vector<std::string>& titles() const { return titles_; }
  const std::vector<std::string>& details() const { return details_; }

  const std::vector<CategoryInfo>& categories() const { return categories_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<Flow>& flows() const { return flows_; }                ///< by start of `from`
  const std::vector<std::int64_t>& step_starts() const { return steps_; }  ///< where training steps begin
  std::uint64_t left_out() const { return left_out_; }  ///< spans that overlap too many others to be shown
  const Summary* summary_of(std::int32_t row) const;    ///< null: few enough tracks to add up

  std::uint32_t track_of(std::uint32_t span) const;
  /// The first span of a track that ends after `ps`; the track's end where there is none.
  std::uint32_t first_ending_after(std::uint32_t track, std::int64_t ps) const;
  /// The first span of a track that starts at `ps` or later; the track's end where there is none.
  std::uint32_t first_starting_at(std::uint32_t track, std::int64_t ps) const;
  /// The span of a track that covers `ps`, or kNoSpan.
  std::uint32_t span_at(std::uint32_t track, std::int64_t ps) const;
  /// Tracks that a row shows: its own, or those of the primary lanes below it.
  std::vector<std::uint32_t> shown_tracks(std::int32_t row) const;
  /// The device (else the outermost row) that a row belongs to.
  std::int32_t device_of(std::int32_t row) const;
  std::size_t bytes() const;  ///< of memory, names apart

  /// Picoseconds by category that a track covers before `ps`; adds to `sums` (categories long).
  void add_covered_before(std::uint32_t track, std::int64_t ps, std::span<std::int64_t> sums) const;

  /// For walks over boundaries in order of time: spans, and the running sums of blocks.
  std::span<const std::int64_t> starts() const { return start_; }
  std::span<const std::int64_t> stops() const { return stop_; }
  std::span<const std::uint8_t> kinds() const { return category_; }
  std::span<const std::int64_t> block_starts() const { return block_start_; }
  std::span<const std::int64_t> block_sums() const { return block_sums_; }        ///< blocks x categories
  std::span<const std::int64_t> block_longest() const { return block_longest_; }  ///< of every block's spans, ps

 private:
  friend class StoreBuilder;
  std::vector<std::int64_t> start_, stop_;
  std::vector<std::uint32_t> title_, detail_, event_;
  std::vector<std::uint8_t> category_;
  std::vector<std::int64_t> block_start_;  // start of every block's first span
  std::vector<std::int64_t> block_sums_;   // ps covered in the track before every block, by category
  std::vector<std::int64_t> block_longest_;
  std::vector<std::string> titles_, details_;
  std::vector<CategoryInfo> categories_;
  std::vector<Row> rows_;
  std::vector<Track> tracks_;
  std::vector<Flow> flows_;
  std::vector<std::int64_t> steps_;
  std::vector<std::int32_t> summary_of_row_;
  std::vector<Summary> summaries_;
  std::int64_t begin_ = 0, end_ = 0;
  std::uint64_t left_out_ = 0;
  int waiting_ = -1;
};

}  // namespace trivium::gui
