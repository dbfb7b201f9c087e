#include "gui/views/explain_view.h"

#include <QRegularExpression>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/readable.h"
#include "base/seconds.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "simulator/studies/whole_training.h"

namespace trivium::gui {
namespace {

using base::kSecondsPerPs;

constexpr double kLeastJitter = 0.5, kMostJitter = 50;  // percent
constexpr int kLeastChart = 180;                        // pixels of height
constexpr int kFirst = 100;                             // what is said has the room that the chart does not need
constexpr double kWorthSaying = 0.0005;                 // of an iteration
constexpr const char* kLater = "Comes when the plan has been simulated.";

/// As high as what it says, at any width.
class FittedText : public QTextBrowser {
 public:
  FittedText() {
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
  }
  QSize sizeHint() const override { return {QTextBrowser::sizeHint().width(), heightForWidth(width())}; }
  QSize minimumSizeHint() const override { return {120, fontMetrics().height()}; }  // the least at any width
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override {
    const std::unique_ptr<QTextDocument> laid_out(document()->clone());
    laid_out->setTextWidth(width - 2 * frameWidth());
    return static_cast<int>(std::ceil(laid_out->size().height())) + 2 * frameWidth();
  }
};

/// A sentence of the library as other figures of the window stand: "1,024 devices", "(−7.1 %)", no line break before
/// a unit.
QString set_in_type(const std::string& sentence) {
  static const QRegularExpression kMinus(R"(\(-(?=\d))"), kThousands(R"((?<![\w.,])\d{4,}(?![\w.]))"),
      kUnit(R"((?<=\d) (?=(s|ms|us|µs|[KMGT]iB|days|hours)\b))");
  constexpr QChar kNoBreak(0x00A0);
  QString words = text(sentence).replace(kMinus, "(−").replace(" %", QString(kNoBreak) + "%").replace(kUnit, kNoBreak);
  for (auto number = kThousands.match(words); number.hasMatch();
       number = kThousands.match(words, number.capturedEnd())) {
    const QString grouped = text(base::integer(number.captured().toDouble()));
    words.replace(number.capturedStart(), number.capturedLength(), grouped);
  }
  return words;
}

/// A small screen has not room for all of it.
QScrollArea* scrolling(QWidget* column) {
  auto* scroll = new QScrollArea;
  scroll->setWidget(column);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  for (QWidget* seen_through : {scroll->viewport(), column}) seen_through->setAutoFillBackground(false);
  return scroll;
}

}  // namespace

ExplainView::ExplainView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      upper_(new QWidget),
      said_(new QSplitter(Qt::Horizontal)),
      words_(new FittedText),
      costs_(new QLabel),
      parts_(new BarChart("Where the time of every stage goes")),
      jitter_(new QDoubleSpinBox),
      band_(new BandChart("How far iterations lie apart")),
      measured_(new BandChart("Where measurements are expected")),
      sure_(new QLabel),
      measured_words_(new QLabel),
      machine_(new GainChart("What a better machine would bring")),
      plans_(new GainChart("What another plan would bring")),
      thinker_([](const std::shared_ptr<const Evaluation>& evaluation,
                  const std::stop_token& stop) { return trivium::gui::insight(*evaluation, stop); },
               [this](Insight found) { show_insight(std::move(found)); }),
      sampler_([](const SpreadRequest& asked,
                  const std::stop_token& stop) { return sample_spread(*asked.evaluation, asked.jitter, stop); },
               [this](std::optional<report::Spread> found) { show_spread(found); }) {
  said_->setObjectName("explain words and gains");
  said_->addWidget(make_words());
  said_->addWidget(make_gains());
  said_->setSizes({520, 520});
  parts_->set_seconds(true);
  parts_->set_hint("No plan that could run: its stages would stand here.");
  auto* all = new QVBoxLayout(this);
  auto* upper = new QVBoxLayout(upper_);
  upper->setContentsMargins(0, 0, 0, 0);
  upper->addWidget(said_);
  all->addWidget(upper_, kFirst);
  all->addWidget(parts_, 1);
  parts_->setMinimumHeight(kLeastChart);
  connect(words_->document(), &QTextDocument::contentsChanged, this, [this] { words_->updateGeometry(); });
  for (const int half : {0, 1}) {
    auto* area = qobject_cast<QScrollArea*>(said_->widget(half));
    area->installEventFilter(this);
    area->widget()->installEventFilter(this);
  }
  connect(&document_, &Document::scenario_changed, this, [this] { set_aside(); });
  connect(&document_, &Document::evaluated, this, [this] { show_evaluation(); });
}

// What the training costs, how sure that is, and what limits it.
QScrollArea* ExplainView::make_words() {
  words_->setAccessibleName("Explanation");
  costs_->setAccessibleName("Time, energy and cost of the whole training");
  costs_->setWordWrap(true);
  measured_->set_colours(kind_colour(report::Kind::kOptimizer), std::nullopt);
  measured_->set_hint(kLater);
  measured_words_->setAccessibleName("Where the interval comes from");
  measured_words_->setWordWrap(true);
  band_->set_hint(kLater);
  sure_->setAccessibleName("What was simulated for the band");
  sure_->setWordWrap(true);
  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  column->addWidget(costs_);
  column->addWidget(new QLabel("<b>How sure</b>: 90 of 100 measurements are expected in"));
  column->addWidget(measured_);
  column->addWidget(measured_words_);
  column->addLayout(make_jitter());
  column->addWidget(band_);
  column->addWidget(sure_);
  column->addWidget(words_);
  column->addStretch();
  return scrolling(left);
}

QHBoxLayout* ExplainView::make_jitter() {
  jitter_->setAccessibleName("How much longer or shorter an op may take");
  jitter_->setToolTip("Every compute op takes up to this much longer or shorter, at random");
  jitter_->setRange(kLeastJitter, kMostJitter);
  jitter_->setDecimals(1);
  jitter_->setValue(100 * kUsualJitter);
  jitter_->setPrefix("± ");
  jitter_->setSuffix(" %");
  jitter_->setKeyboardTracking(false);
  connect(jitter_, &QDoubleSpinBox::valueChanged, this, [this] { ask_spread(); });
  auto* words = new QLabel("<b>Random variation</b>: an iteration when every op takes longer or shorter by up to");
  words->setBuddy(jitter_);
  words->setWordWrap(true);
  auto* row = new QHBoxLayout;
  row->addWidget(words, 1);
  row->addWidget(jitter_);
  return row;
}

QScrollArea* ExplainView::make_gains() {
  machine_->set_hint(kLater);
  plans_->set_hint(kLater);
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->addWidget(new QLabel("<b>If the machine were better</b>: change of an iteration"));
  column->addWidget(machine_);
  column->addWidget(new QLabel("<b>If one thing of the plan were changed</b>: change of an iteration"));
  column->addWidget(plans_);
  column->addStretch();
  return scrolling(right);
}

void ExplainView::set_aside() {
  thinker_.cancel();
  sampler_.cancel();
  current_ = spread_current_ = false;
  insight_ = {};
  spread_.reset();
  words_->setPlainText(kLater);
  machine_->set_gains({});
  plans_->set_gains({});
  band_->set_hint(kLater);
  band_->set_band(std::nullopt, {}, {});
  sure_->clear();
  measured_->set_band(std::nullopt, {}, {});
  measured_words_->clear();
}

// As much as they need beside a scroll bar, which Qt takes away only where what is as narrow has room.
void ExplainView::fit() {
  int most = 0;
  for (const int half : {0, 1}) {
    const auto* area = qobject_cast<const QScrollArea*>(said_->widget(half));
    QLayout* column = area->widget()->layout();
    const int width = area->width() - 2 * area->frameWidth() - area->verticalScrollBar()->sizeHint().width();
    most = std::max(
        most, column->hasHeightForWidth() ? column->totalHeightForWidth(width) : column->totalSizeHint().height());
  }
  if (upper_->maximumHeight() != most) upper_->setMaximumHeight(most);
}

// Once the words have their width, and once more when all that follows from it has its place.
void ExplainView::fit_soon() {
  const auto once_more = [this] {
    fit();
    QMetaObject::invokeMethod(
        this, [this] { fit(); }, Qt::QueuedConnection);
  };
  QMetaObject::invokeMethod(this, once_more, Qt::QueuedConnection);
}

bool ExplainView::eventFilter(QObject* watched, QEvent* event) {
  const bool other = event->type() == QEvent::LayoutRequest || event->type() == QEvent::Resize;
  if (other) fit_soon();
  return QWidget::eventFilter(watched, event);
}

void ExplainView::set_wanted(bool wanted) {
  wanted_ = wanted;
  if (wanted_ && !is_current() && document_.settled()) show_evaluation();
  if (wanted_) return;
  thinker_.cancel();
  sampler_.cancel();
}

void ExplainView::show_evaluation() {
  const auto& evaluation = document_.evaluation();
  std::vector<BarPart> names;
  for (int p = 0; p < simulator::kParts; ++p) {
    const auto part = static_cast<simulator::Part>(p);
    names.push_back({part_words(part, evaluation->runs() ? &evaluation->program->mesh : nullptr), part_colour(part)});
  }
  std::vector<Bar> bars;
  for (const simulator::StageResult& stage : evaluation->figures.stages) {
    std::vector<double> values;
    for (const std::int64_t ps : stage.breakdown) {
      values.push_back(std::max(0.0, static_cast<double>(ps) * kSecondsPerPs));
    }
    bars.push_back({text(stage.memory.name()), std::move(values), 0});
  }
  parts_->set_bars(std::move(names), evaluation->runs() ? std::move(bars) : std::vector<Bar>{}, "time of an iteration",
                   [](double s) { return text(seconds_words(s)); });
  const Scenario& scenario = evaluation->scenario;
  const auto whole = evaluation->runs()
                         ? simulator::whole_training(scenario.file.job, scenario.cluster, evaluation->figures)
                         : std::nullopt;
  if (whole) {
    costs_->setText(
        QString("Training on %1 tokens takes %2, %3, %4.")
            .arg(text(base::integer(static_cast<double>(scenario.file.job.training.total_tokens))),
                 text(base::duration(whole->seconds)), text(base::energy(whole->energy_joules)),
                 whole->cost_usd ? text(base::dollars(*whole->cost_usd)) : QString("price of a node not known")));
  } else {
    costs_->setText("Say how many tokens the training has (left) to see its days, energy and cost.");
  }
  show_certainty();
  if (!evaluation->runs()) {
    words_->setPlainText("The plan cannot run: " + text(evaluation->refusal));
    machine_->set_gains({});
    plans_->set_gains({});
    insight_ = {};
    show_spread(std::nullopt);
    current_ = spread_current_ = document_.settled();
    return;
  }
  if (!document_.settled() || is_current()) return;
  if (!wanted_) {
    words_->setPlainText("Comes when this view is open.");
    return;
  }
  if (!current_) {
    words_->setPlainText("Simulating plans and machines one change away …");
    thinker_.post(evaluation);
  }
  ask_spread();
}

// What is known of the prediction's errors, from runs that were measured. Not how far ops vary at random.
void ExplainView::show_certainty() {
  const auto& evaluation = document_.evaluation();
  if (!evaluation->runs()) {
    measured_->set_band(std::nullopt, {}, {});
    return measured_words_->clear();
  }
  const simulator::Certainty& sure = evaluation->figures.certainty;
  const double predicted = evaluation->figures.iteration_s;
  measured_->set_band(report::Band{sure.iteration_s.low, predicted, sure.iteration_s.high, predicted}, "predicted",
                      [](double s) { return text(seconds_words(s)); });
  QString words = text(sure.words);
  if (!words.isEmpty()) words[0] = words[0].toUpper();
  measured_words_->setText(words + ".");
}

void ExplainView::ask_spread() {
  spread_current_ = false;
  const auto& evaluation = document_.evaluation();
  if (!wanted_ || !document_.settled() || !evaluation->runs()) return;
  spread_.reset();
  band_->set_hint(QString("Simulating every rank %1 times …").arg(spread_samples(*evaluation)));
  band_->set_band(std::nullopt, {}, {});
  sure_->clear();
  sampler_.post({evaluation, jitter_->value() / 100});
}

void ExplainView::show_spread(std::optional<report::Spread> found) {
  spread_ = found;
  spread_current_ = true;
  sure_->clear();
  const auto& evaluation = document_.evaluation();
  if (!spread_ || !evaluation->runs()) {
    band_->set_hint(kLater);
    return band_->set_band(std::nullopt, {}, {});
  }
  // As many digits as tell the ends apart.
  const double width = std::max(spread_->p95_s - spread_->p5_s, 1e-6 * spread_->p95_s);
  const int digits = std::clamp(static_cast<int>(std::ceil(std::log10(spread_->p95_s / width))) + 2, 4, 7);
  const auto words = [digits](double s) { return text(with_micro_sign(report::precise_seconds(s, digits))); };
  band_->set_band(report::Band{spread_->p5_s, spread_->p50_s, spread_->p95_s, spread_->nominal_s}, "without variation",
                  words);
  const double variation = spread_->p50_s / spread_->nominal_s - 1;
  const double shared = spread_->nominal_s / evaluation->figures.iteration_s - 1;
  QString words_of_it =
      QString("%1 random simulations of every rank, op by op; dashed: the same without random variation.")
          .arg(spread_->samples);
  if (variation >= kWorthSaying) {
    words_of_it += QString(" Random variation costs %1: ranks that synchronise wait for the slowest.")
                       .arg(text(base::percent(variation)));
  }
  if (shared >= kWorthSaying) {
    words_of_it +=
        QString(" Links that are shared cost %1 more than the figure on top.").arg(text(base::percent(shared)));
  } else if (shared <= -kWorthSaying) {
    words_of_it += QString(" Op by op it takes %1 less than the figure on top.").arg(text(base::percent(-shared)));
  }
  sure_->setText(words_of_it);
  band_->setToolTip(
      QString("Of %1 random simulations of every rank, 5 % took less than %2, half less than %3, 95 % less than %4.")
          .arg(spread_->samples)
          .arg(words(spread_->p5_s), words(spread_->p50_s), words(spread_->p95_s)));
}

void ExplainView::show_insight(Insight found) {
  insight_ = std::move(found);
  current_ = true;
  QString page;
  for (const std::string& sentence : insight_.sentences) page += "<p>" + set_in_type(sentence).toHtmlEscaped() + "</p>";
  words_->setHtml(page);
  machine_->set_gains(insight_.machine);
  std::vector<Sensitivity> plans = insight_.plans;
  std::stable_sort(plans.begin(), plans.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::make_pair(!a.refusal.empty(), a.gain) < std::make_pair(!b.refusal.empty(), b.gain);
  });
  std::vector<Sensitivity> both = insight_.machine;
  both.insert(both.end(), plans.begin(), plans.end());
  for (GainChart* chart : {machine_, plans_}) chart->set_longest(longest_bar(both));  // they are read as one
  plans_->set_gains(std::move(plans));
}

}  // namespace trivium::gui
