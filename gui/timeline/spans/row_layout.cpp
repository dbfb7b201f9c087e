#include "gui/timeline/spans/row_layout.h"

#include <algorithm>

namespace trivium::gui {
namespace {

constexpr double kMostGrowth = 2;

bool same_rows(const SpanStore& a, const SpanStore& b) {
  return std::equal(a.rows().begin(), a.rows().end(), b.rows().begin(), b.rows().end(),
                    [](const Row& x, const Row& y) { return x.name == y.name && x.kind == y.kind && x.end == y.end; });
}

}  // namespace

void RowLayout::set_stores(std::vector<std::shared_ptr<const SpanStore>> stores) {
  const bool same = std::equal(stores.begin(), stores.end(), stores_.begin(), stores_.end(),
                               [](const auto& a, const auto& b) { return same_rows(*a, *b); });
  stores_ = std::move(stores);
  if (!same) {
    folded_.clear();
    only_.reset();
    place();
    if (placed_.size() > kManyRows) set_all_folded(RowKind::kDevice, true);
    if (placed_.size() > kManyRows) set_all_folded(RowKind::kNode, true);
  }
  place();
}

void RowLayout::set_folded(RowId id, bool folded) {
  if (folded) {
    folded_.insert(id);
  } else {
    folded_.erase(id);
  }
  place();
}

void RowLayout::set_all_folded(RowKind kind, bool folded) {
  for (std::size_t t = 0; t < stores_.size(); ++t) {
    const auto& rows = stores_[t]->rows();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].kind != kind || rows[r].end == static_cast<std::int32_t>(r) + 1) continue;
      const RowId id{static_cast<int>(t), static_cast<std::int32_t>(r)};
      if (folded) {
        folded_.insert(id);
      } else {
        folded_.erase(id);
      }
    }
  }
  place();
}

void RowLayout::set_only(std::optional<RowId> row) {
  only_ = row;
  if (row) folded_.erase(*row);
  place();
}

bool RowLayout::is_left_out(int timeline, std::int32_t row) const {
  if (!only_) return false;
  const auto& rows = stores_[static_cast<std::size_t>(only_->timeline)]->rows();
  return timeline != only_->timeline || row < only_->row || row >= rows[static_cast<std::size_t>(only_->row)].end;
}

void RowLayout::reveal(RowId id) {
  if (is_left_out(id.timeline, id.row)) only_.reset();
  const auto& rows = stores_[static_cast<std::size_t>(id.timeline)]->rows();
  for (std::int32_t r = rows[static_cast<std::size_t>(id.row)].parent; r != kNoRow;
       r = rows[static_cast<std::size_t>(r)].parent) {
    folded_.erase({id.timeline, r});
  }
  place();
}

void RowLayout::set_room(int pixels) {
  if (pixels == room_) return;
  room_ = pixels;
  place();
}

void RowLayout::place() {
  const RowHeights usual;
  place_with(usual);
  const int gaps = static_cast<int>(placed_.size()) * usual.gap;
  if (placed_.empty() || height_ >= room_) return;
  const double more = std::min(kMostGrowth, static_cast<double>(room_ - gaps) / (height_ - gaps));
  const auto grown = [&](int pixels) { return static_cast<int>(pixels * more); };
  place_with({grown(usual.group), grown(usual.bare), grown(usual.track), usual.gap});
}

void RowLayout::place_with(const RowHeights& heights) {
  placed_.clear();
  place_of_.assign(stores_.size(), {});
  int y = 0;
  for (std::size_t t = 0; t < stores_.size(); ++t) {
    const auto& rows = stores_[t]->rows();
    place_of_[t].assign(rows.size(), -1);
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(rows.size());) {
      if (is_left_out(static_cast<int>(t), r)) {
        ++r;
        continue;
      }
      const Row& row = rows[static_cast<std::size_t>(r)];
      const RowId id{static_cast<int>(t), r};
      PlacedRow placed;
      placed.id = id;
      placed.y = y;
      placed.depth = row.depth;
      placed.lane = row.kind == RowKind::kLane;
      placed.foldable = row.end > r + 1;
      placed.folded = placed.foldable && folded_.contains(id);
      placed.bare = placed.foldable && !placed.folded && rows[static_cast<std::size_t>(r) + 1].end == row.end &&
                    rows[static_cast<std::size_t>(r) + 1].kind != RowKind::kLane;
      placed.height = placed.lane   ? static_cast<int>(std::max<std::uint32_t>(1, row.tracks)) * heights.track
                      : placed.bare ? heights.bare
                                    : heights.group;
      y += placed.height + heights.gap;
      const std::int32_t next = placed.folded ? row.end : r + 1;
      for (std::int32_t hidden = r; hidden < next; ++hidden) {
        place_of_[t][static_cast<std::size_t>(hidden)] = static_cast<std::int32_t>(placed_.size());
      }
      placed_.push_back(placed);
      r = next;
    }
  }
  height_ = y;
}

const PlacedRow* RowLayout::row_at(int y) const {
  const auto next =
      std::upper_bound(placed_.begin(), placed_.end(), y, [](int at, const PlacedRow& row) { return at < row.y; });
  if (next == placed_.begin()) return nullptr;
  const PlacedRow& row = *std::prev(next);
  return y < row.y + row.height ? &row : nullptr;
}

const PlacedRow* RowLayout::visible_row_of(RowId id) const {
  const std::int32_t at = place_of_[static_cast<std::size_t>(id.timeline)][static_cast<std::size_t>(id.row)];
  return at < 0 ? nullptr : &placed_[static_cast<std::size_t>(at)];
}

std::pair<std::size_t, std::size_t> RowLayout::rows_between(int top, int bottom) const {
  const auto first = std::partition_point(placed_.begin(), placed_.end(),
                                          [&](const PlacedRow& row) { return row.y + row.height <= top; });
  const auto last = std::partition_point(first, placed_.end(), [&](const PlacedRow& row) { return row.y < bottom; });
  return {static_cast<std::size_t>(first - placed_.begin()), static_cast<std::size_t>(last - placed_.begin())};
}

}  // namespace trivium::gui
