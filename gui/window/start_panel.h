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
#include "gui/look/marked.h"

namespace trivium::gui {

/// Every field is checked while it is typed; what is wrong stands directly below it in words, and the document keeps
/// what it had. The verdict and the search stay in sight below the fields, however low the window is.
class StartPanel : public QWidget {
 public:
  explicit StartPanel(Document& document, QWidget* parent = nullptr);

  QComboBox& model() { return *model_; }
  QComboBox& cluster() { return *cluster_; }
  /// What a search plans for; its data are names of planner::trainer_spaces, or nothing for Trivium's own runtime.
  QComboBox& trainer() { return *trainer_; }
  QLineEdit& field(const QString& name) const { return *fields_.at(name); }
  /// What is wrong with a field ("model", "cluster", "global_batch" …); empty: nothing is.
  QString wrong(const QString& name) const;
  bool is_marked(const QString& name) const;
  QLabel& note(const QString& name) { return *notes_.at(name); }
  /// How the cluster differs from the one whose name it has, and the way back; hidden where it does not.
  QLabel& altered() { return *altered_; }
  /// Seen while the plan is for this machine and nothing of it was measured.
  QWidget& unmeasured() { return *unmeasured_; }
  QPushButton& measure() { return *measure_; }
  QLabel& verdict() { return *verdict_; }
  QPushButton& search() { return *search_; }
  /// Takes what is typed, as leaving a field does.
  void apply(const QString& name);
  /// Anew, after something outside of the document changed: this machine was measured.
  void refresh();

 private:
  void show_scenario();
  void show_alteration();
  void show_verdict();
  void say(const QString& name, const QString& problem);
  void clear_notes();
  Scenario with_typed(const QString& name, Scenario scenario) const;
  void check(const QString& name);
  void edit(const QString& name, const std::function<Scenario(Scenario)>& change, const QString& words);
  void set_up_choices();
  void set_up_trainers();
  void show_trainer();
  void add_row(class QFormLayout& form, const QString& name, const QString& words, QWidget* field);
  void add_field(QFormLayout& form, const QString& name, const QString& words, const QString& help);
  QWidget* make_cluster_notes();

  Document& document_;
  Marked<QComboBox>*model_, *cluster_, *trainer_;
  std::map<QString, Marked<QLineEdit>*> fields_;
  std::map<QString, QLabel*> notes_;
  QCheckBox* ignore_memory_;
  QLabel *about_, *verdict_, *altered_;
  QWidget* unmeasured_;
  QPushButton *measure_, *search_;
  bool showing_ = false;
};

}  // namespace trivium::gui
