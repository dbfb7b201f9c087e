// The figures of the plan, always in sight.
#pragma once

#include <QLabel>
#include <QWidget>
#include <functional>
#include <vector>

#include "gui/document.h"

namespace trivium::gui {

/// Iteration, throughput, MFU, memory and cost; the effect of the last edit is shown next to the iteration.
class Headline : public QWidget {
 public:
  explicit Headline(Document& document, QWidget* parent = nullptr);

  QString figure(int i) const { return figures_.at(static_cast<std::size_t>(i))->text(); }
  const QLabel& plan() const { return *plan_; }
  QLabel& state() { return *state_; }
  /// What else is shown that the figures are not of: a trace. Until the plan changes.
  void set_beside(const QString& words);
  /// Shows anew what depends on more than the document: whether the plan is a search's answer.
  void refresh() {
    if (document_.evaluation()) show_evaluation();
  }

  /// The space whose best the plan is; empty: none.
  std::function<QString()> answer_words;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  /// What figures are compared with: those of the same work, model and training, on whatever cluster.
  struct Told {
    double iteration_s = 0;
    std::uint64_t work = 0;
    Scenario scenario;
  };
  void show_evaluation();
  QString change_words() const;
  void mark_figures(bool too_large);
  QString plan_words() const;

  Document& document_;
  QLabel *plan_, *state_;
  QLabel* interval_ = nullptr;  // below the expected time
  std::vector<QLabel*> figures_;
  Told settled_;   // the last plan that was simulated in full
  Told compared_;  // the one before
  QString beside_;
};

}  // namespace trivium::gui
