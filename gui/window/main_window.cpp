#include "gui/window/main_window.h"

#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QPushButton>
#include <QStatusBar>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "gui/look/theme.h"
#include "gui/model/command_line.h"
#include "gui/model/project.h"
#include "gui/window/kept_layout.h"
#include "gui/window/row_scroll.h"
#include "gui/window/temporary_folder.h"
#include "gui/window/undo_keys.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {
namespace {

constexpr int kDockWidth = 300;                   // pixels
constexpr int kBottomDockHeight = 300;            // pixels
constexpr int kJobShare = 340, kPlanShare = 460;  // of the height
constexpr const char* kCannotRun = "The plan cannot run: ";

/// Views fit themselves into what room there is: a word in the headline does not ask how high each of them would be.
class Views : public QTabWidget {
 public:
  using QTabWidget::QTabWidget;
  bool hasHeightForWidth() const override { return false; }
};

/// Precondition: the evaluation runs.
NamedTimeline predicted(const Evaluation& evaluation) {
  const simulator::PlacedCluster placed(evaluation.scenario.file.job.plan, evaluation.scenario.cluster);
  return {"predicted", evaluation.program, evaluation.timeline, std::make_shared<const hardware::Cluster>(placed.get()),
          nullptr};
}

}  // namespace

const QStringList& MainWindow::view_names() {
  static const QStringList kNames{"cluster", "plans", "timeline", "memory", "links", "explain", "what-if", "compare"};
  return kNames;
}

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent),
      pages_(new QStackedWidget),
      start_page_(new StartPage),
      banner_(new QWidget),
      banner_text_(new QLabel),
      command_(new CommandField("The same on the command line")),
      headline_(new Headline(document_)),
      tabs_(new Views),
      cluster_(new ClusterView(document_)),
      plans_(new PlansView(document_)),
      timeline_(new TimelineView),
      memory_(new MemoryView(document_)),
      links_(new LinksView(document_)),
      explain_(new ExplainView(document_)),
      what_if_(new WhatIfView(document_)),
      compare_pages_(new QTabWidget),
      compare_(new CompareView),
      two_plans_(new TwoPlansView(document_)),
      start_(new StartPanel(document_)),
      plan_controls_(new PlanControlsPanel(document_)),
      runs_(new RunPanel(document_)),
      validation_(new ValidationPanel),
      reporter_(compute_report, [this](const WrittenReport& written) {
        reporting_ = false;
        say(written.error.isEmpty() ? "The report is written: " + written.path : written.error);
      }) {
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowTabbedDocks | AllowNestedDocks);
  set_up_banner();
  set_up_command();
  const std::pair<const char*, QWidget*> views[] = {
      {"Cluster", cluster_}, {"Plans", plans_},     {"Timeline", timeline_}, {"Memory", memory_},
      {"Links", links_},     {"Explain", explain_}, {"What if", what_if_},   {"Compare", compare_pages_}};
  static_assert(std::size(views) == kViews);
  compare_pages_->addTab(compare_, "A run and its prediction");
  compare_pages_->addTab(two_plans_, "Two plans");
  compare_pages_->setDocumentMode(true);
  compare_pages_->setAccessibleName("What is compared");
  compare_pages_->setFocusProxy(compare_);
  for (const auto& [title, widget] : views) tabs_->addTab(widget, title);  // without mnemonics: Alt is for the menus
  tabs_->setObjectName("views");
  tabs_->setAccessibleName("Views");
  tabs_->setDocumentMode(true);  // views lie on the window's own ground, on which their colours were chosen
  auto* middle = new QWidget;
  auto* column = new QVBoxLayout(middle);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(banner_);
  column->addWidget(headline_);
  column->addWidget(tabs_, 1);
  pages_->addWidget(middle);
  pages_->addWidget(start_page_);
  setCentralWidget(pages_);
  make_docks();
  make_menus();

  connect_views();
  set_up_start_page();
  set_up_findings();
  autosave_timer_.setSingleShot(true);
  connect(&autosave_timer_, &QTimer::timeout, this, [this] { autosave(); });
  restore_layout(*this);
  new UndoKeys(*this);
  clear_left_folders();
  fill_recent();
}

void MainWindow::set_up_banner() {
  auto* close_banner = new QPushButton("Dismiss");
  auto* banner_row = new QHBoxLayout(banner_);
  banner_row->setContentsMargins(8, 2, 8, 2);
  banner_row->addWidget(banner_text_, 1);
  banner_row->addWidget(close_banner);
  banner_text_->setWordWrap(true);
  banner_text_->setAccessibleName("Message");
  banner_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  banner_->hide();
  connect(close_banner, &QPushButton::clicked, banner_, &QWidget::hide);
}

