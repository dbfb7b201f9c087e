#include "gui/timeline/compare_view.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLocale>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "gui/look/ink.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/timeline/spans/time_text.h"

namespace trivium::gui {
namespace {

constexpr double kPsPerSecond = 1e12;

QString seconds(double s) { return QString::fromStdString(time_text(std::llround(s * kPsPerSecond))); }
QString signed_percent(double share) {
  const double percent = 100 * share;
  return (percent >= 0 ? "+" : "−") + QString::number(std::abs(percent), 'f', 1) + " %";
}

QColor drawn(const Colour& colour) { return {colour.red, colour.green, colour.blue}; }

/// The colours of the error lane, in words.
QString legend_of_errors() {
  QString text;
  for (int c = 0; c < kErrorHues; ++c) {
    const QColor colour = drawn(colour_of(kErrorHue + c));
    text += QString("<span style='background-color:%1; color:%2'>&nbsp;%3&nbsp;</span><br>")
                .arg(colour.name(), ink_on(colour).name(), QString::fromStdString(error_words(c)));
  }
  return text;
}

}  // namespace

CompareView::CompareView(QWidget* parent)
    : QWidget(parent),
      findings_(new FindingsPanel),
      run_(new QWidget),
      canvas_(new TimelineCanvas),
      table_(new QTreeWidget),
      steps_(new QComboBox),
      run_it_(new QPushButton(tr("Run on this machine …"))),
      load_(new QPushButton(tr("Load a run record …"))),
      trace_(new QPushButton(tr("Open a trace of another trainer …"))),
      summary_(new QLabel),
      range_(new QLabel),
      legend_(new QLabel(legend_of_errors())),
      work_(compare, [this](Answer answer) { take(std::move(answer)); }) {
  setAccessibleName(tr("Compare"));
  setFocusProxy(canvas_);
  canvas_->setAccessibleName(tr("Predicted above measured"));
  canvas_->set_hint(hint());
  steps_->setAccessibleName(tr("Step"));
  steps_->setToolTip(tr("The measured step that is shown; at first the one nearest to the median of the run"));
  steps_->hide();
  steps_->setMinimumWidth(110);
  summary_->setWordWrap(true);
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  range_->setWordWrap(true);
  table_->setAccessibleName(tr("Error by op kind"));
  table_->setColumnCount(4);
  table_->setHeaderLabels({tr("Op"), tr("Predicted"), tr("Measured"), tr("Error")});
  table_->setRootIsDecorated(false);
  table_->setFocusPolicy(Qt::NoFocus);
  table_->setSelectionMode(QAbstractItemView::NoSelection);
  table_->header()->setStretchLastSection(false);
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setSectionResizeMode(0, QHeaderView::Stretch);

  auto* bar = new QHBoxLayout;
  bar->addWidget(steps_);
  bar->addWidget(summary_, 1);
  auto* begin = new QHBoxLayout;
  for (QPushButton* button : {run_it_, load_, trace_}) begin->addWidget(button);
  begin->addStretch(1);
  auto* side = new QWidget;
  auto* side_column = new QVBoxLayout(side);
  side_column->setContentsMargins(0, 0, 0, 0);
  side_column->addWidget(range_);
  side_column->addWidget(table_, 1);
  side_column->addWidget(new QLabel(tr("<b>Error lanes: predicted against measured</b>")));
  side_column->addWidget(legend_);
  side->setMinimumWidth(340);
  auto* split = new QSplitter;
  split->setObjectName("compare canvas and table");
  split->addWidget(canvas_);
  split->addWidget(side);
  split->setStretchFactor(0, 1);
  split->setSizes({1200, 370});
  auto* run_column = new QVBoxLayout(run_);
  run_column->setContentsMargins(0, 0, 0, 0);
  run_column->addLayout(bar);
  run_column->addLayout(begin);
  run_column->addWidget(split, 1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(6, 6, 6, 6);
  column->addWidget(findings_, 1);
  column->addWidget(run_, 2);

  connect(steps_, &QComboBox::activated, this, [this](int index) { post(steps_->itemData(index).toInt()); });
  connect(canvas_, &TimelineCanvas::selection_changed, this, &CompareView::update_table);
  update_summary();
}

QString CompareView::hint() { return tr("Run the plan, or load a run record, to compare it with the prediction."); }

void CompareView::set_comparison(std::optional<Comparison> comparison, const QString& why_none) {
  comparison_ = std::move(comparison);
  make_room();
  canvas_->set_hint(why_none.isEmpty() ? hint() : why_none);
  if (!comparison_) {
    work_.cancel();
    take({});
    return;
  }
  post(-1);
}

void CompareView::set_foreign(std::optional<ForeignCase> asked) {
  findings_->set_case(std::move(asked));
  make_room();
}

void CompareView::make_room() {
  run_->setVisible(findings_->isHidden() || comparison_.has_value());
  for (QPushButton* button : {run_it_, load_, trace_}) button->setVisible(!comparison_);
}

void CompareView::post(int step) {
  busy_ = true;
  summary_->setText(tr("Comparing…"));
  work_.post({comparison_, step});
}

CompareView::Answer CompareView::compare(const Request& request, const std::stop_token& stop) {
  Answer answer;
  try {
    const Comparison& asked = *request.comparison;
    answer.comparison = std::make_shared<const RunComparison>(
        compare_run(asked.plan, asked.cluster, *asked.record, request.step, stop));
  } catch (const base::Failure& failure) {
    answer.error = QString::fromStdString(display_name(failure.error().message));
  }
  return answer;
}

void CompareView::take(Answer answer) {
  busy_ = false;
  shown_ = std::move(answer.comparison);
  {
    const QSignalBlocker quiet(steps_);
    steps_->clear();
    steps_->setVisible(shown_ != nullptr);
    for (const int step : shown_ ? shown_->steps : std::vector<int>{}) steps_->addItem(tr("Step %1").arg(step), step);
    if (shown_) steps_->setCurrentIndex(steps_->findData(shown_->step));
  }
  if (shown_) {
    canvas_->set_timelines({{shown_->spans, nullptr, nullptr}}, {tr("run")});
  } else {
    canvas_->set_timelines({}, {});
  }
  update_summary();
  update_table();
  if (!answer.error.isEmpty()) {
    summary_->setText(answer.error);
    Q_EMIT failed(answer.error);
    return;
  }
  Q_EMIT shown();
}

void CompareView::update_summary() {
  if (!shown_) {
    summary_->clear();
    return;
  }
  const double predicted = static_cast<double>(shown_->predicted_ps) / kPsPerSecond, measured = shown_->step_s;
  const auto iteration = [](double s) { return QString::fromStdString(seconds_words(s)); };  // as everywhere else
  const auto error = [&](double taken) { return taken > 0 ? signed_percent(predicted / taken - 1) : QString("–"); };
  QString text = tr("<b>Predicted %1; step %2 took %3: %4</b>")
                     .arg(iteration(predicted))
                     .arg(shown_->step)
                     .arg(iteration(measured), error(measured));
  if (shown_->run_s > 0 && shown_->run_steps > 1) {
    text += tr(" · median of the run's %1 steps, as in Validation: %2, %3")
                .arg(shown_->run_steps)
                .arg(iteration(shown_->run_s), error(shown_->run_s));
  }
  text += tr(" · %1 ops matched").arg(QLocale::c().toString(static_cast<qulonglong>(shown_->ops.size())));
  if (shown_->unmatched > 0) {
    text += tr(", %1 events without a predicted counterpart: the record is of another plan")
                .arg(QLocale::c().toString(static_cast<qulonglong>(shown_->unmatched)));
  }
  summary_->setText(text);
}

void CompareView::update_table() {
  table_->clear();
  range_->clear();
  legend_->setEnabled(shown_ != nullptr);
  if (!shown_) return;
  const auto& range = canvas_->range();
  const std::int64_t begin = range ? range->begin_ps : shown_->spans->begin();
  const std::int64_t end = range ? range->end_ps : shown_->spans->end();
  range_->setText(
      range ? tr("Ops that touch the selected %1, all ranks").arg(QString::fromStdString(time_text(end - begin)))
            : tr("All ops of all ranks, waiting for partners, hosts that lag and transfers left out"));
  ComparedGroup sum;
  const auto add = [&](const QString& name, const ComparedGroup& group, bool bold) {
    auto* line = new QTreeWidgetItem(
        table_, {name, seconds(group.predicted_s), seconds(group.measured_s), signed_percent(group.error())});
    line->setToolTip(
        0, tr("%1 ops; mean error of an op, either way: %2 %").arg(group.ops).arg(100 * group.mape, 0, 'f', 1));
    const QColor colour = drawn(colour_of(kErrorHue + error_class(group.error())));
    line->setBackground(3, colour);
    line->setForeground(3, ink_on(colour));
    for (const int c : {1, 2, 3}) line->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
    QFont font = table_->font();
    font.setBold(bold);
    for (int c = 0; c < 4; ++c) line->setFont(c, font);
  };
  for (const ComparedGroup& group : groups_by_kind(*shown_, begin, end)) {
    add(QString::fromStdString(group.name), group, false);
    sum.predicted_s += group.predicted_s;
    sum.measured_s += group.measured_s;
    sum.mape += group.mape * static_cast<double>(group.ops);
    sum.ops += group.ops;
  }
  if (sum.ops == 0) return;
  sum.mape /= static_cast<double>(sum.ops);
  add(tr("all"), sum, true);
}

}  // namespace trivium::gui
