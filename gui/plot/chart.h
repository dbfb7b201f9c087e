// Axes, ticks, legends and hints that all charts share.
#pragma once

#include <QWidget>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace trivium::gui {

/// A range of one axis and how its values are told.
struct Axis {
  double low = 0, high = 1;
  QString title;
  std::function<QString(double)> text;
  double unit = 1;       ///< ticks are round multiples of it
  bool seconds = false;  ///< ticks are times, all in one unit
};

/// GiB, or where all is small MiB: bytes are told in binary units, so their ticks are round there.
double byte_unit(double most_bytes);

/// What a colour means.
struct LegendEntry {
  QColor colour;
  QString text;
};

/// Draws on any painter, so that a picture can be saved as it is seen.
class Chart : public QWidget {
 public:
  explicit Chart(const QString& accessible_name, QWidget* parent = nullptr);

  /// Told where there is nothing to show.
  void set_hint(const QString& hint);

  QSize sizeHint() const override { return {520, 300}; }
  QSize minimumSizeHint() const override { return {240, 140}; }

  /// Where data is drawn. Kept until size, font or legend change: every point of a line asks for it.
  const QRectF& area() const;

 protected:
  void draw_axes(QPainter& painter, const Axis& x, const Axis& y, bool x_ticks = true) const;
  /// What colours mean, above the plot, in as many lines as it takes.
  void set_legend(std::vector<LegendEntry> entries);
  void draw_legend(QPainter& painter) const;
  void draw_hint(QPainter& painter) const;
  QPointF place(const Axis& x, const Axis& y, double vx, double vy) const;

 private:
  double left_edge() const;
  /// Left end and line of every entry, and after the last how many lines there are.
  std::vector<std::pair<double, int>> legend_places() const;

  /// The area for one size of the chart in one font.
  struct Room {
    QSize size;
    QFont font;
    QRectF area;
  };

  QString hint_;
  std::vector<LegendEntry> legend_;
  mutable std::optional<Room> room_;  // none: to be measured anew
};

}  // namespace trivium::gui
