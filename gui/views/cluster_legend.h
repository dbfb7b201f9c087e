// What the colours and links of the cluster's picture say.
#pragma once

#include <QPainter>
#include <QWidget>
#include <vector>

#include "gui/views/cluster_canvas.h"

namespace trivium::gui {

/// Chips with names, or a scale from its least to its most. Lives on the GUI thread.
class ClusterLegend : public QWidget {
 public:
  explicit ClusterLegend(QWidget* parent = nullptr);

  struct Chip {
    QColor colour;
    QString words;
    bool operator==(const Chip&) const = default;
  };
  /// Of what the canvas shows now.
  void show_canvas(const ClusterCanvas& canvas, DeviceColour colour);
  const std::vector<Chip>& chips() const { return chips_; }
  QString words() const;  ///< all of it

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  /// As many lines as chips take.
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void say(std::vector<Chip> chips, QString least, QString most);
  int line_height() const;
  /// The upper left corner of every chip.
  std::vector<QPoint> places_for(int width) const;

  std::vector<Chip> chips_;
  QString least_, most_;  // of a scale; empty: there is none
};

/// Inside a device's edge, in ink on the ground of the theme, whatever colour it has. Null: of the selected one itself.
void draw_ring(QPainter& painter, const QRectF& device, const LitGroup* group, const QPalette& palette);

/// A stroke of a group's ring for a legend, as an image within HTML.
QString ring_sample(const LitGroup& group, const QPalette& palette);

/// What the scale says of a link of that many bytes a second.
QString link_scale_words(double bandwidth);

/// How thick a link of a round bandwidth is drawn, in the lower left corner of `room`: as the scale of a map.
void draw_link_scale(QPainter& painter, const QRectF& room, double bytes_per_s_per_pixel, const QPalette& palette);

/// 1, 2 or 5 times a power of ten: the largest that is not above `value`, which is above 0.
double round_below(double value);

}  // namespace trivium::gui
