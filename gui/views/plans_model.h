// Plans as rows of a table.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "gui/model/plan_rows.h"

namespace trivium::gui {

class PlansModel : public QAbstractTableModel {
 public:
  enum Column { kPlan, kIteration, kTokens, kMfu, kHfu, kMemory, kCost, kColumns };
  static constexpr int kSortRole = Qt::UserRole;  ///< the figure itself

  using QAbstractTableModel::QAbstractTableModel;

  void set_rows(std::vector<PlanRow> rows);
  const std::vector<PlanRow>& rows() const { return rows_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<PlanRow> rows_;
};

}  // namespace trivium::gui
