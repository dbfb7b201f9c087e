#include "gui/views/explain_view.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "edge/readable.h"
#include "gui/look/theme.h"
#include "simulator/whole_training.h"

namespace trivium::gui {
namespace {

constexpr double kSecondsPerPs = 1e-12;
constexpr double kJoulesPerMegawattHour = 3.6e9;
constexpr double kLeastJitter = 0.5, kMostJitter = 50;  // percent
constexpr double kRow = 1.7;                            // lines of text
constexpr double kWorthSaying = 0.0005;                 // of an iteration
constexpr double kNameShare = 0.46;                     // of the width

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

void GainChart::set_gains(std::vector<Sensitivity> gains) {
  gains_ = std::move(gains);
  setMinimumHeight(gains_.empty() ? 0 : sizeHint().height());
  updateGeometry();
  update();
}

QSize GainChart::sizeHint() const {
  const double rows = std::max<double>(3, static_cast<double>(gains_.size()));
  return {460, static_cast<int>(rows * kRow * QFontMetricsF(font()).height()) + 8};
}

void GainChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (gains_.empty()) return draw_hint(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  const QFontMetricsF metrics(font());
  double most = 0.001;
  for (const Sensitivity& gain : gains_) {
    if (gain.refusal.empty()) most = std::max(most, std::abs(gain.gain));
  }
  const double names = width() * kNameShare, figures = metrics.horizontalAdvance("+000.0 %") + 8;
  const double middle = names + figures + (width() - names - 2 * figures) / 2;
  const double half = std::max(4.0, (width() - names - 2 * figures) / 2);
  const double row = metrics.height() * kRow;
  painter.setPen(QPen(quiet_colour(palette()), 1));
  const auto bars = std::count_if(gains_.begin(), gains_.end(), [](const auto& gain) { return gain.refusal.empty(); });
  painter.drawLine(QPointF(middle, 0), QPointF(middle, static_cast<double>(bars) * row));
  for (std::size_t i = 0; i < gains_.size(); ++i) {
    const Sensitivity& gain = gains_[i];
    const QRectF line(0, static_cast<double>(i) * row, width(), row);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRectF(4, line.top(), names - 8, row), Qt::AlignVCenter | Qt::AlignLeft,
                     metrics.elidedText(text(gain.change), Qt::ElideMiddle, names - 8));
    if (!gain.refusal.empty()) {
      painter.setPen(palette().color(QPalette::PlaceholderText));
      const QRectF rest(names, line.top(), width() - names - 4, row);
      painter.drawText(rest, Qt::AlignVCenter, metrics.elidedText(text(gain.refusal), Qt::ElideRight, rest.width()));
      continue;
    }
    const double wide = std::abs(gain.gain) / most * half;
    const bool faster = gain.gain < 0;
    painter.fillRect(QRectF(faster ? middle - wide : middle, line.top() + row * 0.18, wide, row * 0.64),
                     faster ? series_colour(2) : series_colour(5));
    const QString figure = QString("%1%2 %").arg(faster ? "−" : "+").arg(std::abs(100 * gain.gain), 0, 'f', 1);
    const QRectF place = faster ? QRectF(middle - wide - figures, line.top(), figures - 4, row)
                                : QRectF(middle + wide + 4, line.top(), figures, row);
    painter.drawText(place, Qt::AlignVCenter | (faster ? Qt::AlignRight : Qt::AlignLeft), figure);
  }
}

ExplainView::ExplainView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      words_(new QTextBrowser),
      costs_(new QLabel),
      parts_(new BarChart("Where the time of every stage goes")),
      jitter_(new QDoubleSpinBox),
      band_(new BandChart("How far iterations lie apart")),
      sure_(new QLabel),
      machine_(new GainChart("What a better machine would bring")),
      plans_(new GainChart("What another plan would bring")),
      thinker_([](const std::shared_ptr<const Evaluation>& evaluation,
                  const std::stop_token& stop) { return trivium::gui::insight(*evaluation, stop); },
               [this](Insight found) { show_insight(std::move(found)); }),
      sampler_([](const SpreadRequest& asked,
                  const std::stop_token& stop) { return sample_spread(*asked.evaluation, asked.jitter, stop); },
               [this](std::optional<report::Spread> found) { show_spread(found); }) {
  words_->setAccessibleName("Explanation");
  costs_->setAccessibleName("Time, energy and cost of the whole training");
  costs_->setWordWrap(true);
  parts_->set_hint("No plan that could run: its stages would stand here.");
  machine_->set_hint("Comes when the plan has been played.");
  plans_->set_hint("Comes when the plan has been played.");
  jitter_->setAccessibleName("How much longer or shorter an op may take");
  jitter_->setToolTip("Every op that computes takes up to this much longer or shorter, by chance");
  jitter_->setRange(kLeastJitter, kMostJitter);
  jitter_->setDecimals(1);
  jitter_->setValue(100 * kUsualJitter);
  jitter_->setPrefix("± ");
  jitter_->setSuffix(" %");
  jitter_->setKeyboardTracking(false);
  connect(jitter_, &QDoubleSpinBox::valueChanged, this, [this] { ask_spread(); });
  band_->set_hint("Comes when the plan has been played.");
  sure_->setAccessibleName("What was played for the band");
  sure_->setWordWrap(true);
  auto* sure = new QHBoxLayout;
  auto* sure_words = new QLabel("<b>How sure</b>: iterations when every op takes");
  sure_words->setBuddy(jitter_);
  sure->addWidget(sure_words);
  sure->addWidget(jitter_);
  sure->addStretch();
  auto* left = new QWidget;
  auto* left_layout = new QVBoxLayout(left);
  left_layout->addWidget(costs_);
  left_layout->addLayout(sure);
  left_layout->addWidget(band_);
  left_layout->addWidget(sure_);
  left_layout->addWidget(words_, 1);
  left_layout->addWidget(parts_, 1);
  auto* right = new QWidget;
  auto* right_layout = new QVBoxLayout(right);
  right_layout->addWidget(new QLabel("<b>If the machine were better</b>: change of an iteration"));
  right_layout->addWidget(machine_);
  right_layout->addWidget(new QLabel("<b>If one thing of the plan were changed</b>"));
  right_layout->addWidget(plans_);
  right_layout->addStretch();
  auto* scroll = new QScrollArea;
  scroll->setWidget(right);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* both = new QSplitter(Qt::Horizontal);
  both->addWidget(left);
  both->addWidget(scroll);
  both->setSizes({520, 520});
  (new QVBoxLayout(this))->addWidget(both);
  connect(&document_, &Document::scenario_changed, this, [this] {
    current_ = spread_current_ = false;
    spread_.reset();  // it says nothing of another plan
    band_->set_hint("Comes when the plan has been played.");
    band_->set_band(std::nullopt, {}, {});
    sure_->clear();
  });
  connect(&document_, &Document::evaluated, this, [this] { show_evaluation(); });
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
    names.push_back({part_words(part), part_colour(part)});
  }
  std::vector<Bar> bars;
  for (const simulator::StageResult& stage : evaluation->figures.stages) {
    std::vector<double> values;
    for (const std::int64_t ps : stage.breakdown) {
      values.push_back(std::max(0.0, static_cast<double>(ps) * kSecondsPerPs));
    }
    bars.push_back({QString("stage %1").arg(stage.stage), std::move(values), 0});
  }
  parts_->set_bars(std::move(names), evaluation->runs() ? std::move(bars) : std::vector<Bar>{}, "time of an iteration",
                   [](double s) { return text(edge::seconds(s)); });
  const Scenario& scenario = evaluation->scenario;
  const auto whole = evaluation->runs()
                         ? simulator::whole_training(scenario.file.job, scenario.cluster, evaluation->figures)
                         : std::nullopt;
  if (whole) {
    costs_->setText(
        QString("Training on %1 tokens takes %2, %3 MWh, %4.")
            .arg(text(edge::integer(static_cast<double>(scenario.file.job.training.total_tokens))),
                 text(edge::duration(whole->seconds)),
                 text(edge::integer(whole->energy_joules / kJoulesPerMegawattHour)),
                 whole->cost_usd ? "$" + text(edge::integer(*whole->cost_usd)) : QString("price of a node not known")));
  } else {
    costs_->setText("Say how many tokens the training has (left) to see its days, energy and cost.");
  }
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
    words_->setPlainText("Playing plans and machines one change away …");
    thinker_.post(evaluation);
  }
  ask_spread();
}

