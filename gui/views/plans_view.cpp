#include "gui/views/plans_view.h"

#include <fmt/format.h>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QResizeEvent>
#include <QSplitter>
#include <QTextLayout>
#include <QTextOption>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "gui/look/theme.h"
#include "gui/model/display_name.h"
#include "gui/model/plan_controls.h"
#include "planner/advice/why_not.h"
#include "planner/space/held.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr int kBest = 25;          // answers asked of a search
constexpr int kSlimmestPin = 150;  // pixels of a column of the comparison
constexpr int kHeaderMargin = 16;  // pixels of a header beside its words

QString text(const std::string& s) { return QString::fromStdString(s); }

bool equal(const program::Plan& a, const program::Plan& b) { return program::to_json(a) == program::to_json(b); }

/// "A", "B", … by which pinned plans are told apart.
QString letter(std::size_t pin) { return QString(QChar('A' + static_cast<char>(pin))); }

/// In as many lines as it takes.
QString wrapped(const QString& words, const QFont& font, double width) {
  QTextOption option;
  option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  QTextLayout layout(words, font);
  layout.setTextOption(option);
  layout.beginLayout();
  QStringList lines;
  for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
    line.setLineWidth(width);
    lines << words.mid(line.textStart(), line.textLength()).trimmed();
  }
  layout.endLayout();
  return lines.join('\n');
}

QString why_not_words(const program::Plan& plan, const program::Plan& other, const Scenario& scenario,
                      const std::stop_token& stop) {
  program::Job chosen = scenario.file.job, favourite = scenario.file.job;
  chosen.plan = plan;
  favourite.plan = other;
  planner::WhyNot why;
  try {
    why = planner::why_not(chosen, favourite, scenario.cluster, stop);
  } catch (const base::Failure& failure) {
    return text(display_name(failure.error().message));
  }
  QStringList lines{text(display_name(program::summary(other))), ""};
  for (const std::string& sentence : why.sentences) lines << text(display_name(sentence));
  if (!why.differences.empty()) lines << "";
  for (const program::Difference& difference : why.differences) {
    const auto value = [&](const std::string& set) {
      return set.empty() ? QString("all alike") : text(shown(difference.field, set));
    };
    lines << QString("%1: %2 instead of %3")
                 .arg(text(words_of(difference.field)), value(difference.after), value(difference.before));
  }
  return lines.join('\n');
}

/// One line across a table that has nothing to list.
void say_in(QTableWidget& table, const QString& words) {
  table.setRowCount(1);
  table.setSpan(0, 0, 1, table.columnCount());
  table.setItem(0, 0, new QTableWidgetItem(words));
}

QTableWidget* plain_table(const QString& name) {
  auto* table = new QTableWidget;
  table->setAccessibleName(name);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->verticalHeader()->hide();
  table->setAlternatingRowColors(true);
  return table;
}

}  // namespace

