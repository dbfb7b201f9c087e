// A choice whose words end with an ellipsis where they have no room: Qt cuts them within a letter.
#pragma once

#include <QComboBox>
#include <QStyleOptionComboBox>
#include <QStylePainter>

namespace trivium::gui {

/// Lives on the GUI thread.
class ElidedComboBox : public QComboBox {
 public:
  using QComboBox::QComboBox;

  /// What is painted: the choice, or as much of it as has room and an ellipsis.
  QString shown() const {
    QStyleOptionComboBox option;
    initStyleOption(&option);
    const QRect room = style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
    return fontMetrics().elidedText(currentText(), Qt::ElideRight, room.width() - kAround);
  }

 protected:
  void paintEvent(QPaintEvent* /*event*/) override {
    QStylePainter painter(this);
    QStyleOptionComboBox option;
    initStyleOption(&option);
    painter.drawComplexControl(QStyle::CC_ComboBox, option);
    option.currentText = shown();
    painter.drawControl(QStyle::CE_ComboBoxLabel, option);
  }

 private:
  static constexpr int kAround = 4;  // pixels that styles leave around words
};

}  // namespace trivium::gui
