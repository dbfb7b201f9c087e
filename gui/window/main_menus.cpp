// What the window offers in menus, and what leaves it as files.
#include <QApplication>
#include <QFileDialog>
#include <QMenuBar>
#include <nlohmann/json.hpp>

#include "edge/files.h"
#include "gui/look/theme.h"
#include "gui/model/report.h"
#include "gui/window/main_window.h"
#include "gui/window/pictures.h"
#include "program/chrome_trace.h"

namespace trivium::gui {
namespace {

void write(const QString& path, const std::string& content) {
  edge::write_file_atomically(path.toStdString(), content);
}

[[noreturn]] void nothing_to_export() {
  throw edge::Failure(edge::ErrorKind::kUsage, "The plan cannot run; there is nothing to export.");
}

}  // namespace

QString MainWindow::ask_file(const QString& title, const QString& filter) {
  return QFileDialog::getSaveFileName(this, title, {}, filter);
}

void MainWindow::make_menus() {
  const auto with_file = [this](const QString& title, const QString& filter, bool (MainWindow::*work)(const QString&)) {
    return [this, title, filter, work] {
      if (const QString file = ask_file(title, filter); !file.isEmpty()) (this->*work)(file);
    };
  };
  QMenu* file = menuBar()->addMenu("&File");
  QMenu* examples = file->addMenu("&New from example");
  examples->addAction("GPT-3 175B on 1,024 A100", this, [this] { begin_example(example_scenario()); });
  examples->addAction("GPT-3 13B on A100 and V100 nodes", this, [this] { begin_example(mixed_example()); });
  examples->addAction("A tiny GPT on this machine", this, [this] { begin_example(local_example()); });
  file->addAction("&Open …", QKeySequence::Open, this, [this] {
    const QString path = QFileDialog::getOpenFileName(this, "Open a project, plan or run", {}, "JSON files (*.json)");
    if (!path.isEmpty()) open(path);
  });
  recent_ = file->addMenu("Open &recent");
  file->addAction("&Save", QKeySequence::Save, this, [this] {
    const QString path = path_.isEmpty() ? ask_file("Save the project", "Projects (*.json)") : path_;
    if (!path.isEmpty()) save(path);
  });
  file->addAction("Save &as …", QKeySequence::SaveAs, this,
                  with_file("Save the project", "Projects (*.json)", &MainWindow::save));
  file->addSeparator();
  file->addAction("Export &picture …", QKeySequence("Ctrl+P"), this,
                  with_file("Export the view as a picture", "Pictures (*.png *.svg)", &MainWindow::export_picture));
  file->addAction("Export &table …", QKeySequence("Ctrl+T"), this,
                  with_file("Export the view as a table", "Tables (*.csv)", &MainWindow::export_table));
  file->addAction("Export &plan …", QKeySequence("Ctrl+E"), this,
                  with_file("Export the plan for trivium", "Plans (*.json)", &MainWindow::export_plan));
  file->addAction("Export t&race …", this,
                  with_file("Export the timeline for Perfetto", "Traces (*.json)", &MainWindow::export_trace));
  file->addAction("Export &HTML report …", QKeySequence("Ctrl+H"), this,
                  with_file("Export a report", "Reports (*.html)", &MainWindow::export_report));
  file->addSeparator();
  file->addAction("&Quit", QKeySequence::Quit, this, &QWidget::close);

  QMenu* edit = menuBar()->addMenu("&Edit");
  QAction* undo = document_.history().createUndoAction(this, "&Undo");
  QAction* redo = document_.history().createRedoAction(this, "&Redo");
  undo->setShortcut(QKeySequence::Undo);
  redo->setShortcuts({QKeySequence::Redo, QKeySequence("Ctrl+Y")});
  edit->addActions({undo, redo});

  QMenu* plan = menuBar()->addMenu("&Plan");
  plan->addAction("&Search the best plan", QKeySequence("Ctrl+F"), this, [this] {
    show_view(kPlans);
    plans_->search();
  });
  plan->addAction("&Cancel the search", QKeySequence("Ctrl+."), this, [this] { plans_->cancel(); });
  plan->addAction("&Pin the current plan", QKeySequence("Ctrl+D"), this, [this] { plans_->pin_current(); });

  QMenu* run = menuBar()->addMenu("&Run");
  run->addAction("&Run on this machine", QKeySequence("Ctrl+R"), this, [this] {
    run_dock_->show();
    runs_->start();
  });
  run->addAction("S&top", QKeySequence("Ctrl+Shift+R"), this, [this] { runs_->stop(); });
  run->addAction("&Load a run record …", QKeySequence("Ctrl+L"), this, [this] {
    const QString path = QFileDialog::getOpenFileName(this, "Load a run record", {}, "Run records (*.json)");
    if (!path.isEmpty()) load_record(path);
  });
  run->addAction("&Calibrate a profile from the run …", this, [this] {
    if (record_.isEmpty()) return say("Run the plan, or load a run record, to calibrate from it.");
    const QString profile = ask_file("Save the calibrated profile", "Hardware profiles (*.json)");
    if (profile.isEmpty()) return;
    run_dock_->show();
    runs_->calibrate(record_, profile);
  });

  QMenu* view = menuBar()->addMenu("&View");
  for (int i = 0; i < kViews; ++i) {
    QString title = view_names()[i];
    title[0] = title[0].toUpper();
    view->addAction(title, QKeySequence(QString("Ctrl+%1").arg(i + 1)), this,
                    [this, i] { show_view(static_cast<View>(i)); });
  }
  view->addSeparator();
  view->addActions({start_dock_->toggleViewAction(), knobs_dock_->toggleViewAction(), run_dock_->toggleViewAction()});
  view->addSeparator();
  view->addAction("&Light", this, [] { apply_theme(Theme::kLight); });
  view->addAction("&Dark", this, [] { apply_theme(Theme::kDark); });
}

bool MainWindow::export_picture(const QString& path) {
  return guarded([&] { save_picture(widget_of(view()), path.toStdString()); });
}

bool MainWindow::export_plan(const QString& path) {
  return guarded([&] { write(path, program::to_json(document_.scenario().file).dump(2) + "\n"); });
}

bool MainWindow::export_table(const QString& path) {
  return guarded([&] {
    if (view() == kPlans) return write(path, plans_csv(plans_->plans()));
    if (view() == kExplain) return write(path, insight_csv(explain_->insight()));
    const auto& evaluation = document_.evaluation();
    if (!evaluation || !evaluation->runs()) nothing_to_export();
    if (view() == kMemory) return write(path, memory_csv(*evaluation));
    if (view() == kCluster) return write(path, ranks_csv(*evaluation));
    write(path, timeline_csv(*evaluation));
  });
}

bool MainWindow::export_trace(const QString& path) {
  return guarded([&] {
    const auto& evaluation = document_.evaluation();
    if (!evaluation || !evaluation->runs()) nothing_to_export();
    if (evaluation->depth != Depth::kFull) {
      throw edge::Failure(edge::ErrorKind::kUsage, "The plan is still being played op by op; try again in a moment.");
    }
    write(path, program::chrome_trace(*evaluation->program, *evaluation->timeline));
  });
}

bool MainWindow::export_report(const QString& path) {
  return guarded([&] {
    const auto& evaluation = document_.evaluation();
    if (!evaluation || !evaluation->runs()) nothing_to_export();
    std::vector<ReportPicture> pictures;
    const View before = view();
    for (const View one : {kCluster, kTimeline, kMemory}) {
      show_view(one);
      QString title = view_names()[one];
      title[0] = title[0].toUpper();
      pictures.push_back({title.toStdString(), png_of(widget_of(one)).toBase64().toStdString()});
    }
    show_view(before);
    const Insight& said = explain_->insight();
    write(path, report_html(*evaluation, explain_->is_current() ? said : Insight{}, plans_->plans(), pictures));
  });
}

}  // namespace trivium::gui
