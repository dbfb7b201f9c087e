#include "gui/timeline/minimap.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

namespace trivium::gui {
namespace {

constexpr int kMostRows = 3;  // of so many timelines

}  // namespace

Minimap::Minimap(TimelineCanvas& canvas, QWidget* parent) : QWidget(parent), canvas_(canvas) {
  setAccessibleName(tr("Overview of the timeline"));
  setToolTip(tr("All of it; a press or a drag goes there"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAttribute(Qt::WA_OpaquePaintEvent);
  connect(&canvas_, &TimelineCanvas::timelines_changed, this, &Minimap::take_timelines);
  connect(&canvas_, &TimelineCanvas::time_changed, this, qOverload<>(&QWidget::update));
}

QSize Minimap::sizeHint() const {
  const int rows = std::clamp(static_cast<int>(layout_.rows().size()), 1, kMostRows);
  return {400, rows * (RowHeights{}.group + RowHeights{}.gap) + 4};
}

void Minimap::take_timelines() {
  scene_.timelines = canvas_.timelines();
  scene_.arrows = false;
  std::vector<std::shared_ptr<const SpanStore>> stores;
  std::vector<RowId> roots;
  begin_ = std::numeric_limits<std::int64_t>::max();
  end_ = std::numeric_limits<std::int64_t>::min();
  for (SceneTimeline& timeline : scene_.timelines) {
    timeline.path.reset();
    timeline.matches.reset();
    const bool has_rows = !timeline.spans->rows().empty();
    if (has_rows && std::ssize(roots) < kMostRows) roots.push_back({static_cast<int>(stores.size()), 0});
    stores.push_back(timeline.spans);
    begin_ = std::min(begin_, timeline.spans->begin());
    end_ = std::max(end_, timeline.spans->end());
  }
  if (end_ <= begin_) begin_ = 0, end_ = 1;
  layout_.set_stores(std::move(stores));
  layout_.set_listed(std::move(roots));
  stale_ = true;
  updateGeometry();
  update();
}

QRect Minimap::area() const {
  const int left = canvas_.time_area().left() + canvas_.frameWidth();
  return {left, 2, std::max(1, width() - left - (canvas_.width() - canvas_.viewport()->width()) / 2), height() - 4};
}

int Minimap::x_of(std::int64_t ps) const {
  const double share = static_cast<double>(ps - begin_) / static_cast<double>(end_ - begin_);
  return area().left() + static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * area().width()));
}

std::int64_t Minimap::time_at(int x) const {
  const double share = static_cast<double>(x - area().left()) / area().width();
  return begin_ + std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(end_ - begin_));
}

void Minimap::draw_picture() {
  const qreal ratio = devicePixelRatioF();
  const QSize size(static_cast<int>(std::lround(area().width() * ratio)),
                   static_cast<int>(std::lround(area().height() * ratio)));
  if (picture_.size() != size) picture_ = QImage(size, QImage::Format_RGB32);
  picture_.setDevicePixelRatio(ratio);
  scene_.layout = &layout_;
  build_draw_list(scene_, {begin_, end_, area().width(), 0, area().height(), size.width()}, list_);
  painter_.paint(scene_, list_, TimelineColours(palette()), font(), picture_);
  stale_ = false;
}

void Minimap::paintEvent(QPaintEvent* /*event*/) {
  const TimelineColours colours(palette());
  QPainter painter(this);
  painter.fillRect(rect(), palette().window());
  if (layout_.rows().empty()) return;
  const bool other_width = std::lround(picture_.width() / picture_.devicePixelRatio()) != area().width();
  if (stale_ || other_width) draw_picture();
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(QRect(8, 0, area().left() - 16, height()), Qt::AlignVCenter | Qt::AlignLeft, tr("All of it"));
  painter.drawImage(area().topLeft(), picture_);
  QColor shade(colours.ground);
  shade.setAlpha(165);
  const int left = x_of(canvas_.begin_ps()), right = std::max(left + 2, x_of(canvas_.end_ps()));
  painter.fillRect(QRect(area().left(), area().top(), left - area().left(), area().height()), shade);
  painter.fillRect(QRect(right, area().top(), area().right() - right + 1, area().height()), shade);
  painter.setPen(QPen(colours.text, 1));
  painter.drawRect(QRect(left, 0, std::min(right, width()) - left - 1, height() - 1));
}

void Minimap::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  stale_ = true;
}

void Minimap::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) stale_ = true;
}

void Minimap::go_to(int x) {
  if (layout_.rows().empty()) return;
  const std::int64_t length = canvas_.end_ps() - canvas_.begin_ps();
  const std::int64_t begin = time_at(x) - length / 2;
  canvas_.show_time(begin, begin + length);
}

void Minimap::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) go_to(event->position().toPoint().x());
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) != 0) go_to(event->position().toPoint().x());
}

}  // namespace trivium::gui
