// Memory by stage or by rank, and over time.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QSpinBox>
#include <QWidget>

#include "gui/document.h"
#include "gui/model/rank_memory.h"
#include "gui/plot/bar_chart.h"
#include "gui/plot/line_chart.h"
#include "gui/views/fit_advice.h"

namespace trivium::gui {

class MemoryView : public QWidget {
 public:
  explicit MemoryView(Document& document, QWidget* parent = nullptr);

  BarChart& bars() { return *bars_; }
  LineChart& curve();
  QLabel& reason() { return *reason_; }
  FitAdvice& advice() { return *advice_; }
  /// Above the curve: whose memory it is.
  const QLabel& held();
  /// The rank whose memory is shown over time, where ranks are shown.
  QSpinBox& rank() { return *rank_; }
  /// A bar a rank, else a bar a stage.
  void show_ranks(bool ranks);
  bool shows_ranks() const { return by_->currentIndex() == 1; }

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  void show_evaluation();
  void show_bars();
  void show_reason();
  /// Over time, of the bar that is selected.
  void show_selected();
  /// Adds that up anew if the bars are of another plan than it.
  void catch_up();
  std::vector<Line> parts_over_time(const RankMemory& one) const;

  Document& document_;
  QLabel *reason_, *held_;
  FitAdvice* advice_;
  QComboBox* by_;
  QSpinBox* rank_;
  BarChart* bars_;
  LineChart* curve_;
  bool behind_ = false;            // the curve, of the bars: it is made when it is looked at
  std::vector<RankMemory> ranks_;  // one a bar; of a stage its first rank, with the stage's figures
};

}  // namespace trivium::gui
