#include "gui/timeline/timeline_view.h"

#include <QPainter>

namespace trivium::gui {

TimelineView::TimelineView(QWidget* parent) : QWidget(parent) { setAccessibleName("Timeline"); }

void TimelineView::set_timelines(std::vector<NamedTimeline> timelines) {
  timelines_ = std::move(timelines);
  update();
}

void TimelineView::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  QString text = timelines_.empty() ? "Open a plan to see its timeline." : QString();
  for (const NamedTimeline& timeline : timelines_) {
    text += QString("%1: %2 events\n").arg(QString::fromStdString(timeline.name)).arg(timeline.timeline->events.size());
  }
  painter.drawText(rect(), Qt::AlignCenter, text);
}

}  // namespace trivium::gui
