#include "gui/timeline/timeline_canvas.h"

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/timeline/spans/time_text.h"

namespace trivium::gui {
namespace {

constexpr double kMostPins = 0.5;  // of the height

/// Whether both have as many rows, and the first of the same name.
bool are_alike(const std::vector<SceneTimeline>& a, const std::vector<SceneTimeline>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SceneTimeline& one, const SceneTimeline& other) {
    const auto &rows = one.spans->rows(), &others = other.spans->rows();
    return rows.size() == others.size() && (rows.empty() || rows[0].name == others[0].name);
  });
}

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent) : QAbstractScrollArea(parent) {
  setAccessibleName(tr("Timeline"));
  setAccessibleDescription(tr("Rows of ranks and lanes over time. W and S zoom, A and D pan, F fits."));
  setFocusPolicy(Qt::StrongFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);  // every pixel is painted: no need to clear them first
  verticalScrollBar()->setSingleStep(RowHeights{}.track);
  scene_.layout = &layout_;
  pins_.set_listed(std::vector<RowId>{});
}

void TimelineCanvas::set_timelines(std::vector<SceneTimeline> timelines, std::vector<QString> names) {
  const bool everything = scene_.timelines.empty() || shows_all();
  const bool rows_stay = are_alike(scene_.timelines, timelines);
  if (range_ && range_->row && !row_is_alike(*range_->row, timelines)) range_.reset();
  if (range_ && !std::all_of(range_->rows.begin(), range_->rows.end(),
                             [&](const RowId& row) { return row_is_alike(row, timelines); })) {
    range_.reset();
  }
  scene_.timelines = std::move(timelines);
  names_ = std::move(names);
  paths_.clear();
  std::vector<std::shared_ptr<const SpanStore>> stores;
  for (SceneTimeline& timeline : scene_.timelines) {
    stores.push_back(timeline.spans);
    paths_.push_back(timeline.path);
    if (!path_shown_) timeline.path.reset();
  }
  pins_.set_stores(stores);
  measure_names();
  if (layout_.set_stores(std::move(stores)) && folds_to_fit_) {
    folded_by_hand_ = false;
    layout_.fold_to(time_area().height());
  }
  selected_.reset();
  hovered_.reset();
  if (everything || begin_ > last_ps()) {
    range_.reset();
    show_all();
  }
  drop_far_marks();
  history_.clear();
  Q_EMIT timelines_changed();
  rows_changed();
  if (!rows_stay) verticalScrollBar()->setValue(0);  // a place among other rows means nothing here
  Q_EMIT selection_changed();
  Q_EMIT history_changed();
}

bool TimelineCanvas::row_is_alike(const RowId& id, const std::vector<SceneTimeline>& others) const {
  const auto timeline = static_cast<std::size_t>(id.timeline), row = static_cast<std::size_t>(id.row);
  if (timeline >= others.size() || row >= others[timeline].spans->rows().size()) return false;
  return others[timeline].spans->rows()[row].name == scene_.timelines[timeline].spans->rows()[row].name;
}

void TimelineCanvas::set_matches(std::vector<std::shared_ptr<const std::vector<std::uint32_t>>> matches) {
  for (std::size_t t = 0; t < scene_.timelines.size(); ++t) {
    scene_.timelines[t].matches = t < matches.size() ? matches[t] : nullptr;
  }
  redraw();
}

void TimelineCanvas::set_path_shown(bool shown) {
  path_shown_ = shown;
  for (std::size_t t = 0; t < scene_.timelines.size(); ++t) scene_.timelines[t].path = shown ? paths_[t] : nullptr;
  redraw();
}

void TimelineCanvas::set_arrows_shown(bool shown) {
  scene_.arrows = shown;
  redraw();
}

void TimelineCanvas::set_hint(const QString& hint) {
  hint_ = hint;
  viewport()->update();
}

std::int64_t TimelineCanvas::first_ps() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const SceneTimeline& timeline : scene_.timelines) first = std::min(first, timeline.spans->begin());
  return scene_.timelines.empty() ? 0 : first;
}

std::int64_t TimelineCanvas::last_ps() const {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const SceneTimeline& timeline : scene_.timelines) last = std::max(last, timeline.spans->end());
  return scene_.timelines.empty() ? kShortestView : std::max(last, first_ps() + kShortestView);
}

QRect TimelineCanvas::time_area() const {
  const int top = kRuler + pins_height();
  return {names_width_, top, std::max(1, viewport()->width() - names_width_), std::max(1, viewport()->height() - top)};
}