PlansView::PlansView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      search_(new QPushButton("&Search the best plan")),
      cancel_(new QPushButton("&Cancel")),
      progress_(new QProgressBar),
      status_(new QLabel),
      filter_(new QLineEdit),
      table_(new QTableView),
      scatter_(new ScatterChart("Plans by time and memory")),
      against_(new QComboBox),
      comparison_(plain_table("Pinned plans side by side")),
      rejected_(plain_table("Plans that cannot run")),
      why_(new QLabel),
      below_(new QTabWidget),
      searcher_([this](const Scenario& scenario, const std::stop_token& stop) { return run(scenario, stop); },
                [this](const Found& found) { show_result(found); }),
      pinner_(
          [](const auto& asked, const std::stop_token& stop) {
            std::vector<PlanRow> rows;
            for (const auto& [plan, scenario] : asked) {
              if (stop.stop_requested()) break;
              Scenario one = scenario;
              one.file.job.plan = plan;
              const Evaluation evaluation = evaluate(one, Depth::kFull, stop);
              if (!evaluation.runs()) continue;
              rows.push_back(row_of(plan, evaluation.figures, one.cluster));
              rows.back().job = job_words(one);
            }
            return rows;
          },
          [this](std::vector<PlanRow> rows) {
            pins_ = std::move(rows);
            show_pins();
          }),
      asker_([](const WhyRequest& asked,
                const std::stop_token& stop) { return why_not_words(asked.chosen, asked.other, asked.scenario, stop); },
             [this](const QString& words) { why_->setText(words); }) {
  proxy_.setSourceModel(&model_);
  proxy_.setSortRole(PlansModel::kSortRole);
  proxy_.setFilterKeyColumn(-1);
  proxy_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  table_->setModel(&proxy_);
  table_->setAccessibleName("Plans");
  table_->setSortingEnabled(true);
  table_->sortByColumn(PlansModel::kIteration, Qt::AscendingOrder);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAlternatingRowColors(true);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(PlansModel::kPlan, QHeaderView::Stretch);
  filter_->setPlaceholderText("Filter: TP8, ZeRO-1, full …");
  filter_->setAccessibleName("Filter of plans");
  filter_->setClearButtonEnabled(true);
  progress_->setAccessibleName("Progress of the search");
  progress_->setMaximumWidth(220);
  progress_->setTextVisible(false);
  status_->setAccessibleName("State of the search");
  status_->setText("No search yet: press Search, or change a field of the plan.");
  cancel_->setEnabled(false);
  against_->addItems({"peak memory", "cost a step"});
  against_->setAccessibleName("What time is drawn against");
  scatter_->set_hint("A search draws its plans here: time against memory or cost, with the Pareto front.");
  why_->setWordWrap(true);
  why_->setAlignment(Qt::AlignTop);
  why_->setMargin(8);
  why_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  why_->setText("Select a plan of the table and press “Why not?” to see what makes it slower than the fastest.");
  comparison_->viewport()->installEventFilter(this);
  rejected_->setColumnCount(3);
  rejected_->setHorizontalHeaderLabels({"Plans", "Split", "Why they cannot run"});
  say_in(*rejected_, "A search lists here what it refuses, and why.");

  auto* use_button = new QPushButton("&Use this plan");
  auto* pin_button = new QPushButton("&Pin");
  auto* pin_current_button = new QPushButton("Pin curr&ent");
  auto* unpin_button = new QPushButton("Unpin all");
  auto* why_button = new QPushButton("Why &not?");
  auto* why_current_button = new QPushButton("Why not c&urrent?");
  why_current_button->setToolTip("What makes the current plan slower than the best of the table, or rules it out");
  auto* top = new QHBoxLayout;
  top->addWidget(search_);
  top->addWidget(cancel_);
  top->addWidget(progress_);
  top->addWidget(status_, 1);
  auto* row = new QHBoxLayout;
  row->addWidget(filter_, 1);
  for (QPushButton* button :
       {use_button, pin_button, pin_current_button, unpin_button, why_button, why_current_button}) {
    row->addWidget(button);
  }
  auto* list = new QWidget;
  auto* list_layout = new QVBoxLayout(list);
  list_layout->setContentsMargins(0, 0, 0, 0);
  list_layout->addLayout(row);
  list_layout->addWidget(table_);
  auto* picture = new QWidget;
  auto* picture_layout = new QVBoxLayout(picture);
  picture_layout->setContentsMargins(0, 0, 0, 0);
  auto* axis_row = new QHBoxLayout;
  axis_row->addWidget(new QLabel("Iteration time against"));
  axis_row->addWidget(against_);
  axis_row->addStretch();
  picture_layout->addLayout(axis_row);
  picture_layout->addWidget(scatter_, 1);
  below_->addTab(comparison_, "Pinned side by side");
  below_->addTab(why_, "Why not this one?");
  below_->addTab(rejected_, "Cannot run");
  auto* bottom = new QSplitter(Qt::Horizontal);
  bottom->addWidget(picture);
  bottom->addWidget(below_);
  bottom->setSizes({500, 500});
  auto* both = new QSplitter(Qt::Vertical);
  both->addWidget(list);
  both->addWidget(bottom);
  both->setSizes({400, 420});
  auto* all = new QVBoxLayout(this);
  all->addLayout(top);
  all->addWidget(both, 1);

  connect(search_, &QPushButton::clicked, this, [this] { search(); });
  connect(cancel_, &QPushButton::clicked, this, [this] { cancel(); });
  connect(filter_, &QLineEdit::textChanged, &proxy_, &QSortFilterProxyModel::setFilterFixedString);
  connect(use_button, &QPushButton::clicked, this, [this] { use(selected()); });
  connect(pin_button, &QPushButton::clicked, this, [this] { pin(selected()); });
  connect(pin_current_button, &QPushButton::clicked, this, [this] { pin_current(); });
  connect(unpin_button, &QPushButton::clicked, this, [this] { unpin_all(); });
  connect(why_button, &QPushButton::clicked, this, [this] { explain_why_not(selected()); });
  connect(why_current_button, &QPushButton::clicked, this, [this] { explain_why_not_current(); });
  connect(table_, &QTableView::doubleClicked, this, [this](const QModelIndex& index) { use(source_row(index)); });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) { scatter_->set_selected(now.isValid() ? source_row(now) : -1); });
  connect(against_, &QComboBox::currentIndexChanged, this, [this] { show_scatter(); });
  scatter_->on_select = [this](int point) {
    if (point < model_.rowCount()) table_->selectRow(proxy_.mapFromSource(model_.index(point, 0)).row());
  };
  connect(&document_, &Document::evaluated, this, [this] {
    if (document_.settled()) show_scatter();
  });
  connect(&document_, &Document::scenario_changed, this, [this] { show_status(); });
  show_pins();
}

