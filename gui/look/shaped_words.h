// Words that are painted again and again, shaped once: shaping costs more than painting.
#pragma once

#include <QFont>
#include <QHash>
#include <QPainter>
#include <QStaticText>
#include <QString>
#include <map>

namespace trivium::gui {

/// Of one widget, in its font at sizes in pixels.
class ShapedWords {
 public:
  /// Forgets all where the font is another than before.
  void set_font(const QFont& font);

  const QFont& font_of(int pixels);
  double width_of(int pixels, const QString& words);
  /// In the painter's pen, on whole pixels; vertically in the middle of the box, and horizontally too or at its left.
  void draw_centred(QPainter& painter, const QRectF& box, int pixels, const QString& words);
  void draw_left(QPainter& painter, const QRectF& box, int pixels, const QString& words);

 private:
  struct Size {
    QFont font;
    QHash<QString, QStaticText> words;
  };
  Size& size_of(int pixels);
  const QStaticText& shaped(Size& size, const QString& words);
  void draw(QPainter& painter, const QPointF& corner, const Size& size, const QStaticText& shaped) const;

  QFont font_;
  std::map<int, Size> sizes_;  // by pixels
};

}  // namespace trivium::gui
