#include "gui/look/shaped_words.h"

#include <cmath>

namespace trivium::gui {
namespace {

constexpr qsizetype kMostWords = 4'096;  // of a size; more than are ever on a screen

}  // namespace

void ShapedWords::set_font(const QFont& font) {
  if (font == font_) return;
  font_ = font;
  sizes_.clear();
}

ShapedWords::Size& ShapedWords::size_of(int pixels) {
  const auto [found, is_new] = sizes_.try_emplace(pixels);
  if (is_new) {
    found->second.font = font_;
    found->second.font.setPixelSize(pixels);
  }
  return found->second;
}

const QFont& ShapedWords::font_of(int pixels) { return size_of(pixels).font; }

const QStaticText& ShapedWords::shaped(Size& size, const QString& words) {
  if (const auto found = size.words.constFind(words); found != size.words.constEnd()) return *found;
  if (size.words.size() >= kMostWords) size.words.clear();
  QStaticText text(words);
  text.setTextFormat(Qt::PlainText);
  text.setPerformanceHint(QStaticText::AggressiveCaching);
  text.prepare({}, size.font);
  return *size.words.insert(words, text);
}

double ShapedWords::width_of(int pixels, const QString& words) { return shaped(size_of(pixels), words).size().width(); }

void ShapedWords::draw(QPainter& painter, const QPointF& corner, const Size& size, const QStaticText& shaped) const {
  painter.setFont(size.font);
  painter.drawStaticText(QPointF(std::round(corner.x()), std::round(corner.y())), shaped);
}

void ShapedWords::draw_centred(QPainter& painter, const QRectF& box, int pixels, const QString& words) {
  Size& size = size_of(pixels);
  const QStaticText& text = shaped(size, words);
  draw(painter, box.center() - QPointF(text.size().width(), text.size().height()) / 2, size, text);
}

void ShapedWords::draw_left(QPainter& painter, const QRectF& box, int pixels, const QString& words) {
  Size& size = size_of(pixels);
  const QStaticText& text = shaped(size, words);
  draw(painter, QPointF(box.left(), box.center().y() - text.size().height() / 2), size, text);
}

}  // namespace trivium::gui
