#include "gui/views/what_if_view.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QStandardItemModel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"

namespace trivium::gui {
namespace {

constexpr int kLeastPlan = 200;       // pixels of the column with the best plan
constexpr int kLeastHeight = 70;      // pixels of table and picture
constexpr double kMostOfTable = 0.6;  // of the height of both
constexpr int kLeastRows = 3;         // that the table has room for, answered or not
constexpr double kSecondsPerDay = 86400;

enum Column { kChange, kIteration, kInterval, kTokens, kMfu, kMemory, kFits, kTraining, kPrice, kPlan, kColumns };
constexpr const char* kTitles[kColumns] = {"What if",     "Iteration", "90 % within", "Tokens/s", "MFU",
                                           "Peak memory", "Fits",      "Training",    "Price",    "Best plan"};

std::array<QString, kColumns> cells_of(const WhatIfRow& row) {
  std::array<QString, kColumns> cells;
  cells.fill("–");
  cells[kChange] = text(row.change);
  if (!row.best) {
    cells[kPlan] = text(row.refused);
    return cells;
  }
  const simulator::Simulation& s = row.best->simulation;
  cells[kIteration] = text(seconds_words(s.iteration_s));
  cells[kInterval] = text(as_figures(simulator::interval_text(s.certainty.iteration_s, s.iteration_s)));
  cells[kTokens] = text(base::integer(s.tokens_per_s));
  cells[kMfu] = text(simulator::mfu_text(s.mfu, row.best->plan));
  cells[kMemory] = text(base::size(s.peak_memory_bytes));
  cells[kFits] = text(simulator::probability_text(s.certainty.fit_probability));
  if (row.training) cells[kTraining] = text(base::duration(row.training->seconds));
  if (row.training && row.training->cost_usd) cells[kPrice] = text(base::dollars(*row.training->cost_usd));
  cells[kPlan] = text(display_name(program::summary(row.best->plan)));
  return cells;
}

/// Ticks of what doubles stand at what was asked: `first`, twice it, …
Axis doubling_axis(const QString& title, double first) {
  Axis axis;
  axis.title = title;
  axis.text = [first](double power) {
    const double value = first * std::exp2(power);
    return std::abs(power - std::round(power)) < 1e-9 ? text(base::integer(value)) : QString();
  };
  return axis;
}

}  // namespace

WhatIfView::WhatIfView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      question_(new QComboBox),
      value_(new QLineEdit),
      ask_(new QPushButton("Ask")),
      cancel_(new QPushButton("Cancel")),
      use_(new QPushButton("Use this")),
      refusal_(new QLabel),
      sentence_(new QLabel),
      command_(new CommandField("The same question on the command line")),
      table_(new QTableWidget),
      halves_(new FittedSplitter("what if table above picture")),
      chart_(new LineChart("The answers along what is asked")),
      thinker_(
          [this](const Asked& asked, const std::stop_token& stop) {
            return answer_of(asked.request, stop, [this, number = asked.number](const std::string& words) {
              QMetaObject::invokeMethod(
                  this,
                  [this, number, words] {
                    if (asking_ && number == number_) sentence_->setText("Searching: " + text(words) + " …");
                  },
                  Qt::QueuedConnection);
            });
          },
          [this](WhatIfAnswer answer) { show_answer(std::move(answer)); }) {
  setFocusProxy(question_);
  set_up_table();
  halves_->addWidget(table_);
  halves_->addWidget(chart_);
  halves_->set_share([this](int height) {
    const int whole = whole_height(*table_, table_->horizontalHeader()->height(), kLeastRows);
    return std::min(whole, static_cast<int>(kMostOfTable * height));
  });
  chart_->setMinimumHeight(kLeastHeight);
  chart_->set_hint("The answers are drawn here.");
  auto* all = new QVBoxLayout(this);
  all->addLayout(make_question());
  all->addWidget(refusal_);
  all->addLayout(make_answer());
  all->addWidget(halves_, 1);
  all->addWidget(command_);
  connect(&document_, &Document::scenario_changed, this, [this] {
    offer_questions();
    own_value_ ? show_request() : show_question();
    show_words();
  });
}

QHBoxLayout* WhatIfView::make_question() {
  for (const QuestionTraits& traits : question_table()) question_->addItem(traits.words);
  question_->setAccessibleName("Question");
  value_->setAccessibleName("What the question takes");
  refusal_->setAccessibleName("Why it cannot be asked");
  refusal_->setWordWrap(true);
  cancel_->setEnabled(false);
  auto* words = new QLabel("What if:");
  words->setBuddy(question_);
  connect(question_, &QComboBox::currentIndexChanged, this, [this] { show_question(); });
  connect(value_, &QLineEdit::textEdited, this, [this] {
    own_value_ = true;
    show_request();
  });
  connect(value_, &QLineEdit::returnPressed, this, [this] { ask(); });
  connect(ask_, &QPushButton::clicked, this, [this] { ask(); });
  connect(cancel_, &QPushButton::clicked, this, [this] { cancel(); });
  auto* row = new QHBoxLayout;
  row->addWidget(words);
  row->addWidget(question_);
  row->addWidget(value_, 1);
  row->addWidget(ask_);
  row->addWidget(cancel_);
  return row;
}

QHBoxLayout* WhatIfView::make_answer() {
  sentence_->setAccessibleName("Answer");
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  sentence_->setText("Choose a question and press Ask: every row is a search for the best plan there.");
  use_->setEnabled(false);
  use_->setToolTip("Make the job, cluster and plan of the selected row those of this window");
  connect(use_, &QPushButton::clicked, this, [this] { use(table_->currentRow()); });
  auto* row = new QHBoxLayout;
  row->addWidget(sentence_, 1);
  row->addWidget(use_);
  return row;
}

void WhatIfView::set_up_table() {
  table_->setAccessibleName("Answers");
  table_->setColumnCount(kColumns);
  for (int c = 0; c < kColumns; ++c) table_->setHorizontalHeaderItem(c, new QTableWidgetItem(kTitles[c]));
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAlternatingRowColors(true);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setStretchLastSection(true);
  connect(table_->horizontalHeader(), &QHeaderView::sectionResized, table_, &QTableWidget::resizeRowsToContents,
          Qt::QueuedConnection);
  connect(
      table_->verticalHeader(), &QHeaderView::sectionResized, this, [this] { halves_->fit(); }, Qt::QueuedConnection);
  table_->setMinimumHeight(kLeastHeight);
  auto* copy = new QAction("Copy the row", table_);
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetShortcut);
  connect(copy, &QAction::triggered, this, [this] {
    if (table_->currentRow() < 0) return;
    QStringList cells;
    for (int c = 0; c < kColumns; ++c) cells << table_->item(table_->currentRow(), c)->text();
    QGuiApplication::clipboard()->setText(cells.join('\t'));
  });
  auto* use_row = new QAction("Use this", table_);
  connect(use_row, &QAction::triggered, this, [this] { use(table_->currentRow()); });
  table_->addActions({use_row, copy});
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(table_, &QTableWidget::doubleClicked, this, [this](const QModelIndex& index) { use(index.row()); });
  connect(table_, &QTableWidget::itemSelectionChanged, this, [this] {
    const int row = table_->currentRow();
    use_->setEnabled(row >= 0 && answer_.rows[static_cast<std::size_t>(row)].best);
  });
}

