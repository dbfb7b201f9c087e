// Which rows of the hierarchy are open, and where on the page they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

/// A row of one of several timelines that stand one below the other.
struct RowId {
  int timeline = 0;
  std::int32_t row = 0;
  auto operator<=>(const RowId&) const = default;
};

/// A row as it lies on the page; pixels from the top of the page.
struct PlacedRow {
  RowId id;
  int y = 0, height = 0;
  int depth = 0;
  bool foldable = false, folded = false;
  bool lane = false;  ///< shows its own spans; else the mean of what lies below it
  bool bare = false;  ///< shows nothing but its name: the one group below it shows the same
};

/// Heights in pixels.
struct RowHeights {
  int group = 20, bare = 15, track = 16, gap = 2;
};

class RowLayout {
 public:
  /// Forgets what was folded unless the rows are those it knew. At first devices are folded where all their lanes would
  /// need more than `kManyRows` rows. True where the rows are new.
  bool set_stores(std::vector<std::shared_ptr<const SpanStore>> stores);

  bool is_folded(RowId id) const { return folded_.contains(id); }
  void set_folded(RowId id, bool folded);
  /// Folds every row of that kind, or opens it.
  void set_all_folded(RowKind kind, bool folded);
  /// Folds devices, then nodes, then whole timelines, until all has a height of so many pixels; of the last kind as
  /// many of every timeline as there is room for stay open.
  void fold_to(int pixels);
  /// Shows what lies below one row alone, or everything again. The row is opened.
  void set_only(std::optional<RowId> row);
  const std::optional<RowId>& only() const { return only_; }
  /// Shows rows of that name alone, with what lies above and below them: every word must begin one of the name or of
  /// those above it. Empty: all.
  void set_filter(const std::string& words);
  const std::string& filter() const { return filter_; }
  /// Shows those rows alone, each folded, in that order; none: as the hierarchy has them.
  void set_listed(std::optional<std::vector<RowId>> rows);
  const std::optional<std::vector<RowId>>& listed() const { return listed_; }
  /// The height of the window on the page: where all rows need less, they grow into it, to twenty times their height at
  /// most.
  void set_room(int pixels);
  /// Opens whatever hides a row.
  void reveal(RowId id);

  const std::vector<PlacedRow>& rows() const { return placed_; }  ///< from top to bottom
  int height() const { return height_; }
  int usual_height() const { return usual_height_; }  ///< with rows as high as where they have no room to grow
  const PlacedRow* row_at(int y) const;               ///< null between rows and outside
  /// Itself, or the folded row that hides it; null where it is left out.
  const PlacedRow* visible_row_of(RowId id) const;
  std::pair<std::size_t, std::size_t> rows_between(int top, int bottom) const;  ///< range of rows()

  static constexpr std::size_t kManyRows = 64;

 private:
  bool is_left_out(int timeline, std::int32_t row) const;
  void find_filtered();
  PlacedRow placed(RowId id, const RowHeights& heights) const;
  void place_listed(const RowHeights& heights);
  void place();
  void unfold_while_room(RowKind kind, int pixels);
  void place_with(const RowHeights& heights);
  std::vector<std::shared_ptr<const SpanStore>> stores_;
  std::set<RowId> folded_;
  std::optional<RowId> only_;
  std::string filter_;
  std::vector<std::vector<char>> found_;  // by timeline and row, where there is a filter
  std::optional<std::vector<RowId>> listed_;
  std::vector<PlacedRow> placed_;
  std::vector<std::vector<std::int32_t>> place_of_;  // by timeline and row: index into placed_, of what shows it
  int height_ = 0, usual_height_ = 0, room_ = 0;
};

}  // namespace trivium::gui
