#include "gui/look/marked.h"

#include <QPainter>
#include <QStyleOptionButton>
#include <QStylePainter>

#include "gui/look/theme.h"

namespace trivium::gui {

void PrimaryButton::paintEvent(QPaintEvent*) {
  QStyleOptionButton option;
  initStyleOption(&option);
  if (isEnabled()) {
    constexpr int kDarker = 210;  // per cent: the style draws buttons paler than their colour
    option.palette.setColor(QPalette::Button, palette().color(QPalette::Highlight).darker(kDarker));
    option.palette.setColor(QPalette::ButtonText, Qt::white);
  }
  QStylePainter(this).drawControl(QStyle::CE_PushButton, option);
}

void draw_wrong_frame(QWidget& widget) {
  constexpr int kWidth = 2;  // pixels
  QPainter painter(&widget);
  painter.setPen(QPen(alarm_colour(), kWidth));
  painter.drawRect(widget.rect().adjusted(1, 1, -1, -1));
}

}  // namespace trivium::gui
