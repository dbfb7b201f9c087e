// Files that come in and go out: nothing that is not saved goes without a question, and what came can be undone.
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QMimeData>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_reader.h"
#include "gui/timeline/spans/trace_file.h"
#include "gui/window/kept_layout.h"
#include "gui/window/main_window.h"
#include "hardware_profiles/load.h"

namespace trivium::gui {
namespace {

constexpr int kAutosaveMs = 400;
constexpr int kMostRecent = 8;

/// Traces are too large to be read twice: they are told by how they begin. Nothing else is packed, or a database.
bool is_trace(const QString& path) {
  QFile file(path);
  constexpr qint64 kBegin = 4096;
  if (!file.open(QIODevice::ReadOnly)) return false;
  const QByteArray begin = file.read(kBegin);
  return begin.contains("\"traceEvents\"") ||
         is_packed_trace({begin.constData(), static_cast<std::size_t>(begin.size())});
}

QMessageBox* question_about(QWidget& window, const QString& text, const QString& informative) {
  auto* box = new QMessageBox(QMessageBox::Question, "Trivium", text, QMessageBox::NoButton, &window);
  box->setObjectName("question");
  box->setInformativeText(informative);
  return box;
}

}  // namespace

/// What belongs to one work in addition to its scenario.
struct MainWindow::Work {
  QString path, record, corpus;
  std::shared_ptr<const program::RunRecord> run;
  std::vector<program::Plan> pinned;
  bool changed = false;
};

MainWindow::Work MainWindow::work_at_hand() const {
  return {path_, record_, runs_->corpus().text(), run_, plans_->pinned(), changed_};
}

void MainWindow::show_work(const Work& work) {
  say("");
  path_ = work.path;
  run_ = work.run;
  record_ = work.record;
  drawn_.reset();
  state_to_come_.reset();
  runs_->corpus().setText(work.corpus);
  plans_->set_pinned(work.pinned);
  changed_ = work.changed;
  show_title();
}

void MainWindow::take(const Project& project, const QString& path, const QString& words) {
  Work now{path, {}, QString::fromStdString(project.corpus), nullptr, project.pinned, false};
  if (words.isEmpty() || !document_.has_begun()) {
    document_.reset(project.scenario);
    show_work(now);
  } else {
    const auto before = std::make_shared<Work>(), after = std::make_shared<Work>(std::move(now));
    // What was done with a work while it stood here stays with it.
    document_.replace(project.scenario, words,
                      {[this, before, after](bool forth) { *(forth ? before : after) = work_at_hand(); },
                       [this, before, after](bool forth) { show_work(*(forth ? after : before)); }});
  }
  if (!project.record.empty()) load_record(QString::fromStdString(project.record));
  if (!project.views.view.empty()) show_state(project.views);
}

void MainWindow::begin_example(const Scenario& scenario) { take({scenario, {}, {}, {}, {}}, {}, {}); }

bool MainWindow::begin(const Scenario& scenario, const QString& words) {
  if (!may_leave("begin something else")) return false;
  take({scenario, {}, {}, {}, {}}, {}, words);
  leave_start_page();
  return true;
}

bool MainWindow::may_leave(const QString& what_next) {
  const bool loses_run = runs_->is_passing(record_) && QFileInfo::exists(record_) && !path_.isEmpty();
  if (!changed_ && !loses_run) return true;
  const QString name = path_.isEmpty() ? QString("This work") : QFileInfo(path_).fileName();
  auto* box = question_about(
      *this, changed_ ? name + " has changes that are not saved." : "The record of the run is not saved.",
      QString("Save before you %1? Undo brings it back as long as this window is open.").arg(what_next));
  const std::unique_ptr<QMessageBox> owned(box);
  auto* save_button = box->addButton("&Save", QMessageBox::AcceptRole);
  auto* drop_button = box->addButton("&Don't save", QMessageBox::DestructiveRole);
  box->addButton(QMessageBox::Cancel);
  box->setDefaultButton(save_button);
  box->exec();
  if (box->clickedButton() == drop_button) return true;
  return box->clickedButton() == save_button && save_as_asked();
}

bool MainWindow::may_end_run() {
  if (!runs_->is_running()) return true;
  auto* box = question_about(*this, "A run goes on: " + runs_->progress_words(), runs_->what_ending_loses());
  const std::unique_ptr<QMessageBox> owned(box);
  auto* end_button = box->addButton("&End the run", QMessageBox::DestructiveRole);
  box->setDefaultButton(box->addButton(QMessageBox::Cancel));
  box->exec();
  return box->clickedButton() == end_button;
}

bool MainWindow::save_as_asked() {
  const QString path = path_.isEmpty() ? ask_file("Save the project", "Projects (*.json)") : path_;
  return !path.isEmpty() && save(path);
}

bool MainWindow::open_asking(const QString& path) {
  if (!is_trace(path) && !may_leave("open " + QFileInfo(path).fileName())) return false;
  return open(path);
}

bool MainWindow::open(const QString& path) {
  if (is_trace(path)) {
    open_traces({path});
    return true;
  }
  bool opened = true;
  const bool sound = guarded([&] {
    const nlohmann::json json = base::read_json_file(path.toStdString());
    if (json.is_object() && json.value("schema", nlohmann::json()) == "trivium.run/1") {
      if (!document_.evaluation()) begin_example(example_scenario());
      opened = load_record(path);
    } else {
      take(read_project(path.toStdString()), path, "opening of " + QFileInfo(path).fileName());
    }
    if (opened) note_recent(path);
  });
  if (sound && opened) leave_start_page();
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
    if (runs_->is_passing(path)) note_change();
    compared_.reset();
    show_view(kCompare);
    refresh_compare();
    refresh_validation();
  });
}

