// Next to a timeline: where the time of a range goes, and what the selected span is.
#pragma once

#include <QLabel>
#include <QTreeWidget>
#include <QWidget>
#include <vector>

#include "gui/timeline/spans/critical_path.h"
#include "gui/timeline/spans/selection.h"

namespace trivium::gui {

/// A table that is the legend of the colours too. Lives on the GUI thread.
class BreakdownPanel : public QWidget {
  Q_OBJECT

 public:
  explicit BreakdownPanel(QWidget* parent = nullptr);

  void clear();
  /// `what`: "0.5 s of rank 3". Times are means over the lanes; `path` (or null) is shown below.
  void show_breakdown(const QString& what, const SpanStore& store, const Breakdown& breakdown,
                      const CriticalPath* path);
  void show_span(const QString& text);  ///< empty: none chosen
  QString span_words() const { return span_->text(); }
  const QTreeWidget& table() const { return *table_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QTreeWidgetItem* add_group(const QString& name, const QString& tip);
  QTreeWidgetItem* add_line(QTreeWidgetItem* group, const QIcon& swatch, const QString& name, double ps,
                            double total_ps, std::uint64_t spans);
  QIcon idle_swatch() const;

  QLabel* title_;
  QTreeWidget* table_;
  QLabel* span_;
  std::vector<QTreeWidgetItem*> idle_;  // lines whose colour is that of empty lanes
};

}  // namespace trivium::gui
