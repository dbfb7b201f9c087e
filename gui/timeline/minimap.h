// All of a timeline in a strip, and which part of it is seen.
#pragma once

#include <QImage>
#include <QWidget>

#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {

/// Stands above a canvas and as wide: every timeline in one row, what is not seen in shade. A press goes there, a drag
/// moves along. Lives on the GUI thread.
class Minimap : public QWidget {
  Q_OBJECT

 public:
  explicit Minimap(TimelineCanvas& canvas, QWidget* parent = nullptr);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }
  int x_of(std::int64_t ps) const;
  std::int64_t time_at(int x) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  void take_timelines();
  void draw_picture();
  QRect area() const;
  void go_to(int x);

  TimelineCanvas& canvas_;
  RowLayout layout_;
  Scene scene_;
  DrawList list_;
  TimelinePainter painter_;
  QImage picture_;
  bool stale_ = true;
  std::int64_t begin_ = 0, end_ = 1;
};

}  // namespace trivium::gui
