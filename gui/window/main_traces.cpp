// Traces of other trainers, compared with the plan.
#include <QFileDialog>
#include <QFileInfo>

#include "gui/window/main_window.h"
#include "program/plan/job_json.h"

namespace trivium::gui {

void MainWindow::open_traces(const QStringList& paths) {
  if (!document_.evaluation()) begin_example(example_scenario());
  set_foreign(paths);
  show_view(kTimeline);
  trace_ = QFileInfo(paths.front()).fileName();
  timeline_->open_trace(paths.front().toStdString());
  headline_->set_beside(QString("The timeline shows %1; the figures are of the plan. Compare says what that run loses "
                                "against it.")
                            .arg(trace_));
  note_recent(paths.front());
  leave_start_page();
}

void MainWindow::set_foreign(const QStringList& files) {
  foreign_ = files;
  explained_.reset();
  if (foreign_.isEmpty() || view() != kCompare) compare_->set_foreign(std::nullopt);
  refresh_foreign();
}

// Long work: begun where it is looked at, and anew for every plan.
void MainWindow::refresh_foreign() {
  const auto& evaluation = document_.evaluation();
  if (foreign_.isEmpty() || view() != kCompare || !document_.settled() || explained_ == evaluation) return;
  explained_ = evaluation;
  std::vector<std::string> files;
  for (const QString& file : foreign_) files.push_back(file.toStdString());
  const Scenario& scenario = evaluation->scenario;
  compare_->set_foreign(ForeignCase{std::move(files), scenario.file.job, scenario.cluster});
}

void MainWindow::set_up_findings() {
  connect(&compare_->run_button(), &QPushButton::clicked, this, [this] { show_runs(); });
  runs_->on_refusal = [this](const QString& why) {
    compare_->run_button().setEnabled(why.isEmpty());
    compare_->run_button().setToolTip(why);
  };
  connect(&compare_->load_button(), &QPushButton::clicked, this, [this] { ask_record(); });
  connect(&compare_->trace_button(), &QPushButton::clicked, this, [this] { ask_open(); });
  FindingsPanel& findings = compare_->findings();
  findings.on_add = [this] {
    const QStringList more =
        QFileDialog::getOpenFileNames(this, "Add traces of other ranks, or the log of the run", {},
                                      "Traces and logs (*.json *.json.gz *.sqlite *.log *.txt);;All files (*)");
    if (more.isEmpty()) return;
    QStringList all = foreign_;
    for (const QString& one : more) {
      if (!all.contains(one)) all << one;
    }
    set_foreign(all);
  };
  findings.on_close = [this] { set_foreign({}); };
  findings.on_plan = [this](const std::map<std::string, std::string>& told) {
    guarded([&] {
      Scenario scenario = document_.scenario();
      program::Plan plan;  // what a trace does not tell is as a new plan has it
      for (const auto& [field, text] : told) {
        program::set_field(plan, scenario.file.job.training, field, text);
      }
      scenario.file.job.plan = std::move(plan);
      document_.edit(std::move(scenario), "the plan of the trace");
    });
  };
}

}  // namespace trivium::gui
