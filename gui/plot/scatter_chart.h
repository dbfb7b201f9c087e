// Points with a Pareto front: less is better in both directions.
#pragma once

#include <functional>
#include <optional>

#include "gui/plot/chart.h"

namespace trivium::gui {

struct ScatterPoint {
  double x = 0, y = 0;
  QString label;
  bool marked = false;  ///< drawn larger, with its name
  QString name;         ///< short, of a marked one: "A"
};

class ScatterChart : public Chart {
 public:
  using Chart::Chart;

  void set_points(std::vector<ScatterPoint> points, Axis x, Axis y);
  void set_selected(int point);
  const std::vector<std::size_t>& front() const { return front_; }
  QPointF place_of(int point) const;
  /// What is written into the picture and where: names of marked points, the label of the selected one.
  struct Label {
    QRectF box;
    QString text;
    int point = 0;
  };
  std::vector<Label> labels() const;
  /// The staircase of the Pareto front.
  QPolygonF front_line() const;
  std::optional<int> point_at(QPointF at) const;
  /// Called with the number of a point that was clicked.
  std::function<void(int)> on_select;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void show_legend();
  void draw_labels(QPainter& painter) const;
  QRectF free_place(int point, QSizeF size, const std::vector<Label>& taken) const;

  std::vector<ScatterPoint> points_;
  std::vector<std::size_t> front_;
  Axis x_, y_;
  int selected_ = -1;
};

}  // namespace trivium::gui