WhatIfRequest WhatIfView::request() const { return {chosen(), value_->text().toStdString(), document_.scenario()}; }

void WhatIfView::offer_questions() {
  const bool alike = document_.scenario().cluster.homogeneous();
  auto* choices = qobject_cast<QStandardItemModel*>(question_->model());
  int first = -1;
  for (int q = 0; q < choices->rowCount(); ++q) {
    const bool can_be = alike || !needs_like_nodes(static_cast<Question>(q));
    choices->item(q)->setEnabled(can_be);
    choices->item(q)->setToolTip(can_be ? QString() : QString("This needs a cluster of one kind of node."));
    if (can_be && first < 0) first = q;
  }
  if (!choices->item(question_->currentIndex())->isEnabled()) question_->setCurrentIndex(first);
}

void WhatIfView::show_question() {
  const QuestionTraits& traits = traits_of(chosen());
  own_value_ = false;
  value_->setEnabled(*traits.takes != '\0');
  value_->setPlaceholderText(traits.takes);
  value_->setToolTip(traits.takes);
  value_->setText(text(usual_value(chosen(), document_.scenario())));
  show_request();
}

void WhatIfView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  show_request();
}

void WhatIfView::show_request() {
  const WhatIfRequest wanted = request();
  const std::string why = why_not_asked(wanted);
  refusal_->setVisible(!why.empty());
  refusal_->setText(QString("<span style='color:%1'>%2</span>").arg(alarm_colour().name(), text(why).toHtmlEscaped()));
  ask_->setEnabled(why.empty());
  if (!isVisible()) return;  // turns of plan controls elsewhere need no command
  command_->set_command(why.empty() ? text(command_line(wanted)) : QString());
}

void WhatIfView::ask() {
  WhatIfRequest wanted = request();
  if (!why_not_asked(wanted).empty()) return;
  asking_ = true;
  cancel_->setEnabled(true);
  sentence_->setText("Searching …");
  answer_ = {};
  show_table();
  show_chart();
  thinker_.post({std::move(wanted), ++number_});
}

void WhatIfView::cancel() {
  if (!asking_) return;
  sentence_->setText("Ending with the rows so far …");
  thinker_.finish_early();
}

void WhatIfView::use(int row) {
  if (row < 0 || row >= table_->rowCount() || !answer_.rows[static_cast<std::size_t>(row)].best) return;
  const WhatIfRow& chosen_row = answer_.rows[static_cast<std::size_t>(row)];
  document_.edit(chosen_row.scenario, "what if: " + text(chosen_row.change));
}

