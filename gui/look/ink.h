// What is written on a colour.
#pragma once

#include <QColor>
#include <cmath>

namespace trivium::gui {

/// Black or white, whichever reads better on the ground.
inline QColor ink_on(const QColor& ground) {
  // Relative luminance of WCAG 2.2; at this one black and white have the same contrast.
  constexpr double kEven = 0.179;
  const auto linear = [](float v) { return v <= 0.04045F ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  const double light =
      0.2126 * linear(ground.redF()) + 0.7152 * linear(ground.greenF()) + 0.0722 * linear(ground.blueF());
  return light > kEven ? QColor(Qt::black) : QColor(Qt::white);
}

}  // namespace trivium::gui
