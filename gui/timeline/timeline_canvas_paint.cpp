// What a timeline looks like: the picture, kept while only the pointer or the selection moves, and what lies over it.
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {
namespace {

constexpr int kIndent = 12;
constexpr int kTickApart = 96;

QString text_of(const std::string& text) { return QString::fromStdString(text); }

}  // namespace

void TimelineCanvas::draw_picture() {
  const QRect area = time_area();
  const qreal ratio = viewport()->devicePixelRatioF();
  const QSize size(static_cast<int>(std::lround(area.width() * ratio)),
                   static_cast<int>(std::lround(area.height() * ratio)));
  if (picture_.size() != size) picture_ = QImage(size, QImage::Format_RGB32);
  picture_.setDevicePixelRatio(ratio);
  const Viewport view{begin_, end_, area.width(), verticalScrollBar()->value(), area.height(), size.width()};
  const bool hidden = list_.arrows_hidden;
  build_draw_list(scene_, view, list_);
  if (list_.arrows_hidden != hidden) Q_EMIT arrows_changed();
  QFont small = font();
  small.setPixelSize(11);
  painter_.paint(scene_, list_, TimelineColours(palette()), small, picture_);
  stale_ = false;
}

void TimelineCanvas::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(viewport());
  paint_to(painter);
}

void TimelineCanvas::paint_to(QPainter& painter) {
  const TimelineColours colours(palette());
  const bool empty = std::all_of(scene_.timelines.begin(), scene_.timelines.end(),
                                 [](const SceneTimeline& timeline) { return timeline.spans->size() == 0; });
  if (empty) {
    painter.fillRect(viewport()->rect(), colours.ground);
    painter.setPen(colours.faint);
    painter.drawText(viewport()->rect().adjusted(40, 0, -40, 0), Qt::AlignCenter | Qt::TextWordWrap, hint_);
    return;
  }
  if (stale_) draw_picture();
  painter.fillRect(0, 0, viewport()->width(), time_area().top(), colours.ground);
  painter.drawImage(time_area().topLeft(), picture_);
  draw_ruler(painter, colours);
  draw_row_names(painter, colours);
  draw_overlay(painter, colours);
  draw_marks(painter, colours);
}

void TimelineCanvas::draw_ruler(QPainter& painter, const TimelineColours& colours) const {
  const QRect area = time_area();
  const QRect ruler(area.left(), 0, area.width(), area.top());
  const auto per_pixel = static_cast<double>(end_ - begin_) / area.width();
  const std::int64_t origin = first_ps();
  painter.setPen(colours.line);
  painter.drawLine(0, area.top() - 1, viewport()->width(), area.top() - 1);
  std::vector<Tick> marks = ticks(begin_ - origin, end_ - origin, std::llround(per_pixel * kTickApart));
  if (!marks.empty()) {  // many decimals need more room
    const int wide = painter.fontMetrics().horizontalAdvance(text_of(marks.back().text)) + kTickApart / 4;
    if (wide > kTickApart) marks = ticks(begin_ - origin, end_ - origin, std::llround(per_pixel * wide));
  }
  for (const Tick& tick : marks) {
    const int x = x_of(tick.ps + origin);
    painter.setPen(colours.line);
    painter.drawLine(x, ruler.bottom() - 5, x, ruler.bottom());
    const int width = painter.fontMetrics().horizontalAdvance(text_of(tick.text));
    const int left = std::clamp(x - width / 2, ruler.left(), std::max(ruler.left(), ruler.right() - width - 2));
    painter.setPen(colours.faint);
    painter.drawText(left, ruler.bottom() - 8, text_of(tick.text));
  }
  for (const SceneTimeline& timeline : scene_.timelines) {  // where training steps begin
    if (timeline.spans->step_starts().size() < 2) continue;
    painter.setPen(QPen(colours.faint, 1, Qt::DashLine));
    for (const std::int64_t start : timeline.spans->step_starts()) {
      if (start > begin_ && start < end_) painter.drawLine(x_of(start), area.top(), x_of(start), area.bottom());
    }
  }
  painter.setPen(colours.text);
  painter.drawText(QRect(8, 0, area.left() - 16, area.top() - 1), Qt::AlignVCenter | Qt::AlignLeft,
                   text_of(time_text(end_ - begin_)) + tr(" shown"));
}

