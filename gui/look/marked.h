// Controls that stand out: the button that is meant to be pressed, the field whose content cannot be.
#pragma once

#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <utility>

namespace trivium::gui {

/// In the colour of selections, in either theme. There is one in a place.
class PrimaryButton : public QPushButton {
 public:
  using QPushButton::QPushButton;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

/// A red frame over a widget.
void draw_wrong_frame(QWidget& widget);

/// A line edit or a combo box that gets a red frame while what it holds cannot be.
template <typename Field>
class Marked : public Field {
 public:
  using Field::Field;
  void set_wrong(bool wrong) {
    if (std::exchange(wrong_, wrong) != wrong) this->update();
  }
  bool is_wrong() const { return wrong_; }

 protected:
  void paintEvent(QPaintEvent* event) override {
    Field::paintEvent(event);
    if (wrong_) draw_wrong_frame(*this);
  }

 private:
  bool wrong_ = false;
};

}  // namespace trivium::gui
