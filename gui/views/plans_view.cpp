#include "gui/views/plans_view.h"

#include <fmt/format.h>

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/model/plan_controls.h"
#include "planner/advice/why_not.h"
#include "planner/space/held.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"

namespace trivium::gui {
namespace {

constexpr double kMsPerSecond = 1000;
constexpr int kLeastHeight = 70;  // pixels of a table or picture, so that a small screen holds all of them
constexpr int kBest = 25;         // answers asked of a search

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
      search_(new QPushButton("Search")),
      cancel_(new QPushButton("Cancel")),
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
  setFocusProxy(table_);
  for (QWidget* part : std::initializer_list<QWidget*>{table_, comparison_, scatter_})
    part->setMinimumHeight(kLeastHeight);
  set_up_table();
  set_up_row_actions();
  set_up_below();
  auto* list = new QWidget;
  auto* list_layout = new QVBoxLayout(list);
  list_layout->setContentsMargins(0, 0, 0, 0);
  list_layout->addLayout(make_buttons());
  list_layout->addWidget(table_);
  auto* bottom = new QSplitter(Qt::Horizontal);
  bottom->setObjectName("plans picture and pins");
  bottom->addWidget(make_picture());
  bottom->addWidget(below_);
  bottom->setSizes({500, 500});
  auto* both = new QSplitter(Qt::Vertical);
  both->setObjectName("plans table and below");
  both->addWidget(list);
  both->addWidget(bottom);
  both->setSizes({400, 420});
  auto* all = new QVBoxLayout(this);
  all->addLayout(make_search_row());
  all->addWidget(both, 1);
  connect(&document_, &Document::evaluated, this, [this] {
    if (!document_.settled()) return;
    show_scatter();
    show_status();
  });
  connect(&document_, &Document::scenario_changed, this, [this] { show_status(); });
  show_pins();
}

void PlansView::set_up_table() {
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
  connect(table_, &QTableView::doubleClicked, this, [this](const QModelIndex& index) { use(source_row(index)); });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) { scatter_->set_selected(now.isValid() ? source_row(now) : -1); });
}

// The menu on the right button.
void PlansView::set_up_row_actions() {
  auto* copy = new QAction("Copy the row", table_);
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetShortcut);
  connect(copy, &QAction::triggered, this, [this] { QGuiApplication::clipboard()->setText(row_text(selected())); });
  const auto entry = [this](const QString& words, const std::function<void()>& work) {
    auto* action = new QAction(words, table_);
    connect(action, &QAction::triggered, this, work);
    return action;
  };
  table_->addActions({entry("Use this plan", [this] { use(selected()); }), entry("Pin", [this] { pin(selected()); }),
                      entry("Why not?", [this] { explain_why_not(selected()); }), copy});
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
}

QHBoxLayout* PlansView::make_search_row() {
  progress_->setAccessibleName("Progress of the search");
  progress_->setMaximumWidth(320);
  progress_->setTextVisible(false);
  progress_->hide();
  status_->setWordWrap(true);  // what it says is long, and a window fits into a small screen
  status_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  status_->setAccessibleName("State of the search");
  status_->setText("No search yet: press Search, or change a field of the plan.");
  cancel_->setEnabled(false);
  connect(search_, &QPushButton::clicked, this, [this] { search(); });
  connect(cancel_, &QPushButton::clicked, this, [this] { cancel(); });
  auto* row = new QHBoxLayout;
  row->addWidget(search_);
  row->addWidget(cancel_);
  row->addWidget(progress_);
  row->addWidget(status_, 1);
  return row;
}

QHBoxLayout* PlansView::make_buttons() {
  filter_->setPlaceholderText("Filter: TP8, ZeRO-1, full …");
  filter_->setAccessibleName("Filter of plans");
  filter_->setClearButtonEnabled(true);
  connect(filter_, &QLineEdit::textChanged, &proxy_, &QSortFilterProxyModel::setFilterFixedString);
  auto* row = new QHBoxLayout;
  row->addWidget(filter_, 1);
  const auto add = [&](const QString& words, const std::function<void()>& work) {
    auto* button = new QPushButton(words);
    connect(button, &QPushButton::clicked, this, work);
    row->addWidget(button);
    return button;
  };
  add("Use this plan", [this] { use(selected()); });
  add("Pin", [this] { pin(selected()); });
  add("Pin current", [this] { pin_current(); });
  add("Unpin all", [this] { unpin_all(); });
  add("Why not?", [this] { explain_why_not(selected()); });
  add("Why not current?", [this] {
    explain_why_not_current();
  })->setToolTip("What makes the current plan slower than the best of the table, or rules it out");
  return row;
}