void WhatIfView::show_answer(WhatIfAnswer answer) {
  answer_ = std::move(answer);
  asking_ = false;
  cancel_->setEnabled(false);
  show_words();
  show_table();
  show_chart();
}

void WhatIfView::show_words() {
  if (asking_ || number_ == 0) return;
  QString words = text(answer_.sentence);
  if (words.isEmpty()) words = answer_.rows.empty() ? QString("No plan fits.") : QString();
  if (!answer_.whole) words = QString("Stopped early. ") + words;
  if (!same_job(answer_.request.scenario, document_.scenario())) {
    words = QString("Asked of %1: ask again for this job. ").arg(text(job_words(answer_.request.scenario))) + words;
  }
  sentence_->setText(words);
}

void WhatIfView::show_table() {
  const QSignalBlocker quiet(table_);
  table_->clearContents();
  table_->setRowCount(static_cast<int>(answer_.rows.size()));
  for (int r = 0; r < table_->rowCount(); ++r) {
    const auto cells = cells_of(answer_.rows[static_cast<std::size_t>(r)]);
    for (int c = 0; c < kColumns; ++c) {
      auto* item = new QTableWidgetItem(cells[static_cast<std::size_t>(c)]);
      if (c != kChange && c != kPlan) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      if (c == kPlan) item->setToolTip(item->text());
      table_->setItem(r, c, item);
    }
  }
  table_->resizeColumnsToContents();
  table_->setColumnWidth(kPlan, kLeastPlan);  // it takes what is left, in as many lines as that needs
  table_->resizeRowsToContents();
  halves_->fit();
  use_->setEnabled(false);
  if (table_->rowCount() == 0) return;
  table_->selectRow(0);
  use_->setEnabled(answer_.rows.front().best.has_value());
}

void WhatIfView::show_chart() {
  const QuestionTraits& traits = traits_of(answer_.request.question);
  const bool in_days = answer_.request.question == Question::kPrice;
  const bool of_iterations = answer_.request.question == Question::kMemory;
  Line predicted{"predicted", series_colour(0), {}};
  Line low{"90 % of measurements lie between", series_colour(1), {}}, high{"", series_colour(1), {}};
  Line ideal{"if every device did as much as at first", link_colour(palette()), {}};
  double most_s = 0, first = 0;
  for (const WhatIfRow& row : answer_.rows) {
    if (row.best && (first == 0 || row.at < first)) first = row.at;
  }
  for (const WhatIfRow& row : answer_.rows) {
    if (!row.best) continue;
    const simulator::Simulation& s = row.best->simulation;
    const double x = traits.doubles ? std::log2(row.at / first) : row.at;
    const auto y = [&](double iteration_s) {
      if (in_days) return row.training->seconds * iteration_s / s.iteration_s / kSecondsPerDay;
      return of_iterations ? iteration_s : s.tokens_per_s * s.iteration_s / iteration_s;
    };
    predicted.points.emplace_back(x, y(s.iteration_s));
    low.points.emplace_back(x, y(s.certainty.iteration_s.high));
    high.points.emplace_back(x, y(s.certainty.iteration_s.low));
    if (row.efficiency > 0) ideal.points.emplace_back(x, s.tokens_per_s / row.efficiency);
    most_s = std::max(most_s, s.certainty.iteration_s.high);
  }
  if (in_days || of_iterations) std::swap(low.points, high.points);
  std::vector<Line> lines;
  if (!ideal.points.empty()) lines.push_back(std::move(ideal));  // below what it is compared with
  for (Line* line : {&low, &high, &predicted}) lines.push_back(std::move(*line));
  for (Line& line : lines) {
    std::sort(line.points.begin(), line.points.end(), [](const QPointF& a, const QPointF& b) { return a.x() < b.x(); });
  }
  if (lines.back().points.size() < 2) lines.clear();
  Axis x = traits.doubles ? doubling_axis(traits.axis, first) : Axis{};
  Axis y;
  if (!traits.doubles) {
    x.title = traits.axis;
    x.text = [of_iterations](double v) {
      return text(of_iterations ? base::size(static_cast<std::int64_t>(v)) : base::dollars(v));
    };
    if (of_iterations) x.unit = byte_unit(answer_.rows.empty() ? 1 : answer_.rows.front().at);
  }
  y.title = in_days ? "days of training" : of_iterations ? "iteration" : "tokens/s";
  y.seconds = of_iterations;
  y.text = [of_iterations, in_days](double v) {
    if (of_iterations) return text(seconds_words(v));
    return in_days ? QString::number(v, 'g', 3) : text(base::integer(v));
  };
  chart_->set_hint(answer_.rows.size() == 1 ? "One answer draws no line." : "The answers are drawn here.");
  chart_->set_lines(std::move(lines), std::move(x), std::move(y), 0, true);
}

}  // namespace trivium::gui
