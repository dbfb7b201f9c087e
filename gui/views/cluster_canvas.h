// The cluster drawn to scale: racks, nodes, devices, links.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gui/look/shaped_words.h"
#include "gui/model/cluster_map.h"
#include "gui/model/evaluation.h"

namespace trivium::gui {

/// What the colour of a device says.
enum class DeviceColour { kPipeline, kTensor, kData, kContext, kExpert, kMemory, kUtilisation, kTraffic };

/// Of an iteration, computing.
double busy_share(const simulator::StageResult& stage, std::int64_t iteration_ps);

/// A group whose members are ringed when one of them is selected: by its line, since colours say something else.
struct LitGroup {
  program::Group group;
  const char* words;
  Qt::PenStyle line;  ///< of the ring
};
/// In the order in which a ring is chosen where a device is in several.
const std::vector<LitGroup>& lit_groups();

/// Pans with the mouse or the arrow keys, zooms with the wheel, + and -, and fits with F. A click selects a rank; a
/// drag that begins on a device moves its stage to the node where it ends.
class ClusterCanvas : public QWidget {
 public:
  explicit ClusterCanvas(QWidget* parent = nullptr);

  void set_cluster(const hardware::Cluster& cluster);
  /// Null: nothing is known of the plan.
  void set_evaluation(std::shared_ptr<const Evaluation> evaluation);
  void set_colour(DeviceColour colour);
  void select(std::optional<int> rank);
  std::optional<int> selected() const { return selected_; }
  /// The group of the selected rank that lights up a device; null where none does.
  const LitGroup* lit_by(int device) const;
  /// Shows the whole cluster.
  void fit();
  double zoom() const { return zoom_; }

  const ClusterMap& map() const { return map_; }
  QPointF to_screen(double x, double y) const;
  /// The colour of a device now, and what is written on it.
  QColor colour_of(int device) const;
  QString label_of(int device) const;
  QString labels_of(const MapNode& node) const;  ///< of all its devices: "p3", "t0–t7"
  /// What stands above a node, in letters small enough that it has room where they can be read; none where it is small.
  struct Title {
    QRectF line;
    QString words;
    QFont font;
  };
  std::optional<Title> title_of(const MapNode& node) const;
  QRectF on_screen(const Box& box) const;
  QString tip_of(int device) const;
  /// What dropping the dragged stage where the pointer is would do. Precondition: one is dragged.
  QString drop_words() const;
  /// The evaluated plan; null where none runs.
  const program::Program* program() const;
  double most_sent() const { return most_sent_; }  ///< bytes of an iteration, of the rank that sends most
  bool has_idle() const;                           ///< devices that the plan does not use
  /// Where a rank of the evaluated plan runs.
  int device_of(int rank) const { return devices_.at(static_cast<std::size_t>(rank)); }

  std::function<void(std::optional<int>)> on_select;
  /// A stage was dropped on a node.
  std::function<void(int stage, int node)> on_move;

  QSize minimumSizeHint() const override { return {320, 240}; }
  QSize sizeHint() const override { return {820, 560}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QPointF to_map(QPointF screen) const;
  std::optional<int> rank_at(QPointF screen) const;
  /// The rank on a device, the first where several take turns; none where it is idle.
  std::optional<int> rank_of(int device) const;
  void zoom_at(QPointF screen, double factor);
  void note_groups();
  void draw_node(QPainter& painter, const MapNode& node) const;
  void draw_links(QPainter& painter) const;

  hardware::Cluster cluster_;
  ClusterMap map_;
  std::shared_ptr<const Evaluation> evaluation_;
  std::vector<int> devices_, ranks_;  // of every rank, none without a plan; of every device, -1 where it is idle
  double most_sent_ = 0;
  std::vector<double> role_values_;  // of the colour's quantity by role, 0 to 1
  DeviceColour colour_ = DeviceColour::kPipeline;
  std::optional<int> selected_;
  std::vector<std::pair<const LitGroup*, std::set<int>>> peers_;  // devices of the selected rank's groups
  double zoom_ = 1;
  QPointF offset_;
  bool fitted_ = true;
  std::optional<QPointF> pressed_;
  QPointF last_;
  std::optional<int> dragged_stage_;
  bool panning_ = false;
  mutable ShapedWords shaped_;
};

}  // namespace trivium::gui