PlansView::Found PlansView::run(const Scenario& scenario, const std::stop_token& stop) {
  const planner::SearchRequest request = search_request(scenario, kBest);
  auto result = planner::search(request, 0, stop, [&](std::int64_t done, std::int64_t all, double best_s) {
    QMetaObject::invokeMethod(
        this, [this, done, all, best_s] { show_progress(done, all, best_s); }, Qt::QueuedConnection);
  });
  return {std::move(result), scenario};
}

void PlansView::search() {
  searching_ = true;
  cancel_->setEnabled(true);
  progress_->setRange(0, 0);
  status_->setText("Enumerating plans …");
  searcher_.post(document_.scenario());
}

void PlansView::cancel() {
  if (!searching_) return;
  status_->setText("Ending with the best so far …");
  searcher_.finish_early();
}

void PlansView::show_progress(std::int64_t done, std::int64_t all, double best_s) {
  if (!searching_) return;
  progress_->setRange(0, 1000);
  progress_->setValue(all > 0 ? static_cast<int>(done * 1000 / all) : 0);
  QString words =
      QString("%1 of %2 plans")
          .arg(text(base::integer(static_cast<double>(done))), text(base::integer(static_cast<double>(all))));
  if (best_s > 0) words += QString(", best so far %1").arg(text(base::seconds(best_s)));
  status_->setText(words);
}

void PlansView::show_result(const Found& found) {
  searching_ = false;
  searched_ = found.scenario;
  cancel_->setEnabled(false);
  progress_->setRange(0, 1000);
  progress_->setValue(1000);
  const planner::SearchResult& result = found.result;
  std::vector<PlanRow> rows;
  for (const auto* candidates : {&result.best, &result.others}) {
    for (const planner::Candidate& candidate : *candidates) {
      rows.push_back(row_of(candidate.plan, candidate.simulation, found.scenario.cluster));
      rows.back().job = job_words(found.scenario);
    }
  }
  model_.set_rows(std::move(rows));
  const auto count = [](std::int64_t n) { return text(base::integer(static_cast<double>(n))); };
  QString words = result.best.empty() ? QString("No plan fits. ") : QString();
  words += QString("%1 plans: %2 cannot run, %3 proved slower, %4 simulated in %5; %6")
               .arg(count(result.plans_in_space), count(result.plans_infeasible), count(result.plans_bounded),
                    count(result.plans_simulated), text(base::seconds(result.seconds)),
                    result.proved ? "none of the space is faster" : "stopped early, others may be faster");
  if (const std::string room = planner::room_text(search_request(found.scenario, kBest)); !room.empty()) {
    words += text("; " + room + fmt::format(", to fit with probability {}", planner::kFitProbability));
  }
  for (const planner::Alternative& one : result.alternatives) {
    words +=
        QString("\n%1 (%2): %3")
            .arg(text(one.name), text(one.nodes),
                 one.best ? text(base::seconds(one.best->simulation.iteration_s)) : text(display_name(one.why_not)));
  }
  found_words_ = words;
  show_status();
  std::vector<planner::Rejected> rejected = result.rejected;
  std::stable_sort(rejected.begin(), rejected.end(), [](const auto& a, const auto& b) { return a.plans > b.plans; });
  rejected_->clearSpans();
  rejected_->setRowCount(static_cast<int>(rejected.size()));
  for (int i = 0; i < static_cast<int>(rejected.size()); ++i) {
    const planner::Rejected& one = rejected[static_cast<std::size_t>(i)];
    rejected_->setItem(i, 0, new QTableWidgetItem(count(one.plans)));
    rejected_->setItem(i, 1, new QTableWidgetItem(text(display_name(one.family))));
    rejected_->setItem(i, 2, new QTableWidgetItem(text(display_name(one.reason))));
    rejected_->item(i, 2)->setToolTip(rejected_->item(i, 2)->text());
  }
  if (rejected.empty()) say_in(*rejected_, "Nothing was refused.");
  rejected_->resizeColumnsToContents();
  if (!result.best.empty()) {
    table_->selectRow(0);
  } else {
    below_->setCurrentWidget(rejected_);
  }
  show_scatter();
}

