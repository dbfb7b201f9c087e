#include "gui/timeline/glyphs.h"

#include <QFontMetrics>
#include <QPainter>
#include <algorithm>

namespace trivium::gui {

Glyphs::Glyphs(const QFont& font) : font_(font) {
  const QFontMetrics metrics(font_);
  height_ = metrics.height();
  ascent_ = metrics.ascent();
}

const Glyphs::Glyph& Glyphs::glyph(QChar letter) {
  if (letter.unicode() < ascii_.size()) {
    Glyph& known = ascii_[letter.unicode()];
    if (known.advance == 0) known = make(letter);
    return known;
  }
  const auto known = others_.constFind(letter);
  return known != others_.constEnd() ? *known : *others_.insert(letter, make(letter));
}

int Glyphs::width(const QString& text) {
  int sum = 0;
  for (const QChar letter : text) sum += glyph(letter).advance;
  return sum;
}

Glyphs::Glyph Glyphs::make(QChar letter) const {
  Glyph made;
  made.advance = std::max(1, QFontMetrics(font_).horizontalAdvance(letter));
  // Room on the right for letters that lean over their advance.
  QImage drawn(made.advance + height_ / 4, height_, QImage::Format_ARGB32_Premultiplied);
  drawn.fill(Qt::transparent);
  QPainter painter(&drawn);
  painter.setFont(font_);
  painter.setPen(Qt::white);
  painter.drawText(0, ascent_, QString(letter));
  painter.end();
  made.mask = drawn.convertToFormat(QImage::Format_Alpha8);
  return made;
}

void Glyphs::draw(QImage& image, int x, int top, int right, const QString& text, QRgb colour) {
  int width = 0;
  qsizetype fits = 0;
  const int room = right - x, dots = glyph(QChar(0x2026)).advance;
  qsizetype fits_with_dots = 0;
  for (; fits < text.size(); ++fits) {
    width += glyph(text[fits]).advance;
    if (width > room) break;
    if (width + dots <= room) fits_with_dots = fits + 1;
  }
  const bool whole = fits == text.size();
  if (!whole && fits_with_dots < 2) return;
  for (qsizetype i = 0; i < (whole ? fits : fits_with_dots); ++i) {
    const Glyph& letter = glyph(text[i]);
    blend(image, x, top, letter.mask, colour);
    x += letter.advance;
  }
  if (!whole) blend(image, x, top, glyph(QChar(0x2026)).mask, colour);
}

void Glyphs::blend(QImage& image, int x, int top, const QImage& mask, QRgb colour) {
  const int left = std::max(0, -x), right = std::min(mask.width(), image.width() - x);
  const int red = qRed(colour), green = qGreen(colour), blue = qBlue(colour);
  for (int row = std::max(0, -top); row < mask.height() && top + row < image.height(); ++row) {
    const uchar* from = mask.constScanLine(row);
    auto* to = reinterpret_cast<QRgb*>(image.scanLine(top + row)) + x;
    for (int i = left; i < right; ++i) {
      const int share = from[i];
      if (share == 0) continue;
      const QRgb under = to[i];
      const auto mix = [&](int over, int below) { return below + (over - below) * share / 255; };
      to[i] = qRgb(mix(red, qRed(under)), mix(green, qGreen(under)), mix(blue, qBlue(under)));
    }
  }
}

}  // namespace trivium::gui
