#include "tests/gui/colour_vision.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trivium::gui {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

constexpr double kDegree = std::numbers::pi / 180;

constexpr Matrix kFull{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix kProtanopia{
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeuteranopia{
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kTritanopia{
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};
constexpr Matrix kXyzOfRgb{{{0.4124564, 0.3575761, 0.1804375},
                            {0.2126729, 0.7151522, 0.0721750},
                            {0.0193339, 0.1191920, 0.9503041}}};  // IEC 61966-2-1
constexpr Vector kWhite{0.95047, 1, 1.08883};                     // D65

Vector times(const Matrix& m, const Vector& v) {
  Vector product{};
  for (std::size_t i = 0; i < 3; ++i) product[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return product;
}

const Matrix& matrix_of(Vision vision) {
  switch (vision) {
    case Vision::kProtanopia:
      return kProtanopia;
    case Vision::kDeuteranopia:
      return kDeuteranopia;
    case Vision::kTritanopia:
      return kTritanopia;
    default:
      return kFull;
  }
}

double linear(std::uint32_t byte) {
  const double v = byte / 255.0;
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

double lightness(double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; }

double hue(double a, double b) {
  if (a == 0 && b == 0) return 0;
  const double degrees = std::atan2(b, a) / kDegree;
  return degrees < 0 ? degrees + 360 : degrees;
}

/// The way around the circle from one hue to the other, and the hue between them.
struct Hues {
  Hues(double from, double to, bool coloured) : way(to - from), mean(from + to) {
    if (!coloured) {
      way = 0;
      return;
    }
    mean = std::abs(way) <= 180 ? mean / 2 : mean < 360 ? (mean + 360) / 2 : (mean - 360) / 2;
    if (way > 180) way -= 360;
    if (way < -180) way += 360;
  }
  double way, mean;
};

/// C⁷/(C⁷ + 25⁷), by which the formula corrects what is little coloured.
double grey_share(double chroma) {
  const double c7 = std::pow(chroma, 7);
  return std::sqrt(c7 / (c7 + 6103515625.0));
}

}  // namespace

Lab seen(std::uint32_t colour, Vision vision) {
  Vector rgb{linear(colour >> 16 & 255), linear(colour >> 8 & 255), linear(colour & 255)};
  rgb = times(matrix_of(vision), rgb);
  for (double& channel : rgb) channel = std::clamp(channel, 0.0, 1.0);
  Vector xyz = times(kXyzOfRgb, rgb);
  for (std::size_t i = 0; i < 3; ++i) xyz[i] = lightness(xyz[i] / kWhite[i]);
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

// Symbols as in the paper: C' chroma, h' hue, G the correction of a*, T, S and R the weights.
double ciede2000(const Lab& x, const Lab& y) {
  const double g = 0.5 * (1 - grey_share((std::hypot(x.a, x.b) + std::hypot(y.a, y.b)) / 2));
  const double ax = (1 + g) * x.a, ay = (1 + g) * y.a;
  const double cx = std::hypot(ax, x.b), cy = std::hypot(ay, y.b);
  const Hues h(hue(ax, x.b), hue(ay, y.b), cx * cy != 0);
  const double l = (x.l + y.l) / 2, c = (cx + cy) / 2;
  const double t = 1 - 0.17 * std::cos((h.mean - 30) * kDegree) + 0.24 * std::cos(2 * h.mean * kDegree) +
                   0.32 * std::cos((3 * h.mean + 6) * kDegree) - 0.20 * std::cos((4 * h.mean - 63) * kDegree);
  const double off = (l - 50) * (l - 50);
  const double sl = 1 + 0.015 * off / std::sqrt(20 + off), sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double turn = 30 * std::exp(-std::pow((h.mean - 275) / 25, 2));
  const double rt = -std::sin(2 * turn * kDegree) * 2 * grey_share(c);
  const double dl = (y.l - x.l) / sl, dc = (cy - cx) / sc;
  const double dh = 2 * std::sqrt(cx * cy) * std::sin(h.way / 2 * kDegree) / sh;
  return std::sqrt(dl * dl + dc * dc + dh * dh + rt * dc * dh);
}

double least_distance(std::uint32_t x, std::uint32_t y) {
  double least = 1e9;
  for (const Vision vision : kVisions) least = std::min(least, ciede2000(seen(x, vision), seen(y, vision)));
  return least;
}

double contrast(const QColor& a, const QColor& b) {
  const auto luminance = [](const QColor& c) {
    const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
  };
  const double first = luminance(a), second = luminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

}  // namespace trivium::gui
