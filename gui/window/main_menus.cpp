// What the window offers in menus.
#include <QApplication>
#include <QFileDialog>
#include <QMenuBar>
#include <QMessageBox>

#include "gui/look/theme.h"
#include "gui/window/kept_layout.h"
#include "gui/window/main_window.h"

namespace trivium::gui {
namespace {

/// Those that no menu shows.
constexpr const char* kKeys = R"(<table cellspacing="6">
<tr><td colspan="2"><b>Cluster and timeline</b></td></tr>
<tr><td>W S, + −</td><td>zoom in and out</td></tr>
<tr><td>A D, arrows</td><td>pan; in the timeline the arrows step from span to span and from row to row</td></tr>
<tr><td>F</td><td>show all; in the timeline what is selected first</td></tr>
<tr><td>Esc</td><td>let go of the selection</td></tr>
<tr><td colspan="2"><b>Timeline</b></td></tr>
<tr><td>/, Enter, Shift+Enter</td><td>search, next, previous</td></tr>
<tr><td>Backspace, Shift+Backspace</td><td>back to what was seen before a jump, and forth</td></tr>
<tr><td>M, Shift+M</td><td>mark the selection or the pointer's place, no marks</td></tr>
<tr><td>, and .</td><td>the mark before, the next</td></tr>
<tr><td>drag</td><td>select a stretch of the rows dragged over, on the ruler of all; with Shift or the middle button pan</td></tr>
<tr><td>right button</td><td>pin a row on top, show it alone, save the selection</td></tr>
<tr><td>in the flame view: click, ↑ ↓ ← →</td><td>zoom in, up, down, to the adjacent bar</td></tr>
<tr><td>wheel, Ctrl+wheel, Shift+wheel</td><td>scroll, zoom at the pointer, pan</td></tr>
<tr><td colspan="2"><b>Memory</b></td></tr>
<tr><td>← →</td><td>the stage or rank before, after</td></tr>
</table>)";

void show_keys(QWidget& window) {
  auto* box = new QMessageBox(QMessageBox::NoIcon, "Keys", kKeys, QMessageBox::Close, &window);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::RichText);
  box->open();
}

void choose_theme(Theme theme) {
  apply_theme(theme);
  keep_theme(theme);
}

}  // namespace

QString MainWindow::ask_file(const QString& title, const QString& filter) {
  return QFileDialog::getSaveFileName(this, title, {}, filter);
}

void MainWindow::make_menus() {
  QMenu* file = menuBar()->addMenu("&File");
  QMenu* examples = file->addMenu("&New from example");
  const std::pair<const char*, Scenario (*)()> made[] = {{"GPT-3 175B on 1,024 A100", example_scenario},
                                                         {"GPT-3 13B on A100 and V100 nodes", mixed_example},
                                                         {"A tiny GPT on this machine", local_example}};
  for (const auto& [title, make] : made) {
    examples->addAction(title, this, [this, title, make] { begin(make(), QString("example ") + title); });
  }
  file->addAction("Start pa&ge", this, [this] { show_start_page(); });
  file->addAction("&Open …", QKeySequence::Open, this, [this] { ask_open(); });
  recent_ = file->addMenu("Open &recent");
  file->addAction("&Import from another trainer …", this, [this] { ask_import(); });
  file->addAction("&Save", QKeySequence::Save, this, [this] { save_as_asked(); });
  file->addAction("Save &as …", QKeySequence::SaveAs, this, [this] {
    if (const QString path = ask_file("Save the project", "Projects (*.json)"); !path.isEmpty()) save(path);
  });
  file->addSeparator();
  make_export_menu(*file);
  file->addSeparator();
  file->addAction("&Quit", QKeySequence::Quit, this, &QWidget::close);

  QMenu* edit = menuBar()->addMenu("&Edit");
  QAction* undo = document_.history().createUndoAction(this, "&Undo");
  QAction* redo = document_.history().createRedoAction(this, "&Redo");
  undo->setShortcut(QKeySequence::Undo);
  redo->setShortcuts({QKeySequence::Redo, QKeySequence("Ctrl+Y")});
  edit->addActions({undo, redo});
  edit->addSeparator();
  edit->addAction("&Copy as a command", QKeySequence("Ctrl+Shift+C"), this, [this] { copy_command(); });
  edit->addAction("Copy the &picture of the view", QKeySequence("Ctrl+Shift+P"), this, [this] { copy_picture(); });

  QMenu* plan = menuBar()->addMenu("&Plan");
  plan->addAction("&Search for the best plan", QKeySequence("Ctrl+F"), this, [this] {
    show_view(kPlans);
    plans_->search();
  });
  plan->addAction("&Cancel the search", QKeySequence("Ctrl+."), this, [this] { plans_->cancel(); });
  plan->addAction("&Pin the current plan", QKeySequence("Ctrl+D"), this, [this] { plans_->pin_current(); });

  make_run_menu();

  QMenu* view = menuBar()->addMenu("&View");
  for (int i = 0; i < kViews; ++i) {
    QString title = view_names()[i];
    title[0] = title[0].toUpper();
    view->addAction(title, QKeySequence(QString("Ctrl+%1").arg(i + 1)), this,
                    [this, i] { show_view(static_cast<View>(i)); });
  }
  view->addSeparator();
  view->addAction("Two plans", QKeySequence("Ctrl+9"), this, [this] { show_two_plans(); });
  view->addSeparator();
  view->addActions({start_dock_->toggleViewAction(), plan_controls_dock_->toggleViewAction(),
                    run_dock_->toggleViewAction(), validation_dock_->toggleViewAction()});
  view->addSeparator();
  view->addAction("&Light", this, [] { choose_theme(Theme::kLight); });
  view->addAction("&Dark", this, [] { choose_theme(Theme::kDark); });
  view->addAction("As the des&ktop", this, [] { choose_theme(Theme::kSystem); });

  menuBar()->addMenu("&Help")->addAction("&Keys of the views", QKeySequence("F1"), this, [this] { show_keys(*this); });
}