QWidget* PlansView::make_picture() {
  against_->addItems({"peak memory", "cost a step"});
  against_->setAccessibleName("What time is drawn against");
  connect(against_, &QComboBox::currentIndexChanged, this, [this] { show_scatter(); });
  scatter_->set_hint("A search draws its plans here: time against memory or cost, with the Pareto front.");
  scatter_->on_select = [this](int point) {
    if (point < model_.rowCount()) table_->selectRow(proxy_.mapFromSource(model_.index(point, 0)).row());
  };
  auto* axis_row = new QHBoxLayout;
  axis_row->addWidget(new QLabel("Iteration time against"));
  axis_row->addWidget(against_);
  axis_row->addStretch();
  auto* picture = new QWidget;
  auto* column = new QVBoxLayout(picture);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(axis_row);
  column->addWidget(scatter_, 1);
  return picture;
}

void PlansView::set_up_below() {
  why_->setWordWrap(true);
  why_->setAlignment(Qt::AlignTop);
  why_->setMargin(8);
  why_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  why_->setText("Select a plan of the table and press “Why not?” to see what makes it slower than the fastest.");
  comparison_->viewport()->installEventFilter(this);
  rejected_->setColumnCount(3);
  rejected_->setHorizontalHeaderLabels({"Plans", "Split", "Why they cannot run"});
  say_in(*rejected_, "A search lists here what it refuses, and why.");
  below_->addTab(comparison_, "Pinned side by side");
  below_->addTab(why_, "Why not this one?");
  below_->addTab(rejected_, "Cannot run");
}

PlansView::Found PlansView::run(const Scenario& scenario, const std::stop_token& stop) {
  planner::SearchRequest request = search_request(scenario, kBest);
  request.on_ranking = [this](const std::vector<std::pair<program::Plan, double>>& ranking) {
    QMetaObject::invokeMethod(
        this, [this, ranking] { show_interim(ranking); }, Qt::QueuedConnection);
  };
  request.on_bound = [this](double bound_s) {
    QMetaObject::invokeMethod(
        this, [this, bound_s] { show_bound(bound_s); }, Qt::QueuedConnection);
  };
  auto result = planner::search(request, 0, stop, [&](std::int64_t done, std::int64_t all, double best_s) {
    QMetaObject::invokeMethod(
        this, [this, done, all, best_s] { show_progress(done, all, best_s); }, Qt::QueuedConnection);
  });
  return {std::move(result), scenario};
}

void PlansView::search() {
  if (const std::string why = why_no_search(document_.scenario()); !why.empty()) {
    status_->setText(text(display_name(why)));
    return;
  }
  searching_ = true;
  progress_now_ = {};
  model_.set_rows({});
  show_scatter();
  begun_.start();
  cancel_->setEnabled(true);
  progress_->show();
  progress_->setRange(0, 0);
  status_->setText("Enumerating plans …");
  searcher_.post(document_.scenario());
}

void PlansView::cancel() {
  if (!searching_) return;
  status_->setText("Ending with the best so far …");
  searcher_.finish_early();
}

void PlansView::show_interim(const std::vector<std::pair<program::Plan, double>>& ranking) {
  if (!searching_) return;
  const Scenario& scenario = document_.scenario();
  const double tokens = static_cast<double>(scenario.file.job.training.global_batch) *
                        static_cast<double>(scenario.file.job.training.sequence);
  std::vector<PlanRow> rows;
  for (const auto& [plan, iteration_s] : ranking) {
    PlanRow row;
    row.plan = plan;
    row.summary = program::summary(plan);
    row.iteration_s = iteration_s;
    row.tokens_per_s = iteration_s > 0 ? tokens / iteration_s : 0;
    row.interim = true;
    rows.push_back(std::move(row));
  }
  model_.set_rows(std::move(rows));
}

void PlansView::show_progress(std::int64_t done, std::int64_t all, double best_s) {
  if (!searching_) return;
  progress_->setRange(0, 1000);
  progress_->setValue(all > 0 ? static_cast<int>(done * 1000 / all) : 0);
  progress_now_.done = done;
  progress_now_.all = all;
  progress_now_.best_s = best_s;
  progress_now_.seconds = static_cast<double>(begun_.elapsed()) / kMsPerSecond;
  status_->setText(text(progress_words(progress_now_)));
}

void PlansView::show_bound(double bound_s) {
  progress_now_.bound_s = bound_s;
  if (searching_ && progress_now_.all > 0) status_->setText(text(progress_words(progress_now_)));
}

