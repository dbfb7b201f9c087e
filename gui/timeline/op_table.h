// Below a timeline: what a stretch of it is made of, op by op.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <functional>
#include <memory>

#include "gui/background.h"
#include "gui/timeline/spans/op_totals.h"

namespace trivium::gui {

/// Adds up on a thread of its own. A click on an op, or Enter, asks for its next occurrence. Lives on the GUI thread.
class OpTable : public QWidget {
  Q_OBJECT

 public:
  explicit OpTable(QWidget* parent = nullptr);

  struct Request {
    std::shared_ptr<const SpanStore> spans;
    Stretch stretch;
    WorkOf work;
    QString what;  ///< "0.5 s of rank 3"
  };
  void show_stretch(Request request);
  void clear();
  bool is_busy() const { return busy_; }
  QTreeWidget& table() { return *table_; }
  const QLabel& title() const { return *title_; }
  const std::vector<OpTotal>& ops() const { return ops_; }
  std::string csv() const;
  int whole_height() const;  ///< pixels with which no op is scrolled away

  std::function<void(std::uint32_t like)> on_next;  ///< a span of the op that was chosen
  std::function<void()> on_export;
  std::function<void()> on_shown;  ///< ops have been added up

 private:
  void take(std::vector<OpTotal> ops);
  QTreeWidgetItem* line_of(const OpTotal& op, double all_ps);

  QLabel* title_;
  QPushButton* export_;
  QTreeWidget* table_;
  Request shown_;
  std::vector<OpTotal> ops_;
  bool busy_ = false;
  Background<Request, std::vector<OpTotal>> adder_;
};

}  // namespace trivium::gui
