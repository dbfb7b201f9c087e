// What is planned: model, cluster, batch, constraints.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QWidget>
#include <functional>
#include <map>

#include "gui/document.h"

namespace trivium::gui {

/// Every field is checked while it is typed; what is wrong stands below in words, and the document keeps what it had.
class StartPanel : public QWidget {
 public:
  explicit StartPanel(Document& document, QWidget* parent = nullptr);

  QComboBox& model() { return *model_; }
  QComboBox& cluster() { return *cluster_; }
  QLineEdit& field(const QString& name) const { return *fields_.at(name); }
  QLabel& verdict() { return *verdict_; }
  QPushButton& search() { return *search_; }
  /// Takes what is typed, as leaving a field does.
  void apply(const QString& name);

 private:
  void show_scenario();
  void say(const QString& problem);
  Scenario with_typed(const QString& name, Scenario scenario) const;
  void check(const QString& name);
  void edit(const QString& name, const std::function<Scenario(Scenario)>& change, const QString& words);
  void add_field(class QFormLayout& form, const QString& name, const QString& words, const QString& help);

  Document& document_;
  QComboBox *model_, *cluster_;
  std::map<QString, QLineEdit*> fields_;
  QCheckBox* ignore_memory_;
  QLabel *about_, *verdict_;
  QPushButton* search_;
  bool showing_ = false;
};

}  // namespace trivium::gui
