// Memory by stage and over time.
#pragma once

#include <QLabel>
#include <QWidget>

#include "gui/document.h"
#include "gui/plot/bar_chart.h"
#include "gui/plot/line_chart.h"

namespace trivium::gui {

class MemoryView : public QWidget {
 public:
  explicit MemoryView(Document& document, QWidget* parent = nullptr);

  BarChart& bars() { return *bars_; }
  LineChart& curve() { return *curve_; }
  QLabel& reason() { return *reason_; }

 private:
  void show_evaluation();
  void show_stage(int stage);

  Document& document_;
  QLabel* reason_;
  BarChart* bars_;
  LineChart* curve_;
};

}  // namespace trivium::gui
