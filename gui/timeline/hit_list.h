// All that a search found, by time.
#pragma once

#include <QAbstractTableModel>
#include <QFrame>
#include <QTableView>
#include <functional>
#include <vector>

#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {

/// Of every span found its name, rank, length and start. Cells are made where they are seen: there may be millions.
class HitModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  /// `matches`: of every timeline, ascending, or null.
  void set_hits(const std::vector<SceneTimeline>& timelines,
                const std::vector<std::shared_ptr<const std::vector<std::uint32_t>>>& matches);
  void clear() { set_hits({}, {}); }
  SpanId hit(int row) const { return hits_.at(static_cast<std::size_t>(row)); }
  /// The first that starts at `ps` or later; the last where there is none.
  int first_from(std::int64_t ps) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const SpanStore& store_of(const SpanId& id) const { return *stores_[static_cast<std::size_t>(id.timeline)]; }
  std::vector<std::shared_ptr<const SpanStore>> stores_;
  std::vector<SpanId> hits_;  // by start
};

/// Opens below a button and closes when one looks elsewhere. Lives on the GUI thread.
class HitList : public QFrame {
  Q_OBJECT

 public:
  explicit HitList(QWidget* parent = nullptr);

  /// Opens at `at` (on the screen), scrolled to what one looks at, from `from_ps` on.
  void open_at(QPoint at, std::int64_t from_ps);
  HitModel& model() { return model_; }
  QTableView& table() { return *table_; }
  /// One that was clicked or reached with the arrow keys.
  std::function<void(SpanId)> on_choose;

 private:
  HitModel model_;
  QTableView* table_;
  bool opening_ = false;
};

}  // namespace trivium::gui
