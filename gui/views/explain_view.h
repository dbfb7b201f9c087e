// Why a plan takes its time, and what would change it.
#pragma once

#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QTextBrowser>
#include <QWidget>

#include "gui/document.h"
#include "gui/model/sensitivity.h"
#include "gui/model/spread.h"
#include "gui/plot/band_chart.h"
#include "gui/plot/bar_chart.h"
#include "gui/views/gain_chart.h"

namespace trivium::gui {

class ExplainView : public QWidget {
 public:
  explicit ExplainView(Document& document, QWidget* parent = nullptr);

  const Insight& insight() const { return insight_; }
  /// Whether what is said is of the document's plan as it is.
  bool is_current() const { return current_ && spread_current_; }
  /// Of the plan as it is; nothing before it was sampled.
  const std::optional<report::Spread>& spread() const { return spread_; }
  QDoubleSpinBox& jitter() { return *jitter_; }
  BandChart& band() { return *band_; }
  /// Where measurements are expected, from runs that were measured: how sure the prediction is.
  BandChart& measured() { return *measured_; }
  QLabel& measured_words() { return *measured_words_; }
  /// What was simulated for the band of random variation, and what that adds.
  QLabel& sure() { return *sure_; }
  /// Only a view that is seen has its plans simulated.
  void set_wanted(bool wanted);
  QTextBrowser& words() { return *words_; }
  GainChart& machine() { return *machine_; }
  GainChart& plans() { return *plans_; }
  BarChart& parts() { return *parts_; }
  /// Words on the left, gains on the right: in which all that is said has room where the window has.
  const QScrollArea& half(int which) const { return *qobject_cast<const QScrollArea*>(said_->widget(which)); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QScrollArea* make_words();
  QHBoxLayout* make_jitter();
  QScrollArea* make_gains();
  void set_aside();  ///< what is said of the plan before, and what is being found out about it
  void show_evaluation();
  void show_insight(Insight insight);
  void show_certainty();
  void ask_spread();
  void show_spread(std::optional<report::Spread> spread);
  /// Words and bars take what they need; the rest is the chart's.
  void fit();
  void fit_soon();

  Document& document_;
  QWidget* upper_;  // the splitter's: that sets its own limits
  QSplitter* said_;
  QTextBrowser* words_;
  QLabel* costs_;
  BarChart* parts_;
  QDoubleSpinBox* jitter_;
  BandChart *band_, *measured_;
  QLabel *sure_, *measured_words_;
  GainChart *machine_, *plans_;
  Insight insight_;
  std::optional<report::Spread> spread_;
  bool wanted_ = false, current_ = false, spread_current_ = false;
  struct SpreadRequest {
    std::shared_ptr<const Evaluation> evaluation;
    double jitter = 0;
  };
  Background<std::shared_ptr<const Evaluation>, Insight> thinker_;
  Background<SpreadRequest, std::optional<report::Spread>> sampler_;
};

}  // namespace trivium::gui
