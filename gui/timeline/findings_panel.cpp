#include "gui/timeline/findings_panel.h"

#include <fmt/format.h>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "base/error.h"
#include "base/readable.h"
#include "calibration/foreign/wording.h"
#include "gui/look/text.h"
#include "gui/model/display_name.h"

namespace trivium::gui {
namespace {

using calibration::foreign::Explanation;
using calibration::foreign::Finding;
using calibration::foreign::ForeignRun;
using calibration::foreign::OpRow;

QString seconds(double s) { return text(calibration::foreign::time_text(s)); }
QString count(int n, const char* one, const char* many) { return QString("%1 %2").arg(n).arg(n == 1 ? one : many); }

/// Files as they were read last: the thread's own.
struct ReadFiles {
  std::vector<std::string> names;
  ForeignRun run;
};

QTreeWidget* table_of(const QString& name, const QStringList& titles, int widest) {
  auto* table = new QTreeWidget;
  table->setAccessibleName(name);
  table->setColumnCount(static_cast<int>(titles.size()));
  table->setHeaderLabels(titles);
  table->setRootIsDecorated(false);
  table->setAlternatingRowColors(true);
  table->setWordWrap(true);
  table->setMinimumHeight(70);  // a small screen has room for it
  table->header()->setStretchLastSection(false);
  table->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->header()->setSectionResizeMode(widest, QHeaderView::Stretch);
  return table;
}

std::string quoted(const std::string& cell) {
  std::string made = "\"";
  for (const char c : cell) made += c == '"' ? "\"\"" : std::string(1, c);
  return made + "\"";
}

}  // namespace

FindingsPanel::FindingsPanel(QWidget* parent)
    : QWidget(parent),
      summary_(new QLabel),
      progress_(new QProgressBar),
      cancel_(new QPushButton(tr("Cancel"))),
      add_(new QPushButton(tr("Add traces …"))),
      plan_(new QPushButton(tr("Plan of the trace"))),
      close_(new QPushButton(tr("Close"))),
      findings_(table_of(tr("What costs time"), {tr("Seconds"), tr("Rank"), tr("What costs time"), tr("Remedy")}, 3)),
      ops_(table_of(tr("Ops of the trace against the plan"),
                    {tr("Op"), tr("Kernels"), tr("Measured"), tr("Predicted"), tr("Measured / predicted")}, 0)),
      work_(
          [read = std::make_shared<ReadFiles>()](const ForeignCase& asked, const std::stop_token& stop) {
            Answer answer;
            try {
              if (read->names != asked.files) {
                *read = {};
                read->run = calibration::foreign::read_foreign(asked.files);
                read->names = asked.files;
              }
              try {
                answer.told = calibration::foreign::told_fields(read->run);
              } catch (const base::Failure&) {
                answer.told.clear();  // the plan must be given then
              }
              answer.explanation = calibration::foreign::explain_foreign(read->run, asked.job, asked.cluster, stop);
            } catch (const base::Failure& failure) {
              answer.error = text(display_name(failure.error().message));
            } catch (const std::bad_alloc&) {
              answer.error = tr("The trace does not fit into this machine's memory");
            }
            return answer;
          },
          [this](Answer answer) { take(std::move(answer)); }) {
  setAccessibleName(tr("Findings of the trace"));
  summary_->setWordWrap(true);
  summary_->setAccessibleName(tr("What can be won"));
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  progress_->setRange(0, 0);
  progress_->setMaximumWidth(160);
  progress_->setAccessibleName(tr("Reading the trace"));
  add_->setToolTip(tr("Traces of other ranks of the same run, and its log: who waits for whom needs more than one"));
  plan_->setToolTip(tr("Sets ranks, batch, sequence and ZeRO stage as the trace tells them"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(summary_, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{progress_, cancel_, add_, plan_, close_}) {
    bar->addWidget(widget, 0, Qt::AlignTop);
  }
  auto* tabs = new QTabWidget;
  tabs->addTab(findings_, tr("Findings, worst first"));
  tabs->addTab(ops_, tr("Ops against the plan"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(bar);
  column->addWidget(tabs, 1);
  connect(cancel_, &QPushButton::clicked, this, &FindingsPanel::cancel);
  connect(add_, &QPushButton::clicked, this, [this] { on_add ? on_add() : void(); });
  connect(close_, &QPushButton::clicked, this, [this] { on_close ? on_close() : void(); });
  connect(plan_, &QPushButton::clicked, this, [this] { on_plan ? on_plan(told_) : void(); });
  set_busy(false);
  hide();
}

void FindingsPanel::set_busy(bool busy) {
  busy_ = busy;
  progress_->setVisible(busy);
  cancel_->setVisible(busy);
}

void FindingsPanel::set_case(std::optional<ForeignCase> asked) {
  asked_ = std::move(asked);
  work_.cancel();
  explanation_.reset();
  error_.clear();
  findings_->clear();
  ops_->clear();
  set_busy(asked_.has_value());
  setVisible(asked_.has_value());
  if (!asked_) return;
  plan_->setEnabled(false);
  summary_->setText(
      tr("Setting %1 against the plan …").arg(count(static_cast<int>(asked_->files.size()), "trace", "traces")));
  work_.post(*asked_);
}

void FindingsPanel::cancel() {
  if (!busy_) return;
  work_.cancel();
  set_busy(false);
  summary_->setText(tr("Cancelled: a change of the plan, or another trace, begins anew."));
}

void FindingsPanel::take(Answer answer) {
  set_busy(false);
  explanation_ = std::move(answer.explanation);
  told_ = std::move(answer.told);
  error_ = std::move(answer.error);
  plan_->setEnabled(!told_.empty());
  if (explanation_) return show_explanation();
  summary_->setText(error_.toHtmlEscaped());
}

void FindingsPanel::show_explanation() {
  const Explanation& e = *explanation_;
  QString words =
      e.findings.empty()
          ? tr("<b>Nothing of %1 an iteration stands out that could be won.</b>").arg(seconds(e.measured_s))
          : tr("<b>%1 of %2 an iteration can be won.</b>").arg(seconds(e.winnable_s), seconds(e.measured_s));
  words += tr(" The plan predicts %1. Mean over %2 of %3; %4 of the compute time is matched to the plan's ops.")
               .arg(seconds(e.predicted_s), count(e.steps, "whole iteration", "whole iterations"),
                    count(e.ranks, "traced rank", "traced ranks"), text(base::percent(e.matched_share)));
  if (e.traced_s != e.measured_s) words += tr(" Under the profiler it takes %1.").arg(seconds(e.traced_s));
  for (const std::string& note : e.notes) words += "<br>" + text(note).toHtmlEscaped() + ".";
  summary_->setText(words);
  for (const Finding& finding : e.findings) {
    auto* line = new QTreeWidgetItem(
        findings_, {seconds(finding.seconds), finding.rank ? QString::number(*finding.rank) : tr("all"),
                    text(finding.what), text(finding.remedy)});
    line->setTextAlignment(0, Qt::AlignRight | Qt::AlignVCenter);
    for (const int column : {2, 3}) line->setToolTip(column, line->text(column));
  }
  for (const OpRow& op : e.ops) {
    const bool both = op.predicted_s > 0 && op.measured_s > 0;
    auto* line =
        new QTreeWidgetItem(ops_, {text(op.op), text(base::integer(op.count)), seconds(op.measured_s),
                                   op.predicted_s > 0 ? seconds(op.predicted_s) : QString("–"),
                                   both ? QString::number(op.measured_s / op.predicted_s, 'f', 2) : QString("–")});
    for (const int column : {1, 2, 3, 4}) line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  }
}

std::string FindingsPanel::csv() const {
  std::string table = "what,rank,seconds,remedy\n";
  if (!explanation_) return table;
  for (const Finding& finding : explanation_->findings) {
    table += fmt::format("{},{},{},{}\n", quoted(finding.what), finding.rank ? std::to_string(*finding.rank) : "",
                         finding.seconds, quoted(finding.remedy));
  }
  return table;
}

}  // namespace trivium::gui
