// The plan as controls.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QWidget>
#include <functional>
#include <map>

#include "gui/document.h"
#include "gui/model/knobs.h"
#include "gui/model/stage_lists.h"

namespace trivium::gui {

class KnobsPanel : public QWidget {
 public:
  explicit KnobsPanel(Document& document, QWidget* parent = nullptr);

  QComboBox& knob(const QString& field) { return *knobs_.at(field); }
  /// The field that names every chunk or stage apart (gui/model/stage_lists.h).
  QLineEdit& list(const QString& field) { return *lists_.at(field); }
  QCheckBox& fill() { return *fill_; }
  QLabel& message() { return *message_; }

 private:
  void add_knob(const Knob& knob);
  void add_list(const StageList& list);
  void show_scenario();
  void show_knob(const std::string& field);
  void turn_knob(const std::string& field, const QString& text);
  void set_list(const StageList& list);
  /// One undoable step; says what cannot be and leaves the plan as it was.
  void edit(const std::function<Scenario()>& change, const QString& words, const std::string& field);

  Document& document_;
  QFormLayout* form_;
  std::map<QString, QComboBox*> knobs_;
  std::map<QString, QLineEdit*> lists_;
  QCheckBox* fill_;
  QLabel* message_;
  bool showing_ = false;
};

}  // namespace trivium::gui
