#include "gui/window/validation_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/readable.h"
#include "calibration/validate/validate.h"
#include "gui/look/text.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/model/report.h"

namespace trivium::gui {
namespace {

QString signed_percent(double share) {
  return QString("%1%2 %").arg(share < 0 ? "−" : "+").arg(std::abs(100 * share), 0, 'f', 1);
}

/// What ran, of the backends that records name.
QString backend_words(const std::string& backend) {
  if (backend == "cpu-threads") return "The run had a thread for every rank, on CPU cores.";
  if (backend == "cpu-mpi") return "The run had a process for every rank, on CPU cores, joined by MPI.";
  if (backend == "cuda-nccl") return "The run had a GPU for every rank, joined by NCCL.";
  return QString("The run was made by %1.").arg(text(backend).toHtmlEscaped());
}

constexpr const char* kHint = "Run the plan, or load a run record, to see how far it is from the prediction.";

}  // namespace

ValidationPanel::ValidationPanel(QWidget* parent)
    : QWidget(parent),
      summary_(new QLabel(kHint)),
      table_(new QTreeWidget),
      export_(new QPushButton("Export …")),
      load_(new QPushButton("Load a run record …")),
      work_(
          [](const Comparison& asked, const std::stop_token& stop) {
            Answer answer;
            try {
              answer.validation = calibration::validate_run(asked.plan, *asked.record, asked.cluster, stop);
            } catch (const base::Failure& failure) {
              answer.error = text(display_name(failure.error().message));
            }
            return answer;
          },
          [this](Answer answer) { show_answer(std::move(answer)); }) {
  setAccessibleName("Validation");
  summary_->setWordWrap(true);
  summary_->setAccessibleName("Result of the validation");
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  table_->setAccessibleName("Errors by op kind and rank");
  table_->setColumnCount(6);
  table_->setHeaderLabels({"Op kind or rank", "Cases", "Mean error", "Bias", "Median", "Largest"});
  table_->setAlternatingRowColors(true);
  table_->header()->setStretchLastSection(false);
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  export_->setEnabled(false);
  auto* row = new QHBoxLayout;
  row->addWidget(summary_, 1);
  row->addWidget(load_, 0, Qt::AlignTop);
  row->addWidget(export_, 0, Qt::AlignTop);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(row);
  layout->addWidget(table_, 1);
  connect(load_, &QPushButton::clicked, this, [this] {
    if (on_load) on_load();
  });
  connect(export_, &QPushButton::clicked, this, [this] {
    if (on_export) on_export();
  });
}

void ValidationPanel::set_case(std::optional<Comparison> asked, const QString& why_none) {
  asked_ = std::move(asked);
  work_.cancel();
  busy_ = false;
  validation_.reset();
  table_->clear();
  export_->setEnabled(false);
  say(why_none.isEmpty() ? QString(kHint) : why_none);
  stale_ = asked_.has_value();
  load_->setVisible(!stale_);
  if (isVisible()) ask();
}

// A layout gives words that break into lines one line less than they take where they came after it was made.
void ValidationPanel::say(const QString& words) {
  summary_->setText(words);
  fit_words();
}

void ValidationPanel::fit_words() { summary_->setMinimumHeight(summary_->heightForWidth(summary_->width())); }

void ValidationPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit_words();
}

void ValidationPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ask();
}

void ValidationPanel::ask() {
  if (!stale_) return;
  stale_ = false;
  busy_ = true;
  say("Setting the run against the prediction …");
  work_.post(*asked_);
}

void ValidationPanel::show_answer(Answer answer) {
  busy_ = false;
  validation_ = std::move(answer.validation);
  table_->clear();
  export_->setEnabled(validation_.has_value());
  if (!validation_) {
    say(answer.error);
    return;
  }
  QStringList lines;
  for (const calibration::ValidationRow& row : validation_->rows) {
    if (row.unsupported) {
      lines << "The plan cannot be predicted: " + text(display_name(*row.unsupported));
      continue;
    }
    const int steps = static_cast<int>(asked_->record->steps.size());
    const QString of =
        steps > 1 ? QString(" (median of the run's %1 steps after the first)").arg(steps - 1) : QString();
    lines << QString("<b>Iteration: predicted %1, measured %2%3: %4.</b>")
                 .arg(text(seconds_words(row.predicted_iteration_s)), text(seconds_words(row.measured_iteration_s)), of,
                      signed_percent(row.error));
    if (row.predicted_peak_bytes && row.measured_peak_bytes) {
      lines << QString(
                   "Peak memory of the fullest rank, without the device's reserve (the figure on top includes it): "
                   "predicted %1, measured %2.")
                   .arg(text(base::size(static_cast<std::int64_t>(*row.predicted_peak_bytes))),
                        text(base::size(static_cast<std::int64_t>(*row.measured_peak_bytes))));
    }
    lines << backend_words(asked_->record->backend);
    if (row.source.find("another Program") != std::string::npos) {
      lines << "The run was of another plan: ops are compared by kind alone.";
    }
  }
  say(lines.join(' '));
  add_group("op", "Op kinds");
  add_group("rank", "Ranks");
}

void ValidationPanel::add_group(const char* by, const QString& title) {
  std::vector<const calibration::ValidationGroup*> groups;
  for (const calibration::ValidationGroup& group : validation_->groups) {
    if (group.by == by) groups.push_back(&group);
  }
  if (groups.empty()) return;
  std::stable_sort(groups.begin(), groups.end(), [](const auto* a, const auto* b) { return a->mape > b->mape; });
  auto* parent = new QTreeWidgetItem(table_, {title + ", the worst first"});
  QFont bold = table_->font();
  bold.setBold(true);
  parent->setFont(0, bold);
  parent->setFirstColumnSpanned(true);
  parent->setExpanded(true);
  for (const calibration::ValidationGroup* group : groups) {
    auto* line = new QTreeWidgetItem(
        parent, {text(group->name).replace('_', ' '), QString::number(group->cases), text(base::percent(group->mape)),
                 signed_percent(group->bias), text(base::percent(group->median)), text(base::percent(group->max))});
    for (int column = 1; column < table_->columnCount(); ++column) {
      line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
  }
}

void ValidationPanel::save(const std::string& path) const {
  if (!validation_) throw base::Failure(base::ErrorKind::kUsage, "Nothing is validated yet; run the plan first.");
  if (path.ends_with(".csv")) return base::write_file_atomically(path, validation_csv(*validation_));
  if (path.ends_with(".json")) {
    return base::write_file_atomically(path, calibration::to_json(*validation_).dump(2) + "\n");
  }
  throw base::Failure(base::ErrorKind::kUsage, path + ": a validation ends in .csv or .json");
}

}  // namespace trivium::gui
