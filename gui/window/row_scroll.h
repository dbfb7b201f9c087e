// A scroll area for forms: no higher than its form, and it ends between two rows.
#pragma once

#include <QScrollArea>

namespace trivium::gui {

/// Never higher than what its widget fills. Where its widget is higher than the area, the area is cut short by the row
/// that would be seen in part only.
class RowScroll : public QScrollArea {
  Q_OBJECT

 public:
  using QScrollArea::QScrollArea;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void end_between_rows();
  void fit_height();
  int margin_ = 0;  // pixels below
};

}  // namespace trivium::gui
