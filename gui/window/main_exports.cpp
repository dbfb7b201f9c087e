// What leaves the window as files.
#include <QClipboard>
#include <QDate>
#include <QGuiApplication>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/files.h"
#include "gui/model/display_name.h"
#include "gui/model/report.h"
#include "gui/model/spread.h"
#include "gui/window/main_window.h"
#include "gui/window/pictures.h"
#include "program/lower/lower.h"
#include "program/record/chrome_trace.h"

namespace trivium::gui {
namespace {

void write(const QString& path, const std::string& content) {
  base::write_file_atomically(path.toStdString(), content);
}

[[noreturn]] void nothing_to_export() {
  throw base::Failure(base::ErrorKind::kUsage, "The plan cannot run; there is nothing to export.");
}

[[noreturn]] void nothing_to_compare() {
  throw base::Failure(base::ErrorKind::kUsage, "Choose two plans first; there is nothing to export.");
}

}  // namespace

bool MainWindow::export_picture(const QString& path) {
  return guarded([&] { save_picture(widget_of(view()), path.toStdString(), title_of_picture()); });
}

void MainWindow::copy_picture() {
  QGuiApplication::clipboard()->setImage(picture_of(widget_of(view()), title_of_picture()));
}

// Who finds the picture later knows what it is of, and when it was made.
QStringList MainWindow::title_of_picture() const {
  const auto& evaluation = document_.evaluation();
  QStringList lines;
  if (view() == kTimeline && !trace_.isEmpty()) {
    lines << trace_;
  } else if (evaluation) {
    lines << QString::fromStdString(job_words(evaluation->scenario));
    lines << QString::fromStdString(display_name(program::summary(evaluation->scenario.file.job.plan)));
    if (evaluation->runs()) {
      lines.back() += QString(": %1 an iteration").arg(headline_->figure(0));
      lines.back() += document_.is_current() ? "" : ", of the plan before";
    }
  }
  QString name = view_names()[view()];
  name[0] = name[0].toUpper();
  return lines << QString("%1, Trivium, %2").arg(name, QDate::currentDate().toString(Qt::ISODate));
}

bool MainWindow::export_plan(const QString& path) {
  return guarded([&] { write(path, program::to_json(document_.scenario().file).dump(2) + "\n"); });
}

bool MainWindow::export_table(const QString& path) {
  return guarded([&] {
    if (view() == kPlans) return write(path, plans_csv(plans_->plans()));
    if (view() == kTimeline && !trace_.isEmpty()) return write(path, timeline_->ops().csv());
    if (view() == kCompare && two_plans_->isVisible()) {
      if (two_plans_->difference().parts.empty()) nothing_to_compare();
      return write(path, two_plans_->csv());
    }
    if (view() == kCompare && compare_->findings().explanation()) return write(path, compare_->findings().csv());
    if (view() == kExplain) return write(path, insight_csv(explain_->insight()));
    if (view() == kWhatIf) return write(path, what_if_csv(what_if_->answer()));
    const auto& evaluation = document_.evaluation();
    if (!evaluation || !evaluation->runs()) nothing_to_export();
    if (view() == kMemory) {
      return write(path, memory_->shows_ranks() ? ranks_memory_csv(*evaluation) : memory_csv(*evaluation));
    }
    if (view() == kLinks) return write(path, wires_csv(wires_of(*evaluation)));
    if (view() == kCluster) return write(path, ranks_csv(*evaluation));
    write(path, timeline_csv(*evaluation));
  });
}

bool MainWindow::export_ops(const QString& path) {
  return guarded([&] { write(path, timeline_->ops().csv()); });
}

bool MainWindow::export_selection(const QString& path) {
  return guarded([&] { write(path, timeline_->selection_csv()); });
}

bool MainWindow::export_trace(const QString& path) {
  return guarded([&] {
    const auto& evaluation = document_.evaluation();
    if (!evaluation || !evaluation->runs()) nothing_to_export();
    if (evaluation->depth != Depth::kFull) {
      throw base::Failure(base::ErrorKind::kUsage,
                          "The plan is still being simulated op by op; try again in a moment.");
    }
    write(path, program::chrome_trace(*evaluation->program, *evaluation->timeline));
  });
}

bool MainWindow::export_report(const QString& path) {
  return guarded([&] {
    const auto& evaluation = document_.evaluation();
    if (!evaluation || !evaluation->runs()) nothing_to_export();
    Report report{path, evaluation, plans_->plans(), png_of(cluster_->canvas()).toBase64().toStdString()};
    if (explain_->is_current()) {
      return write(path, report_html(*evaluation, explain_->insight(), explain_->spread(), report.plans,
                                     {{"The cluster", report.cluster_png}}));
    }
    reporting_ = true;
    say("Computing reasons and random variation for the report …");
    reporter_.post(std::move(report));
  });
}

MainWindow::WrittenReport MainWindow::compute_report(const Report& report, const std::stop_token& stop) {
  WrittenReport written{report.path, {}};
  try {
    const Insight reasons = insight(*report.evaluation, stop);
    const auto spread = sample_spread(*report.evaluation, kUsualJitter, stop);
    if (!stop.stop_requested()) {
      write(report.path,
            report_html(*report.evaluation, reasons, spread, report.plans, {{"The cluster", report.cluster_png}}));
    }
  } catch (const base::Failure& failure) {
    written.error = QString::fromStdString(failure.error().message);
  }
  return written;
}

bool MainWindow::export_launch(const QString& path, planner::launch::Trainer trainer) {
  return guarded([&] {
    const Scenario& scenario = document_.scenario();
    const auto checked = program::check(scenario.file.job);
    const auto* no = std::get_if<program::Infeasible>(&checked);
    if (no != nullptr && !no->rule.ends_with("-supported")) {  // what we do not run ourselves yet may be exported
      throw base::Failure(base::ErrorKind::kNoPlan, "The plan cannot run: " + no->reason);
    }
    const planner::launch::Launch launch = planner::launch::export_plan(scenario.file.job, scenario.cluster, trainer);
    write(path, launch.text);
    QStringList lost;
    for (const planner::launch::Loss& loss : launch.losses) {
      lost << QString::fromStdString(loss.field + ": " + loss.what);
    }
    const std::string_view software = planner::launch::version_of(trainer).software;
    const QString name = QString::fromUtf8(software.data(), static_cast<qsizetype>(software.size()));
    say(lost.isEmpty() ? QString("Written for %1.").arg(name)
                       : QString("Written for %1, which cannot be told: %2").arg(name, lost.join("; ")));
  });
}

bool MainWindow::export_validation(const QString& path) {
  return guarded([&] { validation_->save(path.toStdString()); });
}

}  // namespace trivium::gui