void PlansView::show_status() {
  if (searching_ || found_words_.isEmpty()) return;
  const bool of_another = !same_job(searched_, document_.scenario());
  status_->setText(
      of_another
          ? QString("Of another job, %1; search anew for this one.\n%2").arg(text(job_words(searched_)), found_words_)
          : found_words_);
}

int PlansView::selected() const {
  const QModelIndex now = table_->currentIndex();
  return now.isValid() ? source_row(now) : -1;
}

void PlansView::use(int row) {
  if (row < 0 || row >= model_.rowCount()) return;
  Scenario scenario = document_.scenario();
  scenario.file.job.plan = model_.rows()[static_cast<std::size_t>(row)].plan;
  document_.edit(std::move(scenario),
                 QString("plan %1").arg(text(model_.rows()[static_cast<std::size_t>(row)].summary)));
}

void PlansView::pin(int row) {
  if (row < 0 || row >= model_.rowCount() || static_cast<int>(pins_.size()) >= kMostPinned) return;
  const PlanRow& plan = model_.rows()[static_cast<std::size_t>(row)];
  if (std::any_of(pins_.begin(), pins_.end(), [&](const PlanRow& pin) { return equal(pin.plan, plan.plan); })) return;
  pins_.push_back(plan);
  show_pins();
}

void PlansView::pin_current() {
  const auto& evaluation = document_.evaluation();
  if (!evaluation || !evaluation->runs() || static_cast<int>(pins_.size()) >= kMostPinned) return;
  const program::Plan& plan = evaluation->scenario.file.job.plan;
  if (std::any_of(pins_.begin(), pins_.end(), [&](const PlanRow& pin) { return equal(pin.plan, plan); })) return;
  pins_.push_back(row_of(plan, evaluation->figures, evaluation->scenario.cluster));
  pins_.back().job = job_words(evaluation->scenario);
  show_pins();
}

void PlansView::unpin_all() {
  pinner_.cancel();
  pins_.clear();
  show_pins();
}

void PlansView::set_pinned(const std::vector<program::Plan>& plans) {
  pins_.clear();
  show_pins();
  std::vector<std::pair<program::Plan, Scenario>> asked;
  for (const program::Plan& plan : plans) asked.emplace_back(plan, document_.scenario());
  if (asked.size() > kMostPinned) asked.resize(kMostPinned);
  pinner_.post(std::move(asked));
}

std::vector<program::Plan> PlansView::pinned() const {
  std::vector<program::Plan> plans;
  for (const PlanRow& pin : pins_) plans.push_back(pin.plan);
  return plans;
}

