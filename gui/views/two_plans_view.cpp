#include "gui/views/two_plans_view.h"

#include <fmt/format.h>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/timeline/spans/time_text.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr const char* kHint =
    "Pin a plan (Ctrl+D) or search, then choose two plans above: their timelines stand here on one axis, below is what "
    "makes the difference.";
constexpr double kPsPerSecond = 1e12;
constexpr std::array<const char*, 2> kNames{"first", "second"};

QString seconds(double s) { return text(seconds_words(s)); }
QString short_time(double s) { return text(time_text(std::llround(s * kPsPerSecond))); }

}  // namespace

QString difference_words(const std::array<double, 2>& s) {
  constexpr double kRounding = 1e-6;
  const double change = s[1] - s[0];
  if (std::abs(change) <= kRounding * std::max(s[0], s[1])) return "none";
  return (change < 0 ? "−" : "+") + short_time(std::abs(change));
}

TwoPlansView::TwoPlansView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      which_{new ElidedComboBox, new ElidedComboBox},
      summary_(new QLabel),
      canvas_(new TimelineCanvas),
      waterfall_(new WaterfallChart("From one iteration to the other")),
      table_(new QTreeWidget),
      worker_(
          [](const Request& asked, const std::stop_token& stop) {
            return Answer{plan_difference(asked.scenarios, asked.known, stop), asked.names};
          },
          [this](Answer answer) { take(std::move(answer)); }) {
  setAccessibleName("Two plans");
  setFocusProxy(canvas_);
  canvas_->setAccessibleName("Two plans on one axis");
  canvas_->set_hint(kHint);
  canvas_->set_path_shown(false);
  canvas_->set_arrows_shown(false);
  canvas_->set_folds_to_fit(true);  // both are seen
  summary_->setWordWrap(true);
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* bar = new QHBoxLayout;
  for (const std::size_t w : {0, 1}) {
    which_[w]->setAccessibleName(w == 0 ? "First plan" : "Second plan");
    which_[w]->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    which_[w]->setMinimumContentsLength(24);
    auto* label = new QLabel(w == 0 ? "From" : "to");
    label->setBuddy(which_[w]);
    bar->addWidget(label);
    bar->addWidget(which_[w], 1);
    connect(which_[w], &QComboBox::activated, this, [this] { ask(); });
    connect(which_[w], &QComboBox::currentTextChanged, which_[w], &QWidget::setToolTip);
  }
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("two plans canvas and difference");
  split->addWidget(canvas_);
  split->addWidget(make_lower());
  for (const int half : {0, 1}) split->setStretchFactor(half, 1);
  split->setSizes({420, 300});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(6, 6, 6, 6);
  column->addLayout(bar);
  column->addWidget(summary_);
  column->addWidget(split, 1);
  connect(&document_, &Document::evaluated, this, [this] { refresh(); });
  connect(&document_, &Document::scenario_changed, this, [this] {
    worker_.cancel();
    busy_ = false;
    asked_.clear();
    say_nothing("Comes when the plan has been simulated.");
  });
}

QWidget* TwoPlansView::make_lower() {
  auto* lower = new QSplitter;
  lower->setObjectName("two plans waterfall and ops");
  auto* left = new QWidget;
  auto* left_column = new QVBoxLayout(left);
  left_column->setContentsMargins(0, 0, 0, 0);
  left_column->addWidget(new QLabel("<b>Where an iteration wins and loses</b>, mean over ranks"));
  left_column->addWidget(waterfall_, 1);
  waterfall_->set_hint("The parts of an iteration that make the difference come here.");
  table_->setAccessibleName("Difference by op");
  table_->setColumnCount(4);
  table_->setHeaderLabels({"Op, time a rank", "First", "Second", "Difference"});
  table_->setRootIsDecorated(false);
  table_->setTextElideMode(Qt::ElideMiddle);  // ops differ at their beginning and at their end
  table_->setUniformRowHeights(true);
  table_->setAlternatingRowColors(true);
  table_->header()->setStretchLastSection(false);
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  lower->addWidget(left);
  lower->addWidget(table_);
  lower->setSizes({560, 460});
  return lower;
}

void TwoPlansView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void TwoPlansView::refresh() {
  const auto& evaluation = document_.evaluation();
  if (!isVisible() || !evaluation || !document_.settled()) return;
  const std::array<QString, 2> kept{which_[0]->currentText(), which_[1]->currentText()};
  const program::Plan& now = document_.scenario().file.job.plan;
  offered_ = {{"this plan: " + text(display_name(program::summary(now))), now}};
  for (Choice& choice : choices ? choices() : std::vector<Choice>{}) {
    if (program::to_json(choice.plan) != program::to_json(now)) offered_.push_back(std::move(choice));
  }
  for (const std::size_t w : {0, 1}) {
    const QSignalBlocker quiet(which_[w]);
    which_[w]->clear();
    for (const Choice& choice : offered_) which_[w]->addItem(choice.name);
    const int before = which_[w]->findText(kept[w]);
    which_[w]->setCurrentIndex(before > 0 ? before : std::min<int>(static_cast<int>(w), which_[w]->count() - 1));
    which_[w]->setToolTip(which_[w]->currentText());
    which_[w]->setEnabled(offered_.size() > 1);
  }
  ask();
}

