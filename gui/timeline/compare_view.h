// Predicted above measured.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTreeWidget>
#include <QWidget>
#include <memory>
#include <optional>

#include "gui/background.h"
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
/// and a table by op kind of what is selected. Simulates and matches on a thread of its own. Without a comparison it
/// says what to do. Lives on the GUI thread.
class CompareView : public QWidget {
  Q_OBJECT

 public:
  explicit CompareView(QWidget* parent = nullptr);

  /// None: `why_none`, else a hint what to do.
  void set_comparison(std::optional<Comparison> comparison, const QString& why_none = {});
  bool is_busy() const { return busy_; }
  TimelineCanvas& canvas() { return *canvas_; }
  const QTreeWidget& table() const { return *table_; }
  QComboBox& steps() { return *steps_; }
  QString summary() const { return summary_->text(); }

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

  std::optional<Comparison> comparison_;
  std::shared_ptr<const RunComparison> shown_;
  TimelineCanvas* canvas_;
  QTreeWidget* table_;
  QComboBox* steps_;
  QLabel *summary_, *range_, *legend_;
  bool busy_ = false;
  Background<Request, Answer> work_;
};

}  // namespace trivium::gui