Project MainWindow::project() const {
  return {document_.scenario(), plans_->pinned(), runs_->corpus().text().toStdString(), record_.toStdString(),
          view_state()};
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

void MainWindow::note_change() {
  changed_ = true;
  autosave_timer_.start(kAutosaveMs);
  show_title();
}

void MainWindow::autosave() {
  if (!changed_ || keeps_nothing_) return;
  keep_layout(*this);  // a window that is killed comes back as it was
  keep_view(view_names()[view()]);
  guarded([&] {
    if (!std::exchange(autosave_is_ours_, true)) keep_earlier_work();
    base::write_file_atomically(autosave_path(), project_text(kept_project(autosave_path())));
  });
}

// What an earlier window left and this one did not take up makes room without being lost.
void MainWindow::keep_earlier_work() {
  if (!has_autosave()) return;
  try {
    Project earlier = read_project(autosave_path());
    if (earlier.record == record_beside(autosave_path())) {
      const std::string beside = record_beside(earlier_work_path());
      keep_record(earlier.record, beside);
      earlier.record = beside;
    }
    base::write_file_atomically(earlier_work_path(), project_text(earlier));
  } catch (const base::Failure&) {
    return;  // what cannot be read cannot be kept
  }
}

bool MainWindow::restore_earlier_work() {
  if (!may_leave("take up the earlier work")) return false;
  return guarded([&] {
    take(read_project(earlier_work_path()), {}, "taking up of earlier work");
    note_change();
    leave_start_page();
  });
}

bool MainWindow::has_autosave() const { return QFileInfo::exists(QString::fromStdString(autosave_path())); }

bool MainWindow::restore_autosave() {
  return guarded([&] {
    take(read_project(autosave_path()), {}, {});
    autosave_is_ours_ = true;
    changed_ = true;
    show_title();
    leave_start_page();
  });
}

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
  recent_->setToolTipsVisible(true);
  for (const QString& file : recent_files()) {
    recent_->addAction(QFileInfo(file).fileName(), this, [this, file] { open_asking(file); })->setToolTip(file);
  }
  recent_->setEnabled(!recent_->isEmpty());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  event->ignore();
  if (!may_end_run()) return;
  // Work without a file is there at the next start; that of a file is asked about.
  if (!path_.isEmpty() && !may_leave("close the window")) return;
  keep_layout(*this);
  keep_view(view_names()[view()]);
  const bool dropped = !path_.isEmpty() && changed_;
  if (changed_ && !dropped) {
    autosave();
  } else if (autosave_is_ours_) {
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
  QStringList traces;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (!url.isLocalFile()) continue;
    if (is_trace(url.toLocalFile())) {
      traces << url.toLocalFile();
    } else {
      open_asking(url.toLocalFile());
    }
  }
  if (!traces.isEmpty()) open_traces(traces);
}

}  // namespace trivium::gui
