#include "gui/window/headline.h"

#include <QHBoxLayout>
#include <QResizeEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/alteration.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/model/plan_rows.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"

namespace trivium::gui {
namespace {

constexpr double kWorthTelling = 0.0005;  // of an iteration

enum Figure { kIteration, kTokens, kMfu, kMemory, kCost, kFigures };
constexpr const char* kTitles[kFigures] = {"expected iteration", "tokens/s", "MFU · HFU", "peak memory",
                                           "cost of a step"};
constexpr const char* kHelp[kFigures] = {
    "Predicted: what half of the measurements of one training step would stay below, and the interval of 90 % of them: "
    "the simulated time and what measured runs say of its error.\n"
    "Explain shows how far iterations lie apart, Compare how far a run was from it.",
    "Predicted: tokens of the global batch by the time of an iteration, all devices together",
    "Predicted: share of the devices' dense peak that the model's arithmetic takes (MFU), and with it what is computed "
    "again (HFU). Attention counts whole, as is usual, also where kernels leave out what its mask hides: the TFLOP/s "
    "of "
    "ops do not count that",
    "Predicted: of the fullest rank, with what its device reserves",
    "What the nodes used cost during an iteration, at the hourly price in their profile"};

/// A layout of the window asks many times how high one width makes it: the text is shaped for the first of them.
class Words : public QLabel {
 public:
  using QLabel::QLabel;
  int heightForWidth(int width) const override {
    if (width != width_ || text() != text_ || font() != font_) {
      width_ = width, text_ = text(), font_ = font();
      height_ = QLabel::heightForWidth(width);
    }
    return height_;
  }

 private:
  mutable int width_ = -1, height_ = 0;
  mutable QString text_;
  mutable QFont font_;
};

}  // namespace

Headline::Headline(Document& document, QWidget* parent)
    : QWidget(parent), document_(document), plan_(new Words), state_(new Words) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 4, 8, 4);
  auto* left = new QVBoxLayout;
  plan_->setAccessibleName("Plan");
  state_->setAccessibleName("State of the plan");
  plan_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont strong = plan_->font();
  strong.setBold(true);
  plan_->setFont(strong);
  plan_->setMinimumWidth(120);
  for (QLabel* label : {plan_, state_}) {  // in as many lines as it takes
    label->setWordWrap(true);
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  }
  state_->setMinimumWidth(120);
  left->addWidget(plan_);
  left->addWidget(state_);
  row->addLayout(left, 1);
  for (int f = 0; f < kFigures; ++f) {
    const char* title = kTitles[f];
    auto* column = new QVBoxLayout;
    auto* figure = new QLabel("–");
    figure->setAccessibleName(title);
    QFont large = figure->font();
    large.setPointSizeF(large.pointSizeF() * 1.35);
    large.setBold(true);
    figure->setFont(large);
    figure->setAlignment(Qt::AlignRight);
    auto* name = new QLabel(title);
    name->setAlignment(Qt::AlignRight);
    for (QLabel* label : {figure, name}) label->setToolTip(kHelp[f]);
    if (f == kIteration) interval_ = name;
    column->addWidget(figure);
    column->addWidget(name);
    row->addSpacing(18);
    row->addLayout(column);
    figures_.push_back(figure);
  }
  connect(&document_, &Document::scenario_changed, this, [this] {
    if (isVisible()) setMinimumHeight(height());  // fewer words for a while: the view below stays where it is
    compared_ = settled_;
    beside_.clear();
    state_->setText(document_.evaluation() ? "Being simulated: the figures are of the plan before."
                                           : "Being simulated …");
  });
  connect(&document_, &Document::evaluated, this, [this] {
    show_evaluation();
    if (document_.settled()) setMinimumHeight(0);
  });
}

// What another width takes is another height.
void Headline::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (event->oldSize().width() != event->size().width()) setMinimumHeight(0);
}

