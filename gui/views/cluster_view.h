// The cluster and what can be done to it.
#pragma once

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTableWidget>
#include <QWidget>
#include <array>
#include <optional>

#include "gui/document.h"
#include "gui/look/marked.h"
#include "gui/model/cluster_edit.h"
#include "gui/views/cluster_canvas.h"
#include "gui/views/cluster_legend.h"

namespace trivium::gui {

class ClusterView : public QWidget {
 public:
  explicit ClusterView(Document& document, QWidget* parent = nullptr);

  ClusterCanvas& canvas() { return *canvas_; }
  ClusterLegend& legend() { return *legend_; }
  QComboBox& colour() { return *colour_; }
  Marked<QLineEdit>& constant(NodeConstant which) { return *constants_[static_cast<std::size_t>(which)]; }
  QLabel& message() { return *message_; }
  /// What all nodes have together.
  const QLabel& totals() const { return *totals_; }
  /// Moves the nodes of a stage and says what that costs, or why it cannot.
  void move_stage(int stage, int node);
  QLabel& cost_of_move() { return *cost_; }
  /// Asks for a kind of node of the user's own, which the selected nodes become.
  void ask_new_kind();
  /// What there is to know of the selected rank.
  const QLabel& selection() const { return *selection_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QHBoxLayout* make_top();
  QWidget* make_panel();
  QWidget* make_nodes();
  void set_up_groups();
  QHBoxLayout* make_kinds();
  QFormLayout* make_constants();
  void show_scenario();
  void show_selection(std::optional<int> rank);
  void show_groups();
  void show_constants(const hardware::Node& node);
  void show_totals();
  void show_cost();
  void edit(const std::function<Scenario(Scenario)>& change, const QString& words);
  /// Empty: nothing.
  QString what_is_wrong(const std::function<Scenario(Scenario)>& change) const;
  void complain(const QString& why);
  int group() const;

  Document& document_;
  ClusterCanvas* canvas_;
  ClusterLegend* legend_;
  QComboBox* colour_;
  QLabel *selection_, *totals_;
  QTableWidget* groups_;
  QComboBox* profile_;
  QPushButton* new_kind_;
  QSpinBox* count_;
  std::array<Marked<QLineEdit>*, kNodeConstants> constants_{};
  QLabel* message_;
  QLabel* cost_;
  struct Move {
    QString words;
    double before_s = 0;  ///< of an iteration; 0: the plan could not run
  };
  std::optional<Move> moved_;  // the last edit, where it was one
  bool showing_ = false;
};

}  // namespace trivium::gui
