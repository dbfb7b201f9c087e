#include "gui/timeline/spans/row_layout.h"

#include <algorithm>

#include "gui/timeline/spans/search.h"

namespace trivium::gui {
namespace {

constexpr double kMostGrowth = 20;

bool same_rows(const SpanStore& a, const SpanStore& b) {
  return std::equal(a.rows().begin(), a.rows().end(), b.rows().begin(), b.rows().end(),
                    [](const Row& x, const Row& y) { return x.name == y.name && x.kind == y.kind && x.end == y.end; });
}

}  // namespace

bool RowLayout::set_stores(std::vector<std::shared_ptr<const SpanStore>> stores) {
  const bool same = std::equal(stores.begin(), stores.end(), stores_.begin(), stores_.end(),
                               [](const auto& a, const auto& b) { return same_rows(*a, *b); });
  stores_ = std::move(stores);
  if (!same) {
    folded_.clear();
    only_.reset();
    filter_.clear();
    if (listed_) listed_.emplace();
    place();
    if (placed_.size() > kManyRows) set_all_folded(RowKind::kDevice, true);
    if (placed_.size() > kManyRows) set_all_folded(RowKind::kNode, true);
  }
  place();
  return !same;
}

void RowLayout::fold_to(int pixels) {
  for (const RowKind kind : {RowKind::kDevice, RowKind::kNode, RowKind::kCluster}) set_all_folded(kind, false);
  RowKind last = RowKind::kLane;
  for (const RowKind kind : {RowKind::kDevice, RowKind::kNode, RowKind::kCluster}) {
    place_with(RowHeights{});
    if (height_ <= pixels) break;
    set_all_folded(last = kind, true);
  }
  if (last != RowKind::kLane) unfold_while_room(last, pixels);
  place();
}

// The first of every timeline, then the second: all are seen, and less is left empty.
void RowLayout::unfold_while_room(RowKind kind, int pixels) {
  std::vector<std::vector<RowId>> folded(stores_.size());
  std::size_t most = 0;
  for (std::size_t t = 0; t < stores_.size(); ++t) {
    const auto& rows = stores_[t]->rows();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const RowId id{static_cast<int>(t), static_cast<std::int32_t>(r)};
      if (rows[r].kind == kind && folded_.contains(id)) folded[t].push_back(id);
    }
    most = std::max(most, folded[t].size());
  }
  for (std::size_t n = 0; n < most; ++n) {
    for (const auto& of_timeline : folded) {
      if (n < of_timeline.size()) folded_.erase(of_timeline[n]);
    }
    place_with(RowHeights{});
    if (height_ <= pixels) continue;
    for (const auto& of_timeline : folded) {
      if (n < of_timeline.size()) folded_.insert(of_timeline[n]);
    }
    for (const auto& of_timeline : folded) {  // not all of them: those that there is room for
      if (n >= of_timeline.size()) continue;
      folded_.erase(of_timeline[n]);
      place_with(RowHeights{});
      if (height_ > pixels) folded_.insert(of_timeline[n]);
    }
    return;
  }
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

void RowLayout::set_filter(const std::string& words) {
  filter_ = words;
  place();
}

void RowLayout::set_listed(std::optional<std::vector<RowId>> rows) {
  listed_ = std::move(rows);
  place();
}

// A row is shown where it is meant, or stands above or below one that is.
void RowLayout::find_filtered() {
  found_.clear();
  const NameFilter filter(filter_);
  if (filter.is_empty()) return;
  for (const auto& store : stores_) {
    const auto& rows = store->rows();
    std::vector<char> meant(rows.size(), 0);
    std::vector<std::string> names(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {  // those above come first
      const std::int32_t parent = rows[r].parent;
      names[r] = parent == kNoRow ? rows[r].name : names[static_cast<std::size_t>(parent)] + " " + rows[r].name;
      meant[r] = filter.is_met_by(names[r]) ? 1 : 0;
    }
    for (std::size_t r = rows.size(); r-- > 0;) {
      const std::int32_t parent = rows[r].parent;
      if (meant[r] != 0 && parent != kNoRow) meant[static_cast<std::size_t>(parent)] = 1;
    }
    found_.push_back(std::move(meant));
  }
}

bool RowLayout::is_left_out(int timeline, std::int32_t row) const {
  if (!found_.empty() && found_[static_cast<std::size_t>(timeline)][static_cast<std::size_t>(row)] == 0) return true;
  if (!only_) return false;
  const auto& rows = stores_[static_cast<std::size_t>(only_->timeline)]->rows();
  return timeline != only_->timeline || row < only_->row || row >= rows[static_cast<std::size_t>(only_->row)].end;
}

void RowLayout::reveal(RowId id) {
  if (is_left_out(id.timeline, id.row)) only_.reset();
  if (is_left_out(id.timeline, id.row)) filter_.clear();
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
  find_filtered();
  const RowHeights usual;
  place_with(usual);
  usual_height_ = height_;
  if (placed_.empty() || height_ >= room_) return;
  int fixed = static_cast<int>(placed_.size()) * usual.gap;  // rows that are only names are high enough
  for (const PlacedRow& row : placed_) fixed += row.bare ? row.height : 0;
  if (fixed == height_) return;
  const double more = std::min(kMostGrowth, static_cast<double>(room_ - fixed) / (height_ - fixed));
  const auto grown = [&](int pixels) { return static_cast<int>(pixels * more); };
  place_with({grown(usual.group), usual.bare, grown(usual.track), usual.gap});
}

PlacedRow RowLayout::placed(RowId id, const RowHeights& heights) const {
  const auto& rows = stores_[static_cast<std::size_t>(id.timeline)]->rows();
  const Row& row = rows[static_cast<std::size_t>(id.row)];
  PlacedRow made;
  made.id = id;
  made.depth = row.depth;
  made.lane = row.kind == RowKind::kLane;
  made.foldable = row.end > id.row + 1;
  made.folded = made.foldable && (listed_ || folded_.contains(id));
  made.bare = made.foldable && !made.folded && rows[static_cast<std::size_t>(id.row) + 1].end == row.end &&
              rows[static_cast<std::size_t>(id.row) + 1].kind != RowKind::kLane;
  made.height = made.lane   ? static_cast<int>(std::max<std::uint32_t>(1, row.tracks)) * heights.track
                : made.bare ? heights.bare
                            : heights.group;
  return made;
}

void RowLayout::place_listed(const RowHeights& heights) {
  height_ = 0;
  for (const RowId& id : *listed_) {
    PlacedRow row = placed(id, heights);
    row.y = height_;
    row.depth = 0;
    row.foldable = false;
    height_ += row.height + heights.gap;
    const auto& rows = stores_[static_cast<std::size_t>(id.timeline)]->rows();
    for (std::int32_t hidden = id.row; hidden < rows[static_cast<std::size_t>(id.row)].end; ++hidden) {
      place_of_[static_cast<std::size_t>(id.timeline)][static_cast<std::size_t>(hidden)] =
          static_cast<std::int32_t>(placed_.size());
    }
    placed_.push_back(row);
  }
}

void RowLayout::place_with(const RowHeights& heights) {
  placed_.clear();
  place_of_.assign(stores_.size(), {});
  for (std::size_t t = 0; t < stores_.size(); ++t) place_of_[t].assign(stores_[t]->rows().size(), -1);
  if (listed_) return place_listed(heights);
  int y = 0;
  for (std::size_t t = 0; t < stores_.size(); ++t) {
    const auto& rows = stores_[t]->rows();
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(rows.size());) {
      if (is_left_out(static_cast<int>(t), r)) {
        ++r;
        continue;
      }
      PlacedRow row = placed({static_cast<int>(t), r}, heights);
      row.y = y;
      y += row.height + heights.gap;
      const std::int32_t next = row.folded ? rows[static_cast<std::size_t>(r)].end : r + 1;
      for (std::int32_t hidden = r; hidden < next; ++hidden) {
        place_of_[t][static_cast<std::size_t>(hidden)] = static_cast<std::int32_t>(placed_.size());
      }
      placed_.push_back(row);
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
