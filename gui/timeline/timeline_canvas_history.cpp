// Jumps in a timeline, and the way back.
#include <QContextMenuEvent>
#include <QMenu>
#include <QScrollBar>
#include <cmath>

#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {

void TimelineCanvas::go_to(const SeenPart& part) {
  if (part.only != layout_.only()) {
    layout_.set_only(part.only);
    rows_changed();
  }
  show_time(part.begin_ps, part.end_ps);
  Q_EMIT history_changed();
}

void TimelineCanvas::jump(std::int64_t begin_ps, std::int64_t end_ps, std::optional<RowId> only) {
  const SeenPart before = seen();
  go_to({begin_ps, end_ps, only});
  history_.jump(before, seen());
  Q_EMIT history_changed();
}

void TimelineCanvas::show_all() {
  const auto margin = std::llround(static_cast<double>(last_ps() - first_ps()) * kMargin);
  show_time(first_ps() - margin, last_ps() + margin);
}

void TimelineCanvas::fit() {
  std::int64_t begin = first_ps(), end = last_ps();
  if (range_ && range_->end_ps > range_->begin_ps) {
    begin = range_->begin_ps, end = range_->end_ps;
  } else if (selected_) {
    const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(selected_->timeline)].spans;
    const std::int64_t start = store.start_of(selected_->span), stop = store.end_of(selected_->span);
    begin = start - (stop - start) / 4, end = stop + (stop - start) / 4;
  }
  const auto margin = std::llround(static_cast<double>(end - begin) * kMargin);
  jump(begin - margin, end + margin, layout_.only());
}

void TimelineCanvas::back() {
  if (can_go_back()) go_to(history_.back(seen()));
}

void TimelineCanvas::forward() {
  if (can_go_forward()) go_to(history_.forward());
}

void TimelineCanvas::show_only(std::optional<RowId> row) {
  jump(begin_, end_, row);
  verticalScrollBar()->setValue(0);
}

void TimelineCanvas::contextMenuEvent(QContextMenuEvent* event) {
  if (scene_.timelines.empty()) return;
  QMenu menu(this);
  const PlacedRow* row = row_at(viewport()->mapFrom(this, event->pos()));
  menu.addAction(range_ || selected_ ? tr("Zoom to the selection (F)") : tr("Fit everything (F)"), this,
                 &TimelineCanvas::fit);
  if (row != nullptr) {
    const RowId id = row->id;
    const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(id.timeline)].spans;
    const QString name = QString::fromStdString(store.rows()[static_cast<std::size_t>(id.row)].name);
    menu.addAction(tr("Only %1").arg(name.isEmpty() ? tr("this row") : name), this, [this, id] { show_only(id); });
    const bool pinned = is_pinned(id);
    menu.addAction(pinned ? tr("Unpin") : tr("Pin on top"), this, [this, id, pinned] { set_pinned(id, !pinned); });
    if (row->foldable) {
      menu.addAction(row->folded ? tr("Open") : tr("Fold"), this, [this, id] { toggle_fold(id); });
    }
  }
  menu.addAction(tr("All rows"), this, [this] { show_only(std::nullopt); })->setEnabled(layout_.only().has_value());
  menu.addAction(tr("Unpin all"), this, &TimelineCanvas::unpin_all)->setEnabled(!pins_.listed()->empty());
  menu.addSeparator();
  menu.addAction(tr("Save the selection as CSV …"), this, [this] { Q_EMIT save_wanted(); });
  menu.addSeparator();
  const std::int64_t here = time_at(viewport()->mapFrom(this, event->pos()).x());
  menu.addAction(tr("Mark (M)"), this, [this, here] { mark(here); });
  menu.addAction(tr("No marks (Shift+M)"), this, &TimelineCanvas::clear_marks)->setEnabled(!marks_.empty());
  menu.addSeparator();
  menu.addAction(tr("Back (Backspace)"), this, &TimelineCanvas::back)->setEnabled(can_go_back());
  menu.addAction(tr("Forward (Shift+Backspace)"), this, &TimelineCanvas::forward)->setEnabled(can_go_forward());
  menu.exec(event->globalPos());
}

}  // namespace trivium::gui
