// Two parts, one above the other, that share the height by what they have to show.
#pragma once

#include <QAbstractItemView>
#include <QScrollBar>
#include <QSplitter>
#include <QTableView>
#include <algorithm>
#include <functional>
#include <utility>

namespace trivium::gui {

/// Until a hand moves it. Lives on the GUI thread.
class FittedSplitter : public QSplitter {
 public:
  explicit FittedSplitter(const QString& name) : QSplitter(Qt::Vertical) {
    setObjectName(name);
    connect(this, &QSplitter::splitterMoved, this, [this] { by_hand_ = true; });
  }

  /// Pixels that the upper part gets of so many; asked at every change of the height, and by fit().
  void set_share(std::function<int(int height)> upper) { upper_ = std::move(upper); }
  /// What is shown has changed.
  void fit() {
    const int room = height() - handleWidth();
    if (by_hand_ || !upper_ || count() < 2 || room <= 0) return;
    const int upper = std::clamp(upper_(room), 0, room);
    if (sizes().at(0) != upper) setSizes({upper, room - upper});
  }
  /// Whether its user chose the sizes, now or in an earlier window.
  bool is_by_hand() const { return by_hand_; }
  void set_by_hand() { by_hand_ = true; }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QSplitter::resizeEvent(event);
    fit();
    QMetaObject::invokeMethod(
        this, [this] { fit(); }, Qt::QueuedConnection);  // once rows have taken their height at this width
  }

 private:
  std::function<int(int)> upper_;
  bool by_hand_ = false;
};

/// Pixels of height with which a table is not scrolled; as high as for `least` rows where it has fewer.
inline int whole_height(const QAbstractItemView& view, int header, int least) {
  const QAbstractItemModel& model = *view.model();
  const int rows = model.rowCount(), line = qobject_cast<const QTableView*>(&view) != nullptr ? 1 : 0;
  int high = header + 2 * view.frameWidth() + std::max(0, least - rows) * (view.fontMetrics().height() + 4);
  for (int row = 0; row < rows; ++row) high += view.visualRect(model.index(row, 0)).height() + line;
  return high + (view.horizontalScrollBar()->isVisible() ? view.horizontalScrollBar()->height() : 0);
}

}  // namespace trivium::gui
