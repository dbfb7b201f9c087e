// What another trainer's run loses against the plan: what `trivium explain --trace` tells, as a table.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>

#include "calibration/foreign/explanation.h"
#include "gui/background.h"

namespace trivium::gui {

/// Traces of a run and the plan they are set against.
struct ForeignCase {
  std::vector<std::string> files;
  program::Job job;
  hardware::Cluster cluster;
};

/// Reads and explains on a thread of its own; files that were read are not read again for another plan. Hidden where
/// there is no trace. Lives on the GUI thread.
class FindingsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit FindingsPanel(QWidget* parent = nullptr);

  /// None: hides.
  void set_case(std::optional<ForeignCase> asked);
  void cancel();
  bool is_busy() const { return busy_; }
  const QString& error() const { return error_; }
  const std::optional<calibration::foreign::Explanation>& explanation() const { return explanation_; }
  QString summary() const { return summary_->text(); }
  const QTreeWidget& findings() const { return *findings_; }
  const QTreeWidget& ops() const { return *ops_; }
  QPushButton& cancel_button() { return *cancel_; }
  QPushButton& plan_button() { return *plan_; }
  std::string csv() const;  ///< what,rank,seconds,remedy

  std::function<void()> on_add;    ///< traces of more ranks are wanted
  std::function<void()> on_close;  ///< the trace goes
  /// The fields of the plan that the traces tell, by name of program::set_field.
  std::function<void(const std::map<std::string, std::string>&)> on_plan;

 private:
  struct Answer {
    std::optional<calibration::foreign::Explanation> explanation;
    std::map<std::string, std::string> told;
    QString error;
  };
  void take(Answer answer);
  void show_explanation();
  void set_busy(bool busy);

  QLabel* summary_;
  QProgressBar* progress_;
  QPushButton *cancel_, *add_, *plan_, *close_;
  QTreeWidget *findings_, *ops_;
  std::optional<ForeignCase> asked_;
  std::optional<calibration::foreign::Explanation> explanation_;
  std::map<std::string, std::string> told_;
  QString error_;
  bool busy_ = false;
  Background<ForeignCase, Answer> work_;
};

}  // namespace trivium::gui
