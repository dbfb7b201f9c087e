// What a timeline looks like: the picture, kept while only the pointer or the selection moves, and what lies over it.
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {
namespace {

constexpr int kIndent = 12;
constexpr int kAroundName = 6 + 15 + 1;  // pixels: the margin, the handle, what is left free behind it
constexpr int kTickApart = 96;

QString text_of(const std::string& text) { return QString::fromStdString(text); }

}  // namespace

void TimelineCanvas::draw_picture() {
  const bool hidden = list_.arrows_hidden;
  draw_part(layout_, verticalScrollBar()->value(), time_area().height(), list_, picture_);
  if (list_.arrows_hidden != hidden) Q_EMIT arrows_changed();
  if (pins_height() > 0) draw_part(pins_, 0, pins_height(), pins_list_, pins_picture_);
  stale_ = false;
}

void TimelineCanvas::draw_part(const RowLayout& rows, int top, int height, DrawList& list, QImage& picture) {
  const int width = time_area().width();
  const qreal ratio = viewport()->devicePixelRatioF();
  const QSize size(static_cast<int>(std::lround(width * ratio)), static_cast<int>(std::lround(height * ratio)));
  if (picture.size() != size) picture = QImage(size, QImage::Format_RGB32);
  picture.setDevicePixelRatio(ratio);
  scene_.layout = &rows;
  build_draw_list(scene_, {begin_, end_, width, top, height, size.width()}, list);
  QFont small = font();
  small.setPixelSize(11);
  painter_.paint(scene_, list, TimelineColours(palette()), small, picture);
  scene_.layout = &layout_;
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
  draw_row_names(painter, colours, layout_, QRect(0, time_area().top(), time_area().left(), time_area().height()),
                 verticalScrollBar()->value());
  draw_pins(painter, colours);
  painter.setPen(colours.line);
  painter.drawLine(time_area().left() - 1, 0, time_area().left() - 1, viewport()->height());
  draw_overlay(painter, colours);
  draw_marks(painter, colours);
}

// A line below tells them from the rows that scroll.
void TimelineCanvas::draw_pins(QPainter& painter, const TimelineColours& colours) {
  if (pins_height() == 0) return;
  const QRect area = time_area();
  painter.drawImage(QPoint(area.left(), kRuler), pins_picture_);
  draw_row_names(painter, colours, pins_, QRect(0, kRuler, area.left(), pins_height()), 0);
  painter.setPen(QPen(colours.text, 1));
  painter.drawLine(0, area.top() - 1, viewport()->width(), area.top() - 1);
}

void TimelineCanvas::draw_ruler(QPainter& painter, const TimelineColours& colours) const {
  const QRect area = time_area();
  const QRect ruler(area.left(), 0, area.width(), kRuler);
  const auto per_pixel = static_cast<double>(end_ - begin_) / area.width();
  const std::int64_t origin = first_ps();
  painter.setPen(colours.line);
  painter.drawLine(0, ruler.bottom(), viewport()->width(), ruler.bottom());
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
  painter.drawText(QRect(8, 0, area.left() - 16, kRuler - 1), Qt::AlignVCenter | Qt::AlignLeft,
                   text_of(time_text(end_ - begin_)) + tr(" shown"));
}

QString TimelineCanvas::title_of(const RowId& id, bool pinned) const {
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(id.timeline)].spans;
  const Row& row = store.rows()[static_cast<std::size_t>(id.row)];
  QString name = text_of(row.name);
  if (row.parent == kNoRow) {
    name = names_[static_cast<std::size_t>(id.timeline)];
    if (!row.name.empty() && name != text_of(row.name)) name += " · " + text_of(row.name);
  }
  if (!pinned || row.kind != RowKind::kLane) return name;
  return text_of(store.rows()[static_cast<std::size_t>(store.device_of(id.row))].name) + " · " + name;
}

QFont TimelineCanvas::font_of_title(QFont font, bool lane) {
  font.setPixelSize(12);
  font.setBold(!lane);
  return font;
}