int TimelineCanvas::pins_height() const {
  return std::min(pins_.height(), static_cast<int>(viewport()->height() * kMostPins));
}

bool TimelineCanvas::is_pinned(const RowId& row) const {
  return std::find(pins_.listed()->begin(), pins_.listed()->end(), row) != pins_.listed()->end();
}

void TimelineCanvas::set_pinned(const RowId& row, bool pinned) {
  std::vector<RowId> rows = *pins_.listed();
  std::erase(rows, row);
  if (pinned) rows.push_back(row);
  pins_.set_listed(std::move(rows));
  measure_names();
  rows_changed();
}

void TimelineCanvas::unpin_all() {
  pins_.set_listed(std::vector<RowId>{});
  measure_names();
  rows_changed();
}

void TimelineCanvas::filter_rows(const QString& words) {
  layout_.set_filter(words.toStdString());
  rows_changed();
  verticalScrollBar()->setValue(0);
}

Stretch TimelineCanvas::stretch(int timeline) const {
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(timeline)].spans;
  if (!range_) return {store.begin(), store.end(), std::nullopt};
  Stretch made{range_->begin_ps, range_->end_ps, std::nullopt};
  if (range_->row) made.row = range_->row->row;
  for (const RowId& row : range_->rows) made.rows.push_back(row.row);
  return made;
}

std::int64_t TimelineCanvas::time_at(double x) const {
  return TimeScale{begin_, end_, time_area().width()}.time_at(x - names_width_);
}

int TimelineCanvas::x_of(std::int64_t ps) const {
  const double x = TimeScale{begin_, end_, time_area().width()}.x_of(ps);
  return names_width_ + static_cast<int>(std::lround(std::clamp(x, -1e6, 1e6)));
}

void TimelineCanvas::show_time(std::int64_t begin_ps, std::int64_t end_ps) {
  const std::int64_t first = first_ps(), last = last_ps();
  const auto margin = std::max<std::int64_t>(1, std::llround(static_cast<double>(last - first) * kMargin));
  const std::int64_t longest = last - first + 2 * margin;
  const std::int64_t length = std::clamp(end_ps - begin_ps, std::min(kShortestView, longest), longest);
  begin_ = std::clamp(begin_ps, first - margin, last + margin - length);
  end_ = begin_ + length;
  redraw();
  Q_EMIT time_changed();
}

void TimelineCanvas::zoom(double factor, double x) {
  const auto length = static_cast<double>(end_ - begin_);
  const double share = std::clamp((x - names_width_) / time_area().width(), 0.0, 1.0);
  const double longest = static_cast<double>(last_ps() - first_ps()) * 2;
  const double wanted = std::clamp(length / factor, static_cast<double>(kShortestView), std::max(longest, 1e3));
  const std::int64_t at = begin_ + std::llround(length * share);
  const std::int64_t begin = at - std::llround(wanted * share);
  show_time(begin, begin + std::llround(wanted));
}

void TimelineCanvas::pan(double share) {
  const std::int64_t by = std::llround(static_cast<double>(end_ - begin_) * share);
  show_time(begin_ + by, end_ + by);
}

void TimelineCanvas::select(std::optional<SpanId> span, bool bring_into_view) {
  selected_ = span;
  if (span && bring_into_view) {
    const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(span->timeline)].spans;
    const std::int32_t row = store.tracks()[store.track_of(span->span)].row;
    const SeenPart before = seen();
    layout_.reveal({span->timeline, row});
    rows_changed();
    const PlacedRow* placed = layout_.visible_row_of({span->timeline, row});
    const int above = placed->y - verticalScrollBar()->value();
    if (above < 0 || above + placed->height > time_area().height()) {
      verticalScrollBar()->setValue(placed->y - time_area().height() / 2);
    }
    const std::int64_t start = store.start_of(span->span), stop = store.end_of(span->span);
    const std::int64_t length = end_ - begin_;
    const bool tiny = static_cast<double>(stop - start) < static_cast<double>(length) / time_area().width() * 2;
    if (start < begin_ || stop > end_ || tiny) {
      const std::int64_t wanted = tiny ? std::max<std::int64_t>(kShortestView, (stop - start) * 16) : length;
      const std::int64_t middle = start + (stop - start) / 2;
      show_time(middle - wanted / 2, middle + wanted / 2);
    }
    if (!(seen() == before)) history_.jump(before, seen());
    Q_EMIT history_changed();
  }
  viewport()->update();
  Q_EMIT selection_changed();
}