void Headline::show_evaluation() {
  const auto& evaluation = document_.evaluation();
  const Scenario& scenario = evaluation->scenario;
  plan_->setText(plan_words());
  if (!evaluation->runs()) {
    for (QLabel* figure : figures_) figure->setText("–");
    interval_->setText(kTitles[kIteration]);
    mark_figures(false);
    state_->setText(QString("<span style='color:%1'>cannot run:</span> %2")
                        .arg(alarm_colour().name(), text(evaluation->refusal).toHtmlEscaped()));
    state_->setToolTip(text(evaluation->refusal));
    return;
  }
  const simulator::Simulation& f = evaluation->figures;
  const simulator::Certainty& sure = f.certainty;
  const std::string interval = simulator::interval_text(sure.iteration_s, sure.expected_s);
  figures_[kIteration]->setText(text(seconds_words(sure.expected_s)));
  interval_->setText("expected, 90 %: " + text(as_figures(interval)));
  figures_[kTokens]->setText(text(base::integer(f.tokens_per_s)));
  figures_[kMfu]->setText(text(base::percent(f.mfu)) + " · " +
                          text(simulator::mfu_text(f.hfu, scenario.file.job.plan)));
  figures_[kMemory]->setText(text(base::size(f.peak_memory_bytes)));
  mark_figures(!evaluation->fits());
  const double dollars = dollars_per_iteration(scenario.file.job.plan, scenario.cluster, f.iteration_s);
  figures_[kCost]->setText(dollars > 0 ? text(dollars_text(dollars)) : QString("not known"));
  QString state = evaluation->fits() ? QString("fits")
                                     : QString("<span style='color:%1'>does not fit:</span> %2")
                                           .arg(alarm_colour().name(), text(evaluation->overflow).toHtmlEscaped());
  if (const QString answer = answer_words ? answer_words() : QString(); !answer.isEmpty()) state += " · " + answer;
  state += change_words();
  if (evaluation->depth == Depth::kQuick) {
    state += " · a first look; op by op follows";  // fewer words than then: the headline does not grow for them
  } else {
    state += QString(" · simulated %1; fits with probability %2")
                 .arg(text(seconds_words(f.iteration_s)), text(simulator::probability_text(sure.fit_probability)));
  }
  if (!beside_.isEmpty()) state = "<b>" + beside_.toHtmlEscaped() + "</b> · " + state;
  state_->setText(state);
  state_->setToolTip(text(evaluation->overflow.empty() ? sure.words : evaluation->overflow + "; " + sure.words));
  if (evaluation->depth == Depth::kFull && document_.is_current()) {
    settled_ = {f.iteration_s, document_.work(), scenario};
  }
}

// A plan that does not fit has no speed: its figures stand back, and what is too much is red.
void Headline::mark_figures(bool too_large) {
  QPalette quiet, alarm;
  if (too_large) {
    quiet.setColor(QPalette::WindowText, palette().color(QPalette::PlaceholderText));
    alarm.setColor(QPalette::WindowText, alarm_colour());
  }
  for (QLabel* figure : figures_) figure->setPalette(figure == figures_[kMemory] ? alarm : quiet);
}

QString Headline::plan_words() const {
  const Scenario& scenario = document_.evaluation()->scenario;
  QString cluster = text(scenario.cluster.name).toHtmlEscaped();
  QString help;
  if (const auto altered = scenario.file.cluster.is_string() ? std::nullopt : alteration(scenario.cluster)) {
    if (!cluster.contains("altered")) cluster += ", altered";
    cluster = QString("<span style='color:%1'>%2</span>").arg(alarm_colour().name(), cluster);
    QStringList changes;
    for (const std::string& change : altered->changes) changes << text(change);
    help = "The cluster was altered:\n" + changes.join('\n') + "\nThe job on the left has the way back.";
  }
  plan_->setToolTip(help);
  return QString("%1 on %2: %3")
      .arg(text(scenario.file.job.model.name).toHtmlEscaped(), cluster,
           text(display_name(program::summary(scenario.file.job.plan))).toHtmlEscaped());
}

// Figures of another job say nothing of a plan: no difference is told then.
QString Headline::change_words() const {
  const auto& evaluation = document_.evaluation();
  const program::Job &now = evaluation->scenario.file.job, &before = compared_.scenario.file.job;
  const bool comparable = compared_.iteration_s > 0 && compared_.work == document_.work() &&
                          now.model == before.model &&
                          program::to_json(now.training) == program::to_json(before.training);
  if (!comparable) return {};
  const double change = evaluation->figures.iteration_s / compared_.iteration_s - 1;
  if (std::abs(change) < kWorthTelling) return {};
  const bool same_cluster = evaluation->scenario.file.cluster == compared_.scenario.file.cluster;
  return QString(" · %1%2 % against the %3 before")
      .arg(change > 0 ? "+" : "−")
      .arg(std::abs(100 * change), 0, 'f', 1)
      .arg(same_cluster ? "plan" : "cluster");
}

void Headline::set_beside(const QString& words) {
  beside_ = words;
  refresh();
}

}  // namespace trivium::gui
