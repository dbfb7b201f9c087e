#include "gui/window/main_window.h"

#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMimeData>
#include <QPushButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_reader.h"
#include "gui/look/theme.h"
#include "gui/model/project.h"
#include "gui/window/kept_layout.h"
#include "gui/window/row_scroll.h"
#include "hardware_profiles/load.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {
namespace {

constexpr int kAutosaveMs = 400;
constexpr int kMostRecent = 8;
constexpr int kDockWidth = 300;                   // pixels
constexpr int kBottomDockHeight = 300;            // pixels
constexpr int kJobShare = 340, kPlanShare = 460;  // of the height
constexpr const char* kCannotRun = "The plan cannot run: ";

/// Traces are too large to be read twice: they are told by how they begin.
bool is_trace(const QString& path) {
  QFile file(path);
  constexpr qint64 kBegin = 4096;
  return file.open(QIODevice::ReadOnly) && file.read(kBegin).contains("\"traceEvents\"");
}

/// Precondition: the evaluation runs.
NamedTimeline predicted(const Evaluation& evaluation) {
  const simulator::PlacedCluster placed(evaluation.scenario.file.job.plan, evaluation.scenario.cluster);
  return {"predicted", evaluation.program, evaluation.timeline, std::make_shared<const hardware::Cluster>(placed.get()),
          nullptr};
}

}  // namespace

const QStringList& MainWindow::view_names() {
  static const QStringList kNames{"cluster", "plans", "timeline", "memory", "explain", "compare"};
  return kNames;
}

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent),
      banner_(new QWidget),
      banner_text_(new QLabel),
      headline_(new Headline(document_)),
      tabs_(new QTabWidget),
      cluster_(new ClusterView(document_)),
      plans_(new PlansView(document_)),
      timeline_(new TimelineView),
      memory_(new MemoryView(document_)),
      explain_(new ExplainView(document_)),
      compare_(new CompareView),
      start_(new StartPanel(document_)),
      plan_controls_(new PlanControlsPanel(document_)),
      runs_(new RunPanel(document_)),
      validation_(new ValidationPanel) {
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowTabbedDocks | AllowNestedDocks);
  set_up_banner();
  const QStringList titles{"&Cluster", "&Plans", "&Timeline", "&Memory", "&Explain", "C&ompare"};
  QWidget* views[] = {cluster_, plans_, timeline_, memory_, explain_, compare_};
  for (int i = 0; i < kViews; ++i) tabs_->addTab(views[i], titles[i]);
  tabs_->setAccessibleName("Views");
  tabs_->setDocumentMode(true);  // views lie on the window's own ground, on which their colours were chosen
  auto* middle = new QWidget;
  auto* column = new QVBoxLayout(middle);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(banner_);
  column->addWidget(headline_);
  column->addWidget(tabs_, 1);
  setCentralWidget(middle);
  make_docks();
  make_menus();

  connect_views();
  autosave_timer_.setSingleShot(true);
  connect(&autosave_timer_, &QTimer::timeout, this, [this] { autosave(); });
  restore_layout(*this);
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

void MainWindow::connect_views() {
  connect(tabs_, &QTabWidget::currentChanged, this, [this] {
    explain_->set_wanted(view() == kExplain);
    refresh_timeline();
    refresh_compare();
  });
  connect(&document_, &Document::evaluated, this, [this] {
    refresh_timeline();
    refresh_compare();
    refresh_validation();
  });
  connect(&document_, &Document::scenario_changed, this, [this] {
    changed_ = true;
    trace_ = false;
    set_aside_results();
    autosave_timer_.start(kAutosaveMs);
    show_title();
  });
  connect(timeline_, &TimelineView::failed, this, [this](const QString& why) { say(why); });
  connect(compare_, &CompareView::failed, this, [this](const QString& why) { say(why); });
  plans_->on_pins = [this] {
    changed_ = true;
    autosave_timer_.start(kAutosaveMs);
  };
  runs_->on_record = [this](const QString& record) { load_record(record); };
  validation_->on_export = [this] {
    const QString path = ask_file("Export the validation", "Tables (*.csv);;JSON (*.json)");
    if (!path.isEmpty()) export_validation(path);
  };
  connect(&start_->search(), &QPushButton::clicked, this, [this] {
    show_view(kPlans);
    plans_->search();
  });
}

MainWindow::~MainWindow() {
  plans_->on_pins = nullptr;
  validation_->on_export = nullptr;
  // Views listen to the document: they go before it.
  delete takeCentralWidget();
  for (QDockWidget* dock : {start_dock_, plan_controls_dock_, run_dock_, validation_dock_}) delete dock;
}