void PlansView::show_result(const Found& found) {
  searching_ = false;
  searched_ = found.scenario;
  cancel_->setEnabled(false);
  progress_->hide();
  const planner::SearchResult& result = found.result;
  std::vector<PlanRow> rows;
  for (const auto* candidates : {&result.best, &result.others}) {
    for (const planner::Candidate& candidate : *candidates) {
      rows.push_back(row_of(candidate.plan, candidate.simulation, found.scenario.cluster));
      rows.back().job = job_words(found.scenario);
    }
  }
  for (const planner::Alternative& one : result.alternatives) {  // the best of each way to use unlike nodes
    if (!one.best) continue;
    PlanRow row = row_of(one.best->plan, one.best->simulation, found.scenario.cluster);
    row.job = job_words(found.scenario);
    if (std::none_of(rows.begin(), rows.end(), [&](const PlanRow& other) { return other.summary == row.summary; })) {
      rows.push_back(std::move(row));
    }
  }
  model_.set_rows(std::move(rows));
  const auto count = [](std::int64_t n) { return text(base::integer(static_cast<double>(n))); };
  const QString space = text(space_words(found.scenario));
  QString words = result.best.empty() ? QString("No plan fits. ") : QString();
  words +=
      QString("%1 plans%2: %3 cannot run, %4 proved slower, %5 simulated for the proof in %6; %7")
          .arg(count(result.plans_in_space), space, count(result.plans_infeasible), count(result.plans_bounded),
               count(result.plans_simulated), text(seconds_words(result.seconds)),
               result.proved ? "none of the space is faster than the first; the others are the best of their families"
                             : "stopped early, others may be faster");
  answer_words_ = QString(result.proved ? "the fastest of %1 plans%2" : "the fastest found so far of %1 plans%2")
                      .arg(count(result.plans_in_space), space);
  status_->setToolTip("What a search leaves as it is: " +
                      text(display_name(planner::text_of(planner::held_fields(search_request(found.scenario, 1))))));
  if (const std::string room = planner::room_text(search_request(found.scenario, kBest)); !room.empty()) {
    words += text("; " + room + fmt::format(", to fit with a probability of {:.0f} %", 100 * planner::kFitProbability));
  }
  for (const planner::Alternative& one : result.alternatives) {
    words +=
        QString("\n%1 (%2): %3")
            .arg(text(one.name), text(one.nodes),
                 one.best ? text(seconds_words(one.best->simulation.iteration_s)) : text(display_name(one.why_not)));
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
  if (on_answer) on_answer();
}

void PlansView::show_status() {
  if (searching_ || found_words_.isEmpty()) return;
  const bool of_another = !same_job(searched_, document_.scenario());
  if (of_another) {
    status_->setText(
        QString("Of another job, %1; search anew for this one.\n%2").arg(text(job_words(searched_)), found_words_));
    return;
  }
  const QString beaten = who_beats_the_answer();
  status_->setText(beaten.isEmpty() ? found_words_ : beaten + "\n" + found_words_);
}

// A search's answer holds for its space alone: a listed plan that is faster is named, with what excludes it.
QString PlansView::who_beats_the_answer() const {
  const std::vector<PlanRow>& rows = model_.rows();
  const auto& evaluation = document_.evaluation();
  if (rows.empty()) return {};
  const auto best = std::min_element(rows.begin(), rows.end(),
                                     [](const PlanRow& a, const PlanRow& b) { return a.iteration_s < b.iteration_s; });
  const auto words = [&](const QString& who, double iteration_s, double probability) {
    const bool unsure = probability < planner::kFitProbability;
    return QString("%1 is faster, %2 against %3%4.")
        .arg(who, text(seconds_words(iteration_s)), text(seconds_words(best->iteration_s)),
             unsure
                 ? QString(", but fits with probability %1 alone").arg(text(simulator::probability_text(probability)))
                 : QString(": it is outside of the space that was searched"));
  };
  constexpr double kFaster = 1 - 1e-9;
  if (document_.settled() && evaluation->fits() && evaluation->figures.iteration_s < kFaster * best->iteration_s) {
    return words("The current plan", evaluation->figures.iteration_s, evaluation->figures.certainty.fit_probability);
  }
  for (std::size_t p = 0; p < pins_.size(); ++p) {
    if (pins_[p].job == job_words(searched_) && pins_[p].iteration_s < kFaster * best->iteration_s) {
      return words(QString("Pinned %1").arg(QChar('A' + static_cast<char>(p))), pins_[p].iteration_s,
                   pins_[p].certainty.fit_probability);
    }
  }
  return {};
}

QString PlansView::answer_words() const {
  const Scenario& now = document_.scenario();
  if (searching_ || model_.rows().empty() || !same_job(searched_, now)) return {};
  const std::vector<PlanRow>& rows = model_.rows();
  const auto best = std::min_element(rows.begin(), rows.end(),
                                     [](const PlanRow& a, const PlanRow& b) { return a.iteration_s < b.iteration_s; });
  return program::to_json(best->plan) == program::to_json(now.file.job.plan) ? answer_words_ : QString();
}

QString PlansView::row_text(int row) const {
  QStringList cells;
  for (int c = 0; row >= 0 && c < model_.columnCount(); ++c) cells << model_.index(row, c).data().toString();
  return cells.join('\t');
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

void PlansView::explain_why_not(int row) {
  if (row < 0 || row >= model_.rowCount()) return;
  const auto& rows = model_.rows();
  if (rows[static_cast<std::size_t>(row)].interim) {
    why_->setText("The search goes on: what its plans take is known when it ends.");
    return below_->setCurrentWidget(why_);
  }
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
  why_->setText("Simulating both …");
  asker_.post({best->plan, document_.scenario().file.job.plan, searched_});
}

}  // namespace trivium::gui
