#include "gui/window/row_scroll.h"

#include <QEvent>
#include <QLayout>
#include <algorithm>

namespace trivium::gui {

void RowScroll::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  end_between_rows();
}

bool RowScroll::eventFilter(QObject* watched, QEvent* event) {
  const bool done = QScrollArea::eventFilter(watched, event);
  if (watched == widget() && (event->type() == QEvent::LayoutRequest || event->type() == QEvent::Resize)) {
    QMetaObject::invokeMethod(
        this,
        [this] {
          fit_height();
          end_between_rows();
        },
        Qt::QueuedConnection);  // once rows have places
  }
  return done;
}

// What it need not have is left to the form below it.
void RowScroll::fit_height() {
  if (widget() == nullptr || widget()->layout() == nullptr) return;
  QLayout& rows = *widget()->layout();
  const int wide = viewport()->width();
  const int high = rows.hasHeightForWidth() ? rows.totalHeightForWidth(wide) : rows.totalSizeHint().height();
  if (high > 0 && high != maximumHeight()) setMaximumHeight(high);
}

void RowScroll::end_between_rows() {
  if (widget() == nullptr) return;
  const int high = contentsRect().height();
  int end = high;
  if (widget()->height() > high) {
    for (const QWidget* row : widget()->findChildren<QWidget*>(Qt::FindDirectChildrenOnly)) {
      const QRect place = row->geometry();
      if (!row->isHidden() && place.top() < high && place.bottom() >= high) end = std::min(end, place.top());
    }
  }
  const int margin = end > high / 2 ? high - end : 0;  // a row as high as half the area is no row
  if (margin == margin_) return;
  margin_ = margin;
  setViewportMargins(0, 0, 0, margin_);
}

}  // namespace trivium::gui