void MainWindow::make_export_menu(QMenu& file) {
  const auto with_file = [this](const QString& title, const QString& filter, bool (MainWindow::*work)(const QString&)) {
    return [this, title, filter, work] {
      if (const QString path = ask_file(title, filter); !path.isEmpty()) (this->*work)(path);
    };
  };
  file.addAction("Export &picture …", QKeySequence("Ctrl+P"), this,
                 with_file("Export the view as a picture", "Pictures (*.png *.svg)", &MainWindow::export_picture));
  file.addAction("Export &table …", QKeySequence("Ctrl+T"), this,
                 with_file("Export the view as a table", "Tables (*.csv)", &MainWindow::export_table));
  file.addAction("Export &plan …", QKeySequence("Ctrl+E"), this,
                 with_file("Export the plan for trivium", "Plans (*.json)", &MainWindow::export_plan));
  file.addAction("Export t&race …", this,
                 with_file("Export the timeline for Perfetto", "Traces (*.json)", &MainWindow::export_trace));
  file.addAction("Export &HTML report …", QKeySequence("Ctrl+H"), this,
                 with_file("Export a report", "Reports (*.html)", &MainWindow::export_report));
  QMenu* launches = file.addMenu("Export for another &trainer");
  for (const planner::launch::TrainerVersion& known : planner::launch::trainers()) {
    const QString name = QString::fromUtf8(known.software.data(), static_cast<qsizetype>(known.software.size()));
    launches->addAction(name + " …", this, [this, name, trainer = known.trainer] {
      const QString path = ask_file("Export what launches the plan in " + name, "All files (*)");
      if (!path.isEmpty()) export_launch(path, trainer);
    });
  }
}

void MainWindow::ask_record() {
  const QString path = QFileDialog::getOpenFileName(this, "Load a run record", {}, "Run records (*.json)");
  if (!path.isEmpty()) load_record(path);
}

void MainWindow::make_run_menu() {
  QMenu* run = menuBar()->addMenu("&Run");
  run->addAction("&Run on this machine", QKeySequence("Ctrl+R"), this, [this] {
    show_runs();
    runs_->start();
  });
  run->addAction("S&top", QKeySequence("Ctrl+Shift+R"), this, [this] { runs_->stop(); });
  run->addAction("&Load a run record …", QKeySequence("Ctrl+L"), this, [this] { ask_record(); });
  run->addAction("R&esume from the checkpoint", this, [this] {
    show_runs();
    runs_->resume();
  });
  run->addAction("&Validate the run", QKeySequence("Ctrl+K"), this, [this] { validate(); });
  run->addAction("&Calibrate a profile from the run …", this, [this] {
    if (record_.isEmpty()) return say("Run the plan, or load a run record, to calibrate from it.");
    const QString profile = ask_file("Save the calibrated profile", "Hardware profiles (*.json)");
    if (profile.isEmpty()) return;
    show_runs();
    runs_->calibrate(record_, profile);
  });
}

}  // namespace trivium::gui
