// Two plans on one axis of time, with what makes the difference.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <functional>

#include "gui/document.h"
#include "gui/look/elided_combo_box.h"
#include "gui/plot/waterfall_chart.h"
#include "gui/timeline/timeline_canvas.h"
#include "gui/views/plan_difference.h"

namespace trivium::gui {

/// The second less the first (s); "none" where it is what sums of thousands of ops lose by rounding.
QString difference_words(const std::array<double, 2>& seconds);

/// The document's plan, pinned ones and the best of the last search can be chosen. Both are simulated for the
/// document's job on a thread of its own, while the view is seen. Lives on the GUI thread.
class TwoPlansView : public QWidget {
 public:
  explicit TwoPlansView(Document& document, QWidget* parent = nullptr);

  struct Choice {
    QString name;  ///< "pinned A: TP8 PP2"
    program::Plan plan;
  };
  /// What can be chosen in addition to the document's plan.
  std::function<std::vector<Choice>()> choices;
  /// Choices may have changed.
  void refresh();

  bool is_busy() const { return busy_; }
  ElidedComboBox& first() { return *which_[0]; }
  ElidedComboBox& second() { return *which_[1]; }
  TimelineCanvas& canvas() { return *canvas_; }
  WaterfallChart& waterfall() { return *waterfall_; }
  QTreeWidget& table() { return *table_; }
  const QLabel& summary() const { return *summary_; }
  const PlanDifference& difference() const { return difference_; }
  std::string csv() const;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Request {
    std::array<Scenario, 2> scenarios;
    std::array<QString, 2> names;
    std::shared_ptr<const Evaluation> known;
  };
  struct Answer {
    PlanDifference difference;
    std::array<QString, 2> names;
  };
  QWidget* make_lower();
  void ask();
  void take(Answer answer);
  void say_nothing(const QString& why);
  void show_table();
  Scenario scenario_of(int choice) const;

  Document& document_;
  std::array<ElidedComboBox*, 2> which_;
  QLabel* summary_;
  TimelineCanvas* canvas_;
  WaterfallChart* waterfall_;
  QTreeWidget* table_;
  std::vector<Choice> offered_;  // the document's plan first
  PlanDifference difference_;
  std::string asked_;  // what was asked last
  bool busy_ = false;
  Background<Request, Answer> worker_;
};

}  // namespace trivium::gui
