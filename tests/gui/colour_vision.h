// How different two colours look, also to people who cannot tell all of them apart.
#pragma once

#include <QColor>
#include <array>
#include <cstdint>

namespace trivium::gui {

enum class Vision { kFull, kProtanopia, kDeuteranopia, kTritanopia };
inline constexpr std::array kVisions{Vision::kFull, Vision::kProtanopia, Vision::kDeuteranopia, Vision::kTritanopia};

/// CIE L*a*b* under D65.
struct Lab {
  double l = 0, a = 0, b = 0;
};

/// Of 0xRRGGBB in sRGB as that vision sees it: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-
/// based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15 (2009), table of severity 1.0, on linear RGB.
Lab seen(std::uint32_t colour, Vision vision);

/// CIEDE2000: G. Sharma, W. Wu, E. N. Dalal, Color Research and Application 30 (2005). 1 is just noticeable in fields
/// that touch; colours of a legend want several times as much.
double ciede2000(const Lab& x, const Lab& y);

/// The least of all visions.
double least_distance(std::uint32_t x, std::uint32_t y);

/// Of WCAG 2.2, 1.4.3: from 1 (equal) to 21 (black on white).
double contrast(const QColor& a, const QColor& b);

}  // namespace trivium::gui