void TimelineCanvas::select_range(std::optional<TimeRange> range) {
  range_ = range;
  viewport()->update();
  Q_EMIT selection_changed();
}

void TimelineCanvas::toggle_fold(RowId row) {
  folded_by_hand_ = true;
  layout_.set_folded(row, !layout_.is_folded(row));
  rows_changed();
}

void TimelineCanvas::rows_changed() {
  layout_.set_room(time_area().height());
  QScrollBar* bar = verticalScrollBar();
  bar->setPageStep(time_area().height());
  bar->setRange(0, std::max(0, layout_.height() - time_area().height()));
  redraw();
}

TimelineCanvas::RowPlace TimelineCanvas::place_at(QPoint position) const {
  if (position.y() < kRuler) return {};
  const bool pinned = position.y() < time_area().top();
  const int page_top = pinned ? kRuler : time_area().top() - verticalScrollBar()->value();
  const PlacedRow* row = (pinned ? pins_ : layout_).row_at(position.y() - page_top);
  return {row, row != nullptr ? page_top + row->y : 0};
}

std::optional<SpanId> TimelineCanvas::span_at(QPoint position) const {
  const auto [row, top] = place_at(position);
  if (row == nullptr || !row->lane || position.x() < names_width_) return std::nullopt;
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(row->id.timeline)].spans;
  const Row& lane = store.rows()[static_cast<std::size_t>(row->id.row)];
  if (lane.tracks == 0) return std::nullopt;
  const int below = position.y() - top;
  const auto track = std::min(static_cast<std::uint32_t>(below) * lane.tracks / static_cast<std::uint32_t>(row->height),
                              lane.tracks - 1);
  const std::uint32_t span = store.span_at(lane.first_track + track, time_at(position.x() + 0.5));
  if (span == kNoSpan) return std::nullopt;
  return SpanId{row->id.timeline, span};
}

QString TimelineCanvas::describe(QPoint position) const {
  const PlacedRow* row = row_at(position);
  if (row == nullptr) return {};
  const SpanStore& store = *scene_.timelines[static_cast<std::size_t>(row->id.timeline)].spans;
  const QString name = QString::fromStdString(store.rows()[static_cast<std::size_t>(row->id.row)].name);
  if (position.x() < names_width_) return name;
  const std::int64_t from = time_at(position.x()), to = time_at(position.x() + 1);
  const auto span = span_at(position);
  const bool wide = span && store.end_of(span->span) - store.start_of(span->span) >= 2 * (to - from);
  if (wide) {
    const std::int64_t start = store.start_of(span->span), stop = store.end_of(span->span);
    const CategoryInfo& category = store.categories()[static_cast<std::size_t>(store.category_of(span->span))];
    return tr("%1\n%2\n%3, from %4")
        .arg(QString::fromStdString(store.name_of(span->span)), QString::fromStdString(category.name),
             QString::fromStdString(time_text(stop - start)), QString::fromStdString(time_text(start - store.begin())));
  }
  // Pixels hold many: what they are made of.
  const Breakdown part = break_down(store, row->id.row, from, std::max(to, from + 1));
  if (part.tracks == 0) return name;
  const auto percent = [&](std::int64_t ps) {
    return QString::number(100.0 * static_cast<double>(ps) / static_cast<double>(part.total_ps()), 'f', 1) + " %";
  };
  QString text = tr("%1, %2 a pixel").arg(name, QString::fromStdString(time_text(to - from)));
  for (const Share& share : part.shares) {
    if (share.ps == 0) continue;
    text += "\n" + QString::fromStdString(store.categories()[static_cast<std::size_t>(share.category)].name) + ": " +
            percent(share.ps);
  }
  return text + "\n" + tr("idle: %1").arg(percent(part.idle_ps));
}

void TimelineCanvas::redraw() {
  stale_ = true;
  viewport()->update();
}

void TimelineCanvas::scrollContentsBy(int /*dx*/, int /*dy*/) { redraw(); }

void TimelineCanvas::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  give_names_room();
  if (folds_to_fit_ && !folded_by_hand_) layout_.fold_to(time_area().height());
  rows_changed();
}

void TimelineCanvas::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange) measure_names();
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) redraw();
}

bool TimelineCanvas::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString text = describe(help->pos());
    text.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), text, viewport());
    return true;
  }
  if (event->type() == QEvent::Leave && hovered_) {
    hovered_.reset();
    viewport()->update();
  }
  return QAbstractScrollArea::viewportEvent(event);
}

}  // namespace trivium::gui
