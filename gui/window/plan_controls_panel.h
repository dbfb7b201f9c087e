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
#include "gui/model/plan_controls.h"
#include "gui/model/stage_lists.h"

namespace trivium::gui {

class PlanControlsPanel : public QWidget {
 public:
  explicit PlanControlsPanel(Document& document, QWidget* parent = nullptr);

  QComboBox& plan_control(const QString& field) { return *plan_controls_.at(field); }
  /// The field that names every chunk or stage apart (gui/model/stage_lists.h).
  QLineEdit& list(const QString& field) { return *lists_.at(field); }
  QCheckBox& fill() { return *fill_; }
  QLabel& message() { return *message_; }

 private:
  void add_plan_control(const PlanControl& plan_control);
  void add_list(const StageList& list);
  void show_scenario();
  void show_plan_control(const std::string& field);
  void turn_plan_control(const std::string& field, const QString& text);
  void set_list(const StageList& list);
  /// One undoable step; says what cannot be and leaves the plan as it was.
  void edit(const std::function<Scenario()>& change, const QString& words, const std::string& field);

  Document& document_;
  QFormLayout* form_;
  std::map<QString, QComboBox*> plan_controls_;
  std::map<QString, QLineEdit*> lists_;
  QCheckBox* fill_;
  QLabel* message_;
  bool showing_ = false;
};

}  // namespace trivium::gui