void MainWindow::set_up_command() {
  QFont fixed = command_->font();
  fixed.setStyleHint(QFont::Monospace);
  fixed.setFamily("monospace");
  command_->setFont(fixed);
  auto* copy = new QPushButton("Copy");
  copy->setFlat(true);
  copy->setToolTip("Copy the command (Ctrl+Shift+C)");
  statusBar()->addWidget(command_, 1);
  statusBar()->addPermanentWidget(copy);
  statusBar()->setSizeGripEnabled(false);
  connect(copy, &QPushButton::clicked, this, [this] { copy_command(); });
  connect(&document_, &Document::scenario_changed, this, [this] {
    const Scenario& now = document_.scenario();
    command_->set_command(QString::fromStdString(command_line(now)),
                          is_said_by_options(now) ? QString() : QString("plan.json: what File › Export plan writes"));
  });
}

void MainWindow::copy_command() { QGuiApplication::clipboard()->setText(command_->text()); }

void MainWindow::connect_views() {
  connect(tabs_, &QTabWidget::currentChanged, this, [this] {
    explain_->set_wanted(view() == kExplain);
    links_->set_wanted(view() == kLinks);
    refresh_timeline();
    refresh_compare();
    refresh_foreign();
    widget_of(view()).setFocus();  // keys go to what is looked at
  });
  connect(&document_, &Document::evaluated, this, [this] {
    refresh_timeline();
    refresh_compare();
    refresh_foreign();
    refresh_validation();
  });
  connect(&document_, &Document::scenario_changed, this, [this] {
    trace_.clear();
    set_aside_results();
    note_change();
  });
  connect(timeline_, &TimelineView::failed, this, [this](const QString& why) {
    say(why);
    trace_.clear();
    headline_->set_beside({});
    drawn_.reset();
    refresh_timeline();  // the plan's again
  });
  connect(compare_, &CompareView::failed, this, [this](const QString& why) { say(why); });
  plans_->on_pins = [this] {
    note_change();
    two_plans_->refresh();
  };
  plans_->on_answer = [this] {
    headline_->refresh();
    two_plans_->refresh();
  };
  two_plans_->choices = [this] { return plans_->choices(); };
  connect(compare_pages_, &QTabWidget::currentChanged, this,
          [this] { compare_pages_->setFocusProxy(compare_pages_->currentWidget()); });
  connect(timeline_, &TimelineView::shown, this, [this] { show_state_of_timeline(); });
  headline_->answer_words = [this] { return plans_->answer_words(); };
  runs_->on_start = [this] { run_work_ = document_.work(); };
  runs_->on_record = [this](const QString& record) {
    if (run_work_ == document_.work()) {
      load_record(record);
    } else {
      say("The run of other work has ended; Run › Load a run record opens its record: " + record);
    }
  };
  runs_->on_profile = [this] { take_measured_machine(); };
  timeline_->ops().on_export = [this] {
    const QString path = ask_file("Export the ops", "Tables (*.csv)");
    if (!path.isEmpty()) export_ops(path);
  };
  connect(timeline_, &TimelineView::save_wanted, this, [this] {
    const QString path = ask_file("Save the selected spans", "Tables (*.csv)");
    if (!path.isEmpty()) export_selection(path);
  });
  validation_->on_load = [this] { ask_record(); };
  validation_->on_export = [this] {
    const QString path = ask_file("Export the validation", "Tables (*.csv);;JSON (*.json)");
    if (!path.isEmpty()) export_validation(path);
  };
  connect(&start_->search(), &QPushButton::clicked, this, [this] {
    show_view(kPlans);
    plans_->search();
  });
  connect(&start_->measure(), &QPushButton::clicked, this, [this] {
    show_runs();
    runs_->measure();
  });
}

MainWindow::~MainWindow() {
  plans_->on_pins = nullptr;
  plans_->on_answer = nullptr;
  validation_->on_export = nullptr;
  // Views listen to the document: they go before it.
  compare_->findings().on_add = compare_->findings().on_close = nullptr;
  runs_->on_refusal = nullptr;
  delete takeCentralWidget();
  for (QDockWidget* dock : {start_dock_, plan_controls_dock_, run_dock_, validation_dock_}) delete dock;
}

