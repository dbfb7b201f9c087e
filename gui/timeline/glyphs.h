// Small text drawn straight into an image: thousands of labels a frame, where a painter manages hundreds.
#pragma once

#include <QFont>
#include <QHash>
#include <QImage>
#include <QString>
#include <array>

namespace trivium::gui {

/// Letters of one font as masks, made when first met. Letters stand one after the other as their advances say: no
/// kerning, no joining of scripts that need it. Lives on the GUI thread.
class Glyphs {
 public:
  /// `font` sized in device pixels.
  explicit Glyphs(const QFont& font);

  int height() const { return height_; }
  int width(const QString& text);
  /// Draws as many letters as fit between x and `right` (device pixels), "…" for the rest; nothing where not two fit.
  void draw(QImage& image, int x, int top, int right, const QString& text, QRgb colour);

 private:
  struct Glyph {
    QImage mask;  ///< 8 bits of coverage
    int advance = 0;
  };
  const Glyph& glyph(QChar letter);
  Glyph make(QChar letter) const;
  static void blend(QImage& image, int x, int top, const QImage& mask, QRgb colour);

  QFont font_;
  int height_ = 0, ascent_ = 0;
  std::array<Glyph, 128> ascii_;  // advance 0: not made yet
  QHash<QChar, Glyph> others_;
};

}  // namespace trivium::gui