void MainWindow::make_docks() {
  const auto dock = [this](const QString& title, const QString& name, QWidget* widget, Qt::DockWidgetArea area) {
    auto* made = new QDockWidget(title, this);
    made->setObjectName(name);
    if (area == Qt::LeftDockWidgetArea) {
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

void MainWindow::show_view(View view) { tabs_->setCurrentIndex(view); }

MainWindow::View MainWindow::view() const { return static_cast<View>(tabs_->currentIndex()); }

QWidget& MainWindow::widget_of(View view) { return *tabs_->widget(view); }

bool MainWindow::view_is_ready() const {
  if (!document_.settled()) return false;
  if (view() == kPlans) return !plans_->is_searching();
  if (view() == kExplain) return explain_->is_current();
  if (view() == kCompare) return !compare_->is_busy() && !validation_->is_busy();
  if (view() == kTimeline) return (trace_ || drawn_ == document_.evaluation()) && !timeline_->is_busy();
  return true;
}

void MainWindow::refresh_timeline() {
  const auto& evaluation = document_.evaluation();
  if (!document_.is_current() || view() != kTimeline || drawn_ == evaluation || trace_) return;
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
  if (!document_.settled()) return "Comes when the plan has been played.";
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

void MainWindow::take(const Project& project, const QString& path) {
  say("");
  path_ = path;
  run_.reset();
  record_.clear();
  drawn_.reset();
  document_.reset(project.scenario);
  runs_->corpus().setText(QString::fromStdString(project.corpus));
  plans_->set_pinned(project.pinned);
  changed_ = false;
  show_title();
  if (!project.record.empty()) load_record(QString::fromStdString(project.record));
}

void MainWindow::begin_example(const Scenario& scenario) { take({scenario, {}, {}, {}}, {}); }

bool MainWindow::open(const QString& path) {
  if (is_trace(path)) {
    if (!document_.evaluation()) begin_example(example_scenario());
    show_view(kTimeline);
    trace_ = true;
    timeline_->open_trace(path.toStdString());
    return true;
  }
  bool opened = true;
  const bool sound = guarded([&] {
    const nlohmann::json json = base::read_json_file(path.toStdString());
    if (json.is_object() && json.value("schema", nlohmann::json()) == "trivium.run/1") {
      if (!document_.evaluation()) begin_example(example_scenario());
      opened = load_record(path);
    } else {
      take(read_project(path.toStdString()), path);
    }
    if (opened) note_recent(path);
  });
  return sound && opened;
}

bool MainWindow::load_record(const QString& path) {
  return guarded([&] {
    const std::string name = path.toStdString();
    auto record = std::make_shared<program::RunRecord>(program::run_record_from_json(base::read_json_file(name), name));
    Scenario scenario = document_.scenario();
    scenario.file.job = record->job;
    scenario.file.cluster = record->cluster;
    scenario.cluster = hardware::cluster_from_json(record->cluster, name + "#/plan/cluster");
    scenario.ranks = 0;
    const bool same = program::to_json(scenario.file) == program::to_json(document_.scenario().file);
    run_ = std::move(record);
    record_ = path;
    if (path != runs_->record_path()) runs_->show_record(*run_, QFileInfo(path).fileName());
    if (!same) document_.edit(std::move(scenario), "the plan of the run");
    compared_.reset();
    show_view(kCompare);
    refresh_compare();
    refresh_validation();
  });
}

Project MainWindow::project() const {
  return {document_.scenario(), plans_->pinned(), runs_->corpus().text().toStdString(), record_.toStdString()};
}

Project MainWindow::kept_project(const std::string& path) {
  Project kept = project();
  const bool unsaved = path == autosave_path();
  const QString unsaved_copy = QString::fromStdString(record_beside(autosave_path()));
  const bool passing = runs_->is_passing(record_) || (record_ == unsaved_copy && !unsaved);
  if (!passing || !QFileInfo::exists(record_)) return kept;
  const std::string beside = record_beside(path);
  if (!unsaved || kept_ != record_) keep_record(kept.record, beside);
  if (unsaved) kept_ = record_;
  kept.record = beside;
  return kept;
}

bool MainWindow::save(const QString& path) {
  return guarded([&] {
    const Project kept = kept_project(path.toStdString());
    base::write_file_atomically(path.toStdString(), project_text(kept));
    record_ = QString::fromStdString(kept.record);
    path_ = path;
    changed_ = false;
    document_.history().setClean();
    note_recent(path);
    show_title();
  });
}

void MainWindow::autosave() {
  if (!changed_) return;
  guarded([&] { base::write_file_atomically(autosave_path(), project_text(kept_project(autosave_path()))); });
}

bool MainWindow::has_autosave() const { return QFileInfo::exists(QString::fromStdString(autosave_path())); }

bool MainWindow::restore_autosave() {
  return guarded([&] {
    take(read_project(autosave_path()), {});
    changed_ = true;
    show_title();
  });
}

void MainWindow::open_dock(QDockWidget& dock) {
  const bool first = run_dock_->isHidden() && validation_dock_->isHidden();
  dock.show();
  dock.raise();
  if (first) resizeDocks({&dock}, {kBottomDockHeight}, Qt::Vertical);
}

void MainWindow::show_runs() { open_dock(*run_dock_); }

void MainWindow::validate() { open_dock(*validation_dock_); }

QStringList MainWindow::recent_files() const { return kept_recent_files(); }

void MainWindow::note_recent(const QString& path) {
  QStringList files = recent_files();
  const QString whole = QFileInfo(path).absoluteFilePath();
  files.removeAll(whole);
  files.prepend(whole);
  while (files.size() > kMostRecent) files.removeLast();
  keep_recent_files(files);
  fill_recent();
}

void MainWindow::fill_recent() {
  recent_->clear();
  for (const QString& file : recent_files()) {
    recent_->addAction(QFileInfo(file).fileName(), this, [this, file] { open(file); })->setToolTip(file);
  }
  recent_->setEnabled(!recent_->isEmpty());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  keep_layout(*this);
  keep_view(view_names()[view()]);
  // What was saved needs no second copy; what was not is there at the next start.
  if (changed_) {
    autosave();
  } else {
    for (const std::string& unsaved : {autosave_path(), record_beside(autosave_path())}) {
      QFile::remove(QString::fromStdString(unsaved));
    }
  }
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) open(url.toLocalFile());
  }
}

}  // namespace trivium::gui
