// Bands of colour as pixels: the bulk of a timeline's picture.
#pragma once

#include <QImage>

#include "gui/timeline/spans/draw_list.h"

namespace trivium::gui {

constexpr int kRowGap = 1;  ///< pixels of ground below every lane

/// `share_of_b` 256ths of b, the rest of a.
QRgb mix(QRgb a, QRgb b, int share_of_b);

/// What is painted behind the bands: the page, and lanes where nothing runs.
struct StripGround {
  QRgb page = 0, lane = 0;
};

/// Writes every pixel of `image` (Format_RGB32, its device pixel ratio set): the list's bands, and the page between
/// them. What covers a column is stacked from the bottom in its own colours, a pixel for every whole height-th: mixed
/// ones would be in no legend. Where anything idles the topmost pixel shows half of it, and where anything runs the
/// lowest, however little it is.
void paint_strips(const Scene& scene, const DrawList& list, const StripGround& ground, QImage& image);

}  // namespace trivium::gui