void PlansView::show_pins() {
  const std::vector<DifferenceRow> rows = differences(pins_);
  comparison_->clear();
  if (pins_.empty()) {
    comparison_->setRowCount(1);
    comparison_->setColumnCount(1);
    comparison_->setHorizontalHeaderLabels({"Nothing is pinned"});
    comparison_->setItem(0, 0, new QTableWidgetItem("Pin plans to see them side by side, differences highlighted."));
    comparison_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  } else {
    comparison_->setRowCount(static_cast<int>(rows.size()));
    comparison_->setColumnCount(static_cast<int>(pins_.size()) + 1);
    comparison_->setHorizontalHeaderItem(0, new QTableWidgetItem("differs in bold"));
    comparison_->horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
    comparison_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
      const DifferenceRow& difference = rows[static_cast<std::size_t>(r)];
      for (int c = 0; c <= static_cast<int>(pins_.size()); ++c) {
        auto* item = new QTableWidgetItem(c == 0 ? text(words_of(difference.name))
                                                 : text(difference.values[static_cast<std::size_t>(c) - 1]));
        if (difference.differs) {
          QFont font = item->font();
          font.setBold(true);
          item->setFont(font);
          QColor ground = series_colour(1);
          ground.setAlpha(60);
          item->setBackground(ground);
        }
        item->setToolTip(item->text());
        comparison_->setItem(r, c, item);
      }
    }
    fit_pins();
  }
  show_scatter();
  if (on_pins) on_pins();
}

void PlansView::fit_pins() {
  fitted_width_ = comparison_->viewport()->width();
  const int pins = static_cast<int>(pins_.size());
  if (pins == 0 || comparison_->columnCount() != pins + 1) return;
  const int room = (fitted_width_ - comparison_->horizontalHeader()->sectionSize(0)) / pins;
  const int wide = std::max(room, kSlimmestPin);
  QFont font = comparison_->horizontalHeader()->font();
  font.setBold(true);  // as the header of a selected column
  for (int p = 0; p < pins; ++p) {
    const QString words = text(pins_[static_cast<std::size_t>(p)].summary);
    auto* title =
        new QTableWidgetItem(wrapped(letter(static_cast<std::size_t>(p)) + ": " + words, font, wide - kHeaderMargin));
    title->setToolTip(words);
    comparison_->setHorizontalHeaderItem(p + 1, title);
    comparison_->setColumnWidth(p + 1, wide);
  }
}

bool PlansView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && comparison_->viewport()->width() != fitted_width_) fit_pins();
  return QWidget::eventFilter(watched, event);
}

void PlansView::show_scatter() {
  const bool cost = against_->currentIndex() == 1;
  std::vector<ScatterPoint> points;
  const auto add = [&](const PlanRow& row, const QString& name) {
    points.push_back({row.iteration_s, cost ? row.dollars_per_iteration : row.peak_memory_bytes, text(row.summary),
                      !name.isEmpty(), name});
  };
  for (const PlanRow& row : model_.rows()) add(row, {});
  for (std::size_t p = 0; p < pins_.size(); ++p) add(pins_[p], letter(p));
  Axis x{0, 1, "iteration", [](double s) { return text(base::seconds(s)); }};
  Axis y{0, 1, cost ? "cost of a step" : "peak memory", [cost](double value) {
           return cost ? text(dollars_text(value)) : text(base::size(static_cast<std::int64_t>(value)));
         }};
  double most = 0;
  for (const ScatterPoint& point : points) most = std::max(most, point.y);
  if (!cost) y.unit = byte_unit(most);
  scatter_->set_points(std::move(points), std::move(x), std::move(y));
}

void PlansView::explain_why_not(int row) {
  if (row < 0 || row >= model_.rowCount()) return;
  const auto& rows = model_.rows();
  const auto fastest = std::min_element(rows.begin(), rows.end(),
                                        [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; });
  QString words;
  for (const std::string& line : why_not(rows[static_cast<std::size_t>(row)], *fastest)) words += text(line) + "\n\n";
  why_->setText(words);
  below_->setCurrentWidget(why_);
}

void PlansView::explain_why_not_current() {
  below_->setCurrentWidget(why_);
  const auto best = std::min_element(model_.rows().begin(), model_.rows().end(),
                                     [](const PlanRow& a, const PlanRow& b) { return a.iteration_s < b.iteration_s; });
  if (best == model_.rows().end()) {
    why_->setText("Search first: the plan is then set against the best that was found.");
    return;
  }
  why_->setText("Playing both …");
  asker_.post({best->plan, document_.scenario().file.job.plan, searched_});
}

}  // namespace trivium::gui
