// The plan as controls.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QWidget>
#include <map>

#include "gui/document.h"

namespace trivium::gui {

class KnobsPanel : public QWidget {
 public:
  explicit KnobsPanel(Document& document, QWidget* parent = nullptr);

  QComboBox& knob(const QString& field) { return *knobs_.at(field); }
  QCheckBox& fill() { return *fill_; }

 private:
  void show_scenario();
  void turn_knob(const std::string& field, const QString& text);

  Document& document_;
  std::map<QString, QComboBox*> knobs_;
  QCheckBox* fill_;
  QLabel* message_;
  bool showing_ = false;
};

}  // namespace trivium::gui
