#include "gui/views/plans_model.h"

#include "base/readable.h"
#include "gui/model/axis.h"
#include "simulator/iteration/mfu_text.h"

namespace trivium::gui {
namespace {

QString text_of(const PlanRow& row, int column) {
  if (row.interim && column > PlansModel::kTokens) return "…";
  switch (column) {
    case PlansModel::kPlan:
      return QString::fromStdString(row.summary);
    case PlansModel::kIteration:
      return QString::fromStdString(seconds_words(row.iteration_s));
    case PlansModel::kTokens:
      return QString::fromStdString(base::integer(row.tokens_per_s));
    case PlansModel::kMfu:
      return QString::fromStdString(simulator::mfu_text(row.mfu, row.plan));
    case PlansModel::kHfu:
      return QString::fromStdString(simulator::mfu_text(row.hfu, row.plan));
    case PlansModel::kMemory:
      return QString::fromStdString(base::size(static_cast<std::int64_t>(row.peak_memory_bytes)));
    default:
      return row.dollars_per_iteration > 0 ? QString::fromStdString(dollars_text(row.dollars_per_iteration))
                                           : QString("–");
  }
}

QVariant figure_of(const PlanRow& row, int column) {
  switch (column) {
    case PlansModel::kPlan:
      return QString::fromStdString(row.summary);
    case PlansModel::kIteration:
      return row.iteration_s;
    case PlansModel::kTokens:
      return row.tokens_per_s;
    case PlansModel::kMfu:
      return row.mfu;
    case PlansModel::kHfu:
      return row.hfu;
    case PlansModel::kMemory:
      return row.peak_memory_bytes;
    default:
      return row.dollars_per_iteration;
  }
}

}  // namespace

void PlansModel::set_rows(std::vector<PlanRow> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

int PlansModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PlansModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant PlansModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const PlanRow& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == Qt::DisplayRole) return text_of(row, index.column());
  if (role == kSortRole) return figure_of(row, index.column());
  if (role == Qt::ToolTipRole && index.column() == kPlan) return QString::fromStdString(row.summary);
  if (role == Qt::TextAlignmentRole && index.column() != kPlan) return int(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

QVariant PlansModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  static const QStringList kTitles{"Plan", "Iteration", "Tokens/s", "MFU", "HFU", "Peak memory", "Cost a step"};
  return kTitles.value(section);
}

}  // namespace trivium::gui
