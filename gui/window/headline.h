// The figures of the plan, always in sight.
#pragma once

#include <QLabel>
#include <QWidget>
#include <vector>

#include "gui/document.h"

namespace trivium::gui {

/// Iteration, throughput, MFU, memory and cost; what the last edit changed stands beside the iteration.
class Headline : public QWidget {
 public:
  explicit Headline(Document& document, QWidget* parent = nullptr);

  QString figure(int i) const { return figures_.at(static_cast<std::size_t>(i))->text(); }
  const QLabel& plan() const { return *plan_; }
  const QLabel& state() const { return *state_; }

 private:
  void show_evaluation();

  Document& document_;
  QLabel *plan_, *state_;
  std::vector<QLabel*> figures_;
  double settled_iteration_s_ = 0;   // of the last plan that was played in full
  double compared_iteration_s_ = 0;  // of the one before
};

}  // namespace trivium::gui