// Of very many rows those with more letters than the ones before: names of one kind differ in their numbers alone.
void TimelineCanvas::measure_names() {
  constexpr std::size_t kMany = 2000;
  const QFontMetrics lane(font_of_title(font(), true)), group(font_of_title(font(), false));
  std::vector<std::size_t> letters;
  std::size_t measured = 0;
  widest_name_ = 0;
  const auto measure = [&](const RowId& id, bool pinned) {
    const Row& row =
        scene_.timelines[static_cast<std::size_t>(id.timeline)].spans->rows()[static_cast<std::size_t>(id.row)];
    const auto depth = static_cast<std::size_t>(pinned ? 0 : row.depth);
    letters.resize(std::max(letters.size(), depth + 1));
    if (measured++ > kMany && row.name.size() <= letters[depth]) return;
    letters[depth] = std::max(letters[depth], row.name.size());
    const int wide = (row.kind == RowKind::kLane ? lane : group).horizontalAdvance(title_of(id, pinned));
    widest_name_ = std::max(widest_name_, wide + kAroundName + static_cast<int>(depth) * kIndent);
  };
  for (std::size_t t = 0; t < scene_.timelines.size(); ++t) {
    const auto rows = static_cast<std::int32_t>(scene_.timelines[t].spans->rows().size());
    for (std::int32_t r = 0; r < rows; ++r) measure({static_cast<int>(t), r}, false);
  }
  for (const RowId& id : *pins_.listed()) measure(id, true);
  give_names_room();
}

void TimelineCanvas::give_names_room() {
  constexpr int kLeast = 130, kUsual = 272;  // pixels; the length that is shown stands above them
  constexpr double kMost = 0.25;             // of the width, where that is more than usual
  const int most = std::max(kUsual, static_cast<int>(kMost * viewport()->width()));
  const int wide = std::clamp(widest_name_, kLeast, most);
  if (wide == std::exchange(names_width_, wide)) return;
  redraw();
  Q_EMIT time_changed();  // the scale of time begins elsewhere
}

void TimelineCanvas::draw_row_names(QPainter& painter, const TimelineColours& colours, const RowLayout& rows,
                                    const QRect& place, int scroll) const {
  painter.save();
  painter.setClipRect(place);
  painter.fillRect(place, colours.ground);
  const auto [first, last] = rows.rows_between(scroll, scroll + place.height());
  for (std::size_t r = first; r < last; ++r) {
    const PlacedRow& placed = rows.rows()[r];
    const int y = place.top() + placed.y - scroll, x = 6 + placed.depth * kIndent;
    if (placed.foldable) {
      const int middle = y + placed.height / 2;
      const QPolygon handle =
          placed.folded ? QPolygon({QPoint(x, middle - 4), QPoint(x + 5, middle), QPoint(x, middle + 4)})
                        : QPolygon({QPoint(x - 1, middle - 2), QPoint(x + 7, middle - 2), QPoint(x + 3, middle + 3)});
      painter.setPen(Qt::NoPen);
      painter.setBrush(colours.faint);
      painter.drawPolygon(handle);
    }
    painter.setFont(font_of_title(font(), placed.lane));
    painter.setPen(placed.lane ? colours.faint : colours.text);
    const QString name = title_of(placed.id, &rows == &pins_);
    const QRect room(x + 11, y, place.width() - x - 15, placed.height);
    painter.drawText(room, Qt::AlignVCenter | Qt::AlignLeft,
                     painter.fontMetrics().elidedText(name, Qt::ElideRight, room.width()));
  }
  painter.restore();
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
    std::vector<RowId> rows = range_->rows;
    if (range_->row) rows.push_back(*range_->row);
    std::vector<QRect> parts;
    for (const RowId& id : rows) {
      const PlacedRow* row = layout_.visible_row_of(id);
      if (row == nullptr) continue;
      QRect part = chosen;
      part.setTop(time_area().top() + row->y - verticalScrollBar()->value());
      part.setHeight(row->height);
      parts.push_back(part);
    }
    if (parts.empty()) parts.push_back(chosen);
    painter.setPen(colours.selection);
    for (const QRect& part : parts) {
      painter.fillRect(part, shade);
      painter.drawLine(part.topLeft(), part.bottomLeft());
      painter.drawLine(part.topRight(), part.bottomRight());
    }
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
