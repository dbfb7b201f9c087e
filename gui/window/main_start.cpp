// What the window begins with: the start page, files of other trainers, this machine measured.
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QStatusBar>

#include "gui/model/project.h"
#include "gui/window/import_dialog.h"
#include "gui/window/main_window.h"

namespace trivium::gui {

void MainWindow::set_up_start_page() {
  start_page_->on_example = [this](const Scenario& scenario, const QString& words) { begin(scenario, words); };
  start_page_->on_own = [this](const Scenario& scenario) {
    if (!begin(scenario, "own cluster")) return;
    show_view(kPlans);
    plans_->search();
  };
  start_page_->on_open = [this](const QString& path) {
    if (!open_asking(path)) leave_start_page();  // what is wrong stands in the banner
  };
  start_page_->on_browse = [this] { ask_open(); };
  start_page_->on_import = [this] { ask_import(); };
  start_page_->on_earlier = [this] { restore_earlier_work(); };
}

void MainWindow::show_start_page() {
  if (shows_start_page()) return;
  docks_away_.clear();
  for (QDockWidget* dock : {start_dock_, plan_controls_dock_, run_dock_, validation_dock_}) {
    if (dock->isHidden()) continue;
    docks_away_.push_back(dock);
    dock->hide();
  }
  start_page_->list_kinds();
  start_page_->set_recent(recent_files());
  start_page_->set_earlier(QFileInfo::exists(QString::fromStdString(earlier_work_path())));
  pages_->setCurrentWidget(start_page_);
  statusBar()->hide();  // the command of what is not shown
}

void MainWindow::leave_start_page() {
  if (!shows_start_page()) return;
  pages_->setCurrentIndex(0);
  statusBar()->show();
  for (QDockWidget* dock : docks_away_) dock->show();
  docks_away_.clear();
}

void MainWindow::ask_open() {
  const QString path =
      QFileDialog::getOpenFileName(this, "Open a project, plan, run or trace", {},
                                   "Projects, plans, runs, traces (*.json *.json.gz *.sqlite);;All files (*)");
  if (!path.isEmpty() && !open_asking(path)) leave_start_page();
}

void MainWindow::ask_import() {
  const QString path =
      QFileDialog::getOpenFileName(this, "Import the launch file of another trainer", {},
                                   "Launch files (*.sh *.log *.txt *.json *.toml *.py);;All files (*)");
  if (!path.isEmpty()) import_launch_file(path);
}

void MainWindow::import_launch_file(const QString& path) {
  auto* dialog = new ImportDialog(
      path, document_.has_begun() ? QString::fromStdString(document_.scenario().cluster.name) : "", this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog, path] {
    const LaunchFile& read = *dialog->read();
    if (!begin(read.scenario, "import of " + QFileInfo(path).fileName())) return;
    QStringList lost;
    for (const std::string& one : read.lost) lost << QString::fromStdString(one);
    if (!lost.isEmpty()) say("Not taken over: " + lost.join("; "));
  });
  dialog->open();
}

void MainWindow::take_measured_machine() {
  const Scenario& now = document_.scenario();
  if (now.file.cluster.is_string() && now.file.cluster.get<std::string>().find("this-machine") != std::string::npos) {
    guarded([&] { document_.edit(with_cluster(now, now.file.cluster.get<std::string>()), "this machine, measured"); });
  }
  start_->refresh();
}

}  // namespace trivium::gui