void TimelineCanvas::draw_row_names(QPainter& painter, const TimelineColours& colours) const {
  const QRect area = time_area();
  const int scroll = verticalScrollBar()->value();
  painter.save();
  painter.setClipRect(QRect(0, area.top(), area.left(), area.height()));
  painter.fillRect(QRect(0, area.top(), area.left(), area.height()), colours.ground);
  const auto [first, last] = layout_.rows_between(scroll, scroll + area.height());
  QFont small = font();
  small.setPixelSize(12);
  QFont bold = small;
  bold.setBold(true);
  for (std::size_t r = first; r < last; ++r) {
    const PlacedRow& placed = layout_.rows()[r];
    const Row& row = scene_.timelines[static_cast<std::size_t>(placed.id.timeline)]
                         .spans->rows()[static_cast<std::size_t>(placed.id.row)];
    const int y = area.top() + placed.y - scroll, x = 6 + placed.depth * kIndent;
    if (placed.foldable) {
      const int middle = y + placed.height / 2;
      const QPolygon handle =
          placed.folded ? QPolygon({QPoint(x, middle - 4), QPoint(x + 5, middle), QPoint(x, middle + 4)})
                        : QPolygon({QPoint(x - 1, middle - 2), QPoint(x + 7, middle - 2), QPoint(x + 3, middle + 3)});
      painter.setPen(Qt::NoPen);
      painter.setBrush(colours.faint);
      painter.drawPolygon(handle);
    }
    QString name = text_of(row.name);
    if (placed.depth == 0) {
      name = names_[static_cast<std::size_t>(placed.id.timeline)];
      if (!row.name.empty() && name != text_of(row.name)) name += " · " + text_of(row.name);
    }
    painter.setFont(placed.lane ? small : bold);
    painter.setPen(placed.lane ? colours.faint : colours.text);
    const QRect place(x + 11, y, area.left() - x - 15, placed.height);
    painter.drawText(place, Qt::AlignVCenter | Qt::AlignLeft,
                     painter.fontMetrics().elidedText(name, Qt::ElideRight, place.width()));
  }
  painter.restore();
  painter.setPen(colours.line);
  painter.drawLine(area.left() - 1, 0, area.left() - 1, viewport()->height());
}

QRectF TimelineCanvas::box_of(SpanId id) const {
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(id.timeline)].spans;
  const std::uint32_t track = store.track_of(id.span);
  const std::int32_t row = store.tracks()[track].row;
  const PlacedRow* placed = layout_.visible_row_of({id.timeline, row});
  if (placed == nullptr) return {};
  const Row& lane = store.rows()[static_cast<std::size_t>(row)];
  double y = placed->y, height = placed->height;
  if (placed->lane) {
    height /= lane.tracks;
    y += height * (track - lane.first_track);
  }
  const int left = std::max(time_area().left() - 2, x_of(store.start_of(id.span)));
  const int right = std::min(viewport()->width() + 2, x_of(store.end_of(id.span)));
  return {static_cast<double>(left), time_area().top() + y - verticalScrollBar()->value(),
          static_cast<double>(std::max(1, right - left)), height - 1};
}

void TimelineCanvas::draw_overlay(QPainter& painter, const TimelineColours& colours) const {
  painter.save();
  painter.setClipRect(time_area());
  if (range_) {
    QColor shade = colours.selection;
    shade.setAlpha(60);
    QRect chosen(x_of(range_->begin_ps), time_area().top(), 0, time_area().height());
    chosen.setRight(std::max(chosen.left(), x_of(range_->end_ps) - 1));
    if (range_->row) {
      if (const PlacedRow* row = layout_.visible_row_of(*range_->row)) {
        chosen.setTop(time_area().top() + row->y - verticalScrollBar()->value());
        chosen.setHeight(row->height);
      }
    }
    painter.fillRect(chosen, shade);
    painter.setPen(colours.selection);
    painter.drawLine(chosen.topLeft(), chosen.bottomLeft());
    painter.drawLine(chosen.topRight(), chosen.bottomRight());
  }
  painter.setBrush(Qt::NoBrush);
  const auto outline = [&](const std::optional<SpanId>& id, const QColor& colour, int width) {
    if (!id) return;
    painter.setPen(QPen(colour, width));
    painter.drawRect(box_of(*id).adjusted(0, 0, -1, 0));
  };
  outline(hovered_, colours.text, 1);
  outline(selected_, colours.selection, 2);
  painter.restore();
}

}  // namespace trivium::gui
