// Links: what goes over which wires, how full they are, and what better ones would bring.
#pragma once

#include <QLabel>
#include <QTableWidget>
#include <QWidget>

#include "gui/document.h"
#include "gui/look/fitted_splitter.h"
#include "gui/model/sensitivity.h"
#include "gui/model/wires.h"
#include "gui/plot/bar_chart.h"
#include "gui/views/gain_chart.h"

namespace trivium::gui {

class LinksView : public QWidget {
 public:
  explicit LinksView(Document& document, QWidget* parent = nullptr);

  /// Only a view that is seen has better machines simulated.
  void set_wanted(bool wanted);
  /// Whether what is shown, gains too, is of the document's plan as it is.
  bool is_current() const { return current_; }

  const std::vector<simulator::WireUse>& wires() const { return wires_; }
  QLabel& words() { return *words_; }
  QTableWidget& table() { return *table_; }
  FittedSplitter& halves() { return *halves_; }
  BarChart& bars() { return *bars_; }
  GainChart& gains() { return *gains_; }

 private:
  void set_aside();
  void show_evaluation();
  void show_table(double iteration_s);
  void show_bars(double iteration_s);

  Document& document_;
  QLabel* words_;
  QTableWidget* table_;
  FittedSplitter* halves_;
  BarChart* bars_;
  GainChart* gains_;
  std::vector<simulator::WireUse> wires_;
  bool wanted_ = false, current_ = false;
  Background<std::shared_ptr<const Evaluation>, std::vector<Sensitivity>> thinker_;  // ends before what it shows
};

}  // namespace trivium::gui