Scenario TwoPlansView::scenario_of(int choice) const {
  Scenario scenario = document_.scenario();
  scenario.file.job.plan = offered_.at(static_cast<std::size_t>(choice)).plan;
  return scenario;
}

void TwoPlansView::ask() {
  const int first = which_[0]->currentIndex(), second = which_[1]->currentIndex();
  if (first < 0 || second < 0 || first == second) {
    worker_.cancel();
    busy_ = false;
    asked_.clear();
    return say_nothing(offered_.size() > 1 ? "Choose two different plans above." : kHint);
  }
  Request request{{scenario_of(first), scenario_of(second)},
                  {which_[0]->currentText(), which_[1]->currentText()},
                  document_.evaluation()};
  std::string asked;
  for (const Scenario& scenario : request.scenarios) asked += program::to_json(scenario.file).dump();
  if (asked == asked_) return;
  asked_ = std::move(asked);
  busy_ = true;
  summary_->setText("Simulating both …");
  worker_.post(std::move(request));
}

void TwoPlansView::say_nothing(const QString& why) {
  difference_ = {};
  canvas_->set_hint(why);
  canvas_->set_timelines({}, {});
  waterfall_->clear();
  table_->clear();
  summary_->clear();
}

void TwoPlansView::take(Answer answer) {
  busy_ = false;
  if (!answer.difference.refusal.empty()) return say_nothing(text(display_name(answer.difference.refusal)));
  difference_ = std::move(answer.difference);
  std::vector<SceneTimeline> timelines;
  std::vector<QString> names;
  for (const std::size_t w : {0, 1}) {
    timelines.push_back({difference_.spans[w], nullptr, nullptr});
    names.push_back(answer.names[w]);
  }
  canvas_->set_timelines(std::move(timelines), std::move(names));
  const double from = difference_.plans[0]->figures.iteration_s, to = difference_.plans[1]->figures.iteration_s;
  summary_->setText(QString("<b>%1 to %2: %3 %</b> an iteration")
                        .arg(seconds(from), seconds(to),
                             (to < from ? "−" : "+") + QString::number(std::abs(100 * (to / from - 1)), 'f', 1)));
  std::vector<WaterfallStep> steps;
  // Of the plan with replicas, where one of them has.
  const program::Mesh* mesh = &difference_.plans[0]->program->mesh;
  if (mesh->group_size(program::Group::kData) < 2) mesh = &difference_.plans[1]->program->mesh;
  for (const PartDifference& part : difference_.parts) {
    steps.push_back({part_words(part.part, mesh), part.change(), part_colour(part.part)});
  }
  waterfall_->set_steps(kNames[0], from, kNames[1], std::move(steps), short_time);
  show_table();
}

void TwoPlansView::show_table() {
  table_->clear();
  QList<QTreeWidgetItem*> lines;
  for (const OpDifference& op : difference_.ops) {
    const auto told = [&](std::size_t w) { return op.spans[w] > 0 ? short_time(op.seconds[w]) : QString("–"); };
    auto* line = new QTreeWidgetItem({text(op.name), told(0), told(1), difference_words(op.seconds)});
    const Colour colour = colour_of(op.category.hue);
    QPixmap swatch(12, 12);
    swatch.fill(QColor(colour.red, colour.green, colour.blue));
    line->setIcon(0, swatch);
    line->setToolTip(0, QString("%1; a rank has %2 and %3 of them")
                            .arg(text(op.category.name))
                            .arg(op.spans[0], 0, 'f', op.spans[0] == std::floor(op.spans[0]) ? 0 : 1)
                            .arg(op.spans[1], 0, 'f', op.spans[1] == std::floor(op.spans[1]) ? 0 : 1));
    if (op.name == "waiting") {
      line->setToolTip(0,
                       "Of all lanes: one that communicates waits for its partner while others compute. What that "
                       "costs an iteration stands at the left, as bubble and exposed communication.");
    }
    for (const int column : {1, 2, 3}) line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    lines << line;
  }
  table_->addTopLevelItems(lines);
}

std::string TwoPlansView::csv() const {
  std::string rows = "what,name,first_s,second_s,difference_s\n";
  const auto add = [&](const char* what, const std::string& name, const std::array<double, 2>& s) {
    fmt::format_to(std::back_inserter(rows), "{},\"{}\",{:.9g},{:.9g},{:.9g}\n", what, name, s[0], s[1], s[1] - s[0]);
  };
  for (const PartDifference& part : difference_.parts) {
    add("part", part_words(part.part).toStdString(), part.seconds);
  }
  for (const OpDifference& op : difference_.ops) add("op", op.name, op.seconds);
  return rows;
}

}  // namespace trivium::gui
