// Stacked bars, side by side, with a line for the limit. Thousands of them are drawn narrow.
#pragma once

#include <functional>
#include <optional>

#include "gui/plot/chart.h"

namespace trivium::gui {

struct BarPart {
  QString name;
  QColor colour;
  QString help{};  ///< what it is, where the name alone does not say it
};

struct Bar {
  QString label;
  std::vector<double> values;  ///< one a part, 0 or more
  double limit = 0;            ///< what there is at most; 0: no line
  double sum() const;
};

/// Up to which value bars are drawn: to their limits too, unless all of them are so far below that they would not be
/// seen.
double most_shown(const std::vector<Bar>& bars);

/// Every how many bars one has its label, when as many pixels lie from bar to bar and the widest label needs so many:
/// round numbers.
int label_step(double pitch, double widest);

class BarChart : public Chart {
 public:
  using Chart::Chart;

  void set_bars(std::vector<BarPart> parts, std::vector<Bar> bars, QString y_title, std::function<QString(double)> text,
                double unit = 1);
  void set_seconds(bool seconds) { seconds_ = seconds; }  ///< values are times
  void set_selected(int bar);
  int selected() const { return selected_; }
  /// Called with the number of a bar that was clicked or reached with the arrow keys.
  std::function<void(int)> on_select;

  std::optional<int> bar_at(QPointF at) const;
  const std::vector<Bar>& bars() const { return bars_; }
  const std::vector<BarPart>& parts() const { return parts_; }
  /// The highest limit, where bars are so far below it that it is not drawn.
  std::optional<double> limit_above() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Frame {
    QRectF inside;         ///< where bars stand
    double per_value = 0;  ///< pixels
    double pitch = 0;      ///< pixels from bar to bar
  };
  Frame frame() const;
  QRectF box(const Frame& frame, std::size_t bar) const;
  /// The bars that are drawn: all, or where there are more of them than pixels the fullest of each pixel.
  std::vector<std::size_t> drawn(const Frame& frame) const;
  void draw_bar(QPainter& painter, const Frame& frame, std::size_t bar) const;
  void draw_limits(QPainter& painter, const Frame& frame) const;
  void draw_labels(QPainter& painter, const Frame& frame) const;
  void choose(int bar);

  std::vector<BarPart> parts_;
  bool seconds_ = false;
  std::vector<Bar> bars_;
  QString y_title_;
  std::function<QString(double)> text_;
  double unit_ = 1;
  double highest_ = 1;  // value at the upper end
  int selected_ = -1;
};

}  // namespace trivium::gui