void ExplainView::ask_spread() {
  spread_current_ = false;
  const auto& evaluation = document_.evaluation();
  if (!wanted_ || !document_.settled() || !evaluation->runs()) return;
  spread_.reset();
  band_->set_hint(QString("Playing every rank %1 times …").arg(spread_samples(*evaluation)));
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
    band_->set_hint("Comes when the plan has been played.");
    return band_->set_band(std::nullopt, {}, {});
  }
  const auto words = [](double s) { return text(report::precise_seconds(s)); };
  band_->set_band(report::Band{spread_->p5_s, spread_->p50_s, spread_->p95_s, spread_->nominal_s}, "without chance",
                  words);
  const double chance = spread_->p50_s / spread_->nominal_s - 1;
  const double shared = spread_->nominal_s / evaluation->figures.iteration_s - 1;
  QString played =
      QString("%1 plays of every rank, op by op, and one without chance: the dashed line.").arg(spread_->samples);
  if (chance >= kWorthSaying) {
    played += QString(" Chance costs %1: who works together waits for the latest.").arg(text(edge::percent(chance)));
  }
  if (shared >= kWorthSaying) {
    played += QString(" Links that are shared cost %1 more than the figure on top.").arg(text(edge::percent(shared)));
  } else if (shared <= -kWorthSaying) {
    played += QString(" Op by op it takes %1 less than the figure on top.").arg(text(edge::percent(-shared)));
  }
  sure_->setText(played);
  band_->setToolTip(QString("Of %1 plays of every rank, 5 % took less than %2, half less than %3, 95 % less than %4.")
                        .arg(spread_->samples)
                        .arg(words(spread_->p5_s), words(spread_->p50_s), words(spread_->p95_s)));
}

void ExplainView::show_insight(Insight found) {
  insight_ = std::move(found);
  current_ = true;
  QString page;
  for (const std::string& sentence : insight_.sentences) page += "<p>" + text(sentence).toHtmlEscaped() + "</p>";
  words_->setHtml(page);
  machine_->set_gains(insight_.machine);
  std::vector<Sensitivity> plans = insight_.plans;
  std::stable_sort(plans.begin(), plans.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::make_pair(!a.refusal.empty(), a.gain) < std::make_pair(!b.refusal.empty(), b.gain);
  });
  plans_->set_gains(std::move(plans));
}

}  // namespace trivium::gui