void MainWindow::make_docks() {
  const auto dock = [this](const QString& title, const QString& name, QWidget* widget, Qt::DockWidgetArea area) {
    auto* made = new QDockWidget(title, this);
    made->setObjectName(name);
    if (widget == plan_controls_) {
      auto* scroll = new RowScroll;  // so that a small screen cuts nothing off
      scroll->setWidget(widget);
      scroll->setWidgetResizable(true);
      scroll->setFrameShape(QFrame::NoFrame);
      scroll->setMinimumWidth(kDockWidth);
      scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
      made->setWidget(scroll);
    } else {
      made->setWidget(widget);  // charts and tables fit themselves in
    }
    addDockWidget(area, made);
    return made;
  };
  start_dock_ = dock("Job", "job", start_, Qt::LeftDockWidgetArea);
  plan_controls_dock_ = dock("Plan", "plan", plan_controls_, Qt::LeftDockWidgetArea);
  run_dock_ = dock("Run on this machine", "run", runs_, Qt::BottomDockWidgetArea);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  validation_dock_ = dock("Validation", "validation", validation_, Qt::BottomDockWidgetArea);
  tabifyDockWidget(run_dock_, validation_dock_);
  run_dock_->hide();
  validation_dock_->hide();
  resizeDocks({start_dock_, plan_controls_dock_}, {kJobShare, kPlanShare}, Qt::Vertical);
}

void MainWindow::show_view(View view) {
  leave_start_page();
  tabs_->setCurrentIndex(view);
  widget_of(view).setFocus();
}

void MainWindow::show_two_plans() {
  compare_pages_->setCurrentWidget(two_plans_);
  show_view(kCompare);
}

MainWindow::View MainWindow::view() const { return static_cast<View>(tabs_->currentIndex()); }

QWidget& MainWindow::widget_of(View view) { return *tabs_->widget(view); }

bool MainWindow::view_is_ready() const {
  if (!document_.settled()) return false;
  if (view() == kPlans) return !plans_->is_searching();
  if (view() == kExplain) return explain_->is_current();
  if (view() == kLinks) return links_->is_current();
  if (view() == kWhatIf) return !what_if_->is_asking();
  if (view() == kCompare && two_plans_->isVisible()) return !two_plans_->is_busy() && !validation_->is_busy();
  if (view() == kCompare) return !compare_->is_busy() && !validation_->is_busy();
  if (view() == kTimeline)
    return (!trace_.isEmpty() || drawn_ == document_.evaluation()) && !timeline_->is_busy() &&
           !timeline_->ops().is_busy() && !timeline_->flame().is_busy();
  return true;
}

void MainWindow::refresh_timeline() {
  const auto& evaluation = document_.evaluation();
  if (!document_.is_current() || view() != kTimeline || drawn_ == evaluation || !trace_.isEmpty()) return;
  drawn_ = evaluation;
  std::vector<NamedTimeline> timelines;
  if (evaluation->runs()) timelines.push_back(predicted(*evaluation));
  timeline_->set_timelines(std::move(timelines),
                           evaluation->runs() ? QString() : kCannotRun + QString::fromStdString(evaluation->refusal));
}

std::optional<Comparison> MainWindow::comparison() const {
  const auto& evaluation = document_.evaluation();
  if (!run_ || !evaluation || !evaluation->runs()) return std::nullopt;
  return Comparison{evaluation->scenario.file, evaluation->scenario.cluster, run_};
}

QString MainWindow::why_no_comparison() const {
  const auto& evaluation = document_.evaluation();
  if (!run_ || !evaluation) return {};
  if (!document_.settled()) return "Comes when the plan has been simulated.";
  return evaluation->runs() ? QString() : kCannotRun + QString::fromStdString(evaluation->refusal);
}

void MainWindow::refresh_compare() {
  const auto& evaluation = document_.evaluation();
  if (view() != kCompare || !document_.settled() || compared_ == evaluation) return;
  compared_ = evaluation;
  compare_->set_comparison(comparison(), why_no_comparison());
}

void MainWindow::refresh_validation() {
  if (document_.settled()) validation_->set_case(comparison(), why_no_comparison());
}

void MainWindow::set_aside_results() {
  drawn_.reset();
  compared_.reset();
  timeline_->set_outdated();
  compare_->set_comparison(std::nullopt, why_no_comparison());
  validation_->set_case(std::nullopt, why_no_comparison());
}

void MainWindow::show_title() {
  const QString name = path_.isEmpty() ? QString("not saved yet") : QFileInfo(path_).fileName();
  setWindowTitle(QString("%1[*] – Trivium").arg(name));
  setWindowModified(changed_);
}

void MainWindow::say(const QString& words) {
  banner_text_->setText(words);
  banner_->setVisible(!words.isEmpty());
}

bool MainWindow::guarded(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const base::Failure& failure) {
    say(QString::fromStdString(failure.error().message));
  } catch (const std::exception& error) {
    say(QString("Failed: %1").arg(error.what()));
  }
  return false;
}

void MainWindow::open_dock(QDockWidget& dock) {
  const bool first = run_dock_->isHidden() && validation_dock_->isHidden();
  dock.show();
  dock.raise();
  if (first) resizeDocks({&dock}, {kBottomDockHeight}, Qt::Vertical);
}

void MainWindow::show_runs() { open_dock(*run_dock_); }

void MainWindow::validate() { open_dock(*validation_dock_); }

}  // namespace trivium::gui
