// Turns a draw list into pixels.
#pragma once

#include <QImage>
#include <QPainter>
#include <QPalette>
#include <memory>

#include "gui/timeline/glyphs.h"
#include "gui/timeline/spans/draw_list.h"

namespace trivium::gui {

QColor colour_of(const CategoryInfo& category);

/// Colours other than those of the categories, from the palette in use: light or dark.
struct TimelineColours {
  explicit TimelineColours(const QPalette& palette);
  QRgb ground = 0, lane = 0;  ///< of the page, and of a lane where nothing runs
  QColor text, faint, line, path, match, arrow, selection;
};

/// Keeps the memory that drawing needs between frames. Lives on the GUI thread.
class TimelinePainter {
 public:
  /// Draws into `image` (Format_RGB32, its device pixel ratio set, as wide as the list's columns).
  void paint(const Scene& scene, const DrawList& list, const TimelineColours& colours, const QFont& font,
             QImage& image);

 private:
  void paint_frames(const Scene& scene, const DrawList& list, const TimelineColours& colours, QImage& image);
  static void paint_marks(const DrawList& list, const TimelineColours& colours, QImage& image);
  static void paint_arrows(const DrawList& list, const TimelineColours& colours, QPainter& painter);

  std::unique_ptr<Glyphs> glyphs_;
  QFont font_;
  qreal ratio_ = 0;
};

}  // namespace trivium::gui
