// The hands on a timeline: keys, wheel, drags.
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {
namespace {

constexpr double kZoomStep = 1.3, kPanStep = 0.15;
constexpr double kWheelNotch = 120;  // eighths of a degree, as Qt counts
constexpr int kClickSlack = 4;       // pixels a hand may tremble

}  // namespace

void TimelineCanvas::keyPressEvent(QKeyEvent* event) {
  const int middle = time_area().center().x();
  const int pointer = viewport()->mapFromGlobal(QCursor::pos()).x();
  const int at = viewport()->underMouse() && time_area().contains(pointer, time_area().center().y()) ? pointer : middle;
  if ((event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) != 0) {
    QAbstractScrollArea::keyPressEvent(event);
    return;
  }
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return zoom(kZoomStep, at);
    case Qt::Key_S:
    case Qt::Key_Minus:
      return zoom(1 / kZoomStep, at);
    case Qt::Key_A:
      return pan(-kPanStep);
    case Qt::Key_D:
      return pan(kPanStep);
    case Qt::Key_F:
      return fit();
    case Qt::Key_M:
      return (event->modifiers() & Qt::ShiftModifier) != 0 ? clear_marks() : mark(time_at(at));
    case Qt::Key_Comma:
      return step_mark(-1);
    case Qt::Key_Period:
      return step_mark(1);
    case Qt::Key_Backspace:
      return (event->modifiers() & Qt::ShiftModifier) != 0 ? forward() : back();
    case Qt::Key_Left:
      return step_span(-1);
    case Qt::Key_Right:
      return step_span(1);
    case Qt::Key_Up:
      return step_row(-1);
    case Qt::Key_Down:
      return step_row(1);
    case Qt::Key_Escape:
      if (!range_ && !selected_) break;
      range_.reset();
      select(std::nullopt, false);
      return;
    default:
      break;
  }
  QAbstractScrollArea::keyPressEvent(event);
}

void TimelineCanvas::step_span(int direction) {
  if (!selected_) return pan(direction * kPanStep);
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(selected_->timeline)].spans;
  const Track& track = store.tracks()[store.track_of(selected_->span)];
  const std::int64_t next = static_cast<std::int64_t>(selected_->span) + direction;
  if (next < track.first || next >= static_cast<std::int64_t>(track.first) + track.count) return;
  select(SpanId{selected_->timeline, static_cast<std::uint32_t>(next)}, true);
}

// To the nearest lane above or below that has spans: the span there at the same time, or the next one.
void TimelineCanvas::step_row(int direction) {
  if (!selected_) {
    verticalScrollBar()->setValue(verticalScrollBar()->value() + direction * verticalScrollBar()->singleStep());
    return;
  }
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(selected_->timeline)].spans;
  const std::int64_t track = static_cast<std::int64_t>(store.track_of(selected_->span)) + direction;
  if (track < 0 || track >= static_cast<std::int64_t>(store.tracks().size())) return;
  const Track& other = store.tracks()[static_cast<std::size_t>(track)];
  const std::uint32_t span =
      std::min(store.first_ending_after(static_cast<std::uint32_t>(track), store.start_of(selected_->span)),
               other.first + other.count - 1);
  select(SpanId{selected_->timeline, span}, true);
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const double notches = (turned.y() != 0 ? turned.y() : turned.x()) / kWheelNotch;
  if ((event->modifiers() & Qt::ControlModifier) != 0) {
    zoom(std::pow(kZoomStep, notches), event->position().x());
  } else if ((event->modifiers() & Qt::ShiftModifier) != 0 || turned.y() == 0) {
    pan(-notches * kPanStep);
  } else {
    constexpr int kRows = 3;
    verticalScrollBar()->setValue(verticalScrollBar()->value() -
                                  static_cast<int>(notches * kRows * verticalScrollBar()->singleStep()));
  }
  event->accept();
}

bool TimelineCanvas::on_fold_handle(const PlacedRow& row, QPoint position) const {
  return row.foldable && position.x() < time_area().left();
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  const QPoint at = event->position().toPoint();
  pressed_ = at;
  const PlacedRow* row = row_at(at);
  if (event->button() == Qt::LeftButton && row != nullptr && on_fold_handle(*row, at)) {
    toggle_fold(row->id);
    return;
  }
  if (at.x() < time_area().left() || scene_.timelines.empty()) return;
  const bool pans = event->button() == Qt::MiddleButton ||
                    (event->button() == Qt::LeftButton && (event->modifiers() & Qt::ShiftModifier) != 0);
  if (pans) {
    drag_ = Drag::kPan;
    pressed_begin_ = begin_;
    pressed_end_ = end_;
    pressed_scroll_ = verticalScrollBar()->value();
    viewport()->setCursor(Qt::ClosedHandCursor);
  } else if (event->button() == Qt::LeftButton) {
    drag_ = Drag::kSelect;
    pressed_ps_ = time_at(at.x());
  }
}

// On the ruler all rows are meant: none is named. Open groups that the pointer crosses on its way from row to row say
// nothing of their own; rows of another timeline than the first are left out.
std::vector<RowId> TimelineCanvas::rows_dragged_over(QPoint from, QPoint to) const {
  if (from.y() < kRuler) return {};
  const PlacedRow* first = row_at(from);
  const bool pinned = from.y() < time_area().top();
  if (first == nullptr) return {};
  if (pinned || to.y() < time_area().top()) return {first->id};
  const int scroll = verticalScrollBar()->value() - time_area().top();
  const auto [begin, end] =
      layout_.rows_between(std::min(from.y(), to.y()) + scroll, std::max(from.y(), to.y()) + scroll + 1);
  if (end - begin <= 1) return {first->id};
  std::vector<RowId> shown, open;
  for (std::size_t r = begin; r < end; ++r) {
    const PlacedRow& row = layout_.rows()[r];
    if (row.id.timeline != first->id.timeline) continue;
    (row.lane || row.folded ? shown : open).push_back(row.id);
  }
  if (shown.empty() && !open.empty()) shown.push_back(open.back());
  return shown;
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPoint at = event->position().toPoint();
  if (drag_ == Drag::kPan) {
    const double per_pixel = static_cast<double>(pressed_end_ - pressed_begin_) / time_area().width();
    const std::int64_t by = std::llround((pressed_.x() - at.x()) * per_pixel);
    verticalScrollBar()->setValue(pressed_scroll_ + pressed_.y() - at.y());
    show_time(pressed_begin_ + by, pressed_end_ + by);
    return;
  }
  if (drag_ == Drag::kSelect) {
    if (std::abs(at.x() - pressed_.x()) < kClickSlack && !range_) return;
    const std::int64_t other = time_at(std::clamp(at.x(), time_area().left(), viewport()->width()));
    TimeRange range{std::min(pressed_ps_, other), std::max(pressed_ps_, other), std::nullopt};
    range.rows = rows_dragged_over(pressed_, at);
    if (range.rows.size() == 1) {
      range.row = range.rows.front();
      range.rows.clear();
    }
    selected_.reset();
    select_range(range);
    return;
  }
  const auto over = span_at(at);
  if (over != hovered_) {
    hovered_ = over;
    viewport()->update();
  }
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const Drag was = std::exchange(drag_, Drag::kNone);
  viewport()->unsetCursor();
  if (was != Drag::kSelect) return;
  const QPoint at = event->position().toPoint();
  if (std::abs(at.x() - pressed_.x()) >= kClickSlack) return;
  range_.reset();
  select(span_at(at), false);
}

void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto span = span_at(event->position().toPoint());
  if (!span) return;
  range_.reset();
  select(span, false);
  fit();
}

}  // namespace trivium::gui
