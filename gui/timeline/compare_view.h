// Predicted above measured.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <memory>
#include <optional>

#include "gui/background.h"
#include "gui/timeline/findings_panel.h"
#include "gui/timeline/spans/run_comparison.h"
#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {

/// A plan and what its run measured.
struct Comparison {
  program::PlanFile plan;
  hardware::Cluster cluster;
  std::shared_ptr<const program::RunRecord> record;
};

/// Shows a step of a run: every lane predicted above measured on one scale, the error of every op below them in colour,
/// and a table by op kind of what is selected. Above it, where a trace of another trainer is open, what that run loses
/// against the plan. Simulates and matches on a thread of its own. Without a comparison it
/// says what to do. Lives on the GUI thread.
class CompareView : public QWidget {
  Q_OBJECT

 public:
  explicit CompareView(QWidget* parent = nullptr);

  /// None: `why_none`, else a hint what to do.
  void set_comparison(std::optional<Comparison> comparison, const QString& why_none = {});
  bool is_busy() const { return busy_ || findings_->is_busy(); }
  FindingsPanel& findings() { return *findings_; }
  /// None: no trace of another trainer is open.
  void set_foreign(std::optional<ForeignCase> asked);
  TimelineCanvas& canvas() { return *canvas_; }
  const QTreeWidget& table() const { return *table_; }
  QComboBox& steps() { return *steps_; }
  QString summary() const { return summary_->text(); }

  /// Shown where there is nothing to compare.
  QPushButton& run_button() { return *run_it_; }
  QPushButton& load_button() { return *load_; }
  QPushButton& trace_button() { return *trace_; }

 Q_SIGNALS:
  void shown();
  void failed(const QString& why);

 private:
  struct Request {
    std::optional<Comparison> comparison;
    int step = -1;
  };
  struct Answer {
    std::shared_ptr<const RunComparison> comparison;
    QString error;
  };
  static Answer compare(const Request& request, const std::stop_token& stop);
  static QString hint();
  void post(int step);
  void take(Answer answer);
  void update_table();
  void update_summary();
  void make_room();

  std::optional<Comparison> comparison_;
  std::shared_ptr<const RunComparison> shown_;
  FindingsPanel* findings_;
  QWidget* run_;  // everything but the findings
  TimelineCanvas* canvas_;
  QTreeWidget* table_;
  QComboBox* steps_;
  QPushButton *run_it_, *load_, *trace_;
  QLabel *summary_, *range_, *legend_;
  bool busy_ = false;
  Background<Request, Answer> work_;
};

}  // namespace trivium::gui
