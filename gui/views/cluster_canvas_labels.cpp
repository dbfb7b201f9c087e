// What is written on devices and nodes of the cluster's picture, and in which colour.
#include <algorithm>
#include <cmath>

#include "base/readable.h"
#include "gui/look/theme.h"
#include "gui/model/traffic.h"
#include "gui/views/cluster_canvas.h"

namespace trivium::gui {

double busy_share(const simulator::StageResult& stage, std::int64_t iteration_ps) {
  std::int64_t busy = 0;
  for (const auto part : {simulator::Part::kCompute, simulator::Part::kRecompute, simulator::Part::kOptimizer}) {
    busy += stage.breakdown[static_cast<std::size_t>(part)];
  }
  return static_cast<double>(busy) / static_cast<double>(iteration_ps);
}

QColor ClusterCanvas::colour_of(int device) const {
  const program::Program* simulated = program();
  const auto rank = rank_of(device);
  if (!rank) return quiet_colour(palette());
  const program::Coordinates at = simulated->mesh.coordinates(*rank);
  switch (colour_) {
    case DeviceColour::kPipeline:
      return series_colour(at.pipeline);
    case DeviceColour::kTensor:
      return series_colour(at.tensor);
    case DeviceColour::kData:
      return series_colour(at.data);
    case DeviceColour::kContext:
      return series_colour(at.context);
    case DeviceColour::kExpert:
      return series_colour(simulated->mesh.expert_rank(at));
    default:
      break;
  }
  const double value = role_values_[static_cast<std::size_t>(simulated->role_at(at))];
  return colour_ == DeviceColour::kMemory && value > 1 ? alarm_colour() : scale_colour(value);
}

QString ClusterCanvas::label_of(int device) const {
  const program::Program* simulated = program();
  const auto rank = rank_of(device);
  if (!rank) return "idle";
  const program::Coordinates at = simulated->mesh.coordinates(*rank);
  switch (colour_) {
    case DeviceColour::kPipeline:
      return QString("p%1").arg(at.pipeline);
    case DeviceColour::kTensor:
      return QString("t%1").arg(at.tensor);
    case DeviceColour::kData:
      return QString("d%1").arg(at.data);
    case DeviceColour::kContext:
      return QString("c%1").arg(at.context);
    case DeviceColour::kExpert:
      return QString("e%1").arg(simulated->mesh.expert_rank(at));
    case DeviceColour::kTraffic:
      return QString::fromStdString(base::size(
          static_cast<std::int64_t>(most_sent_ * role_values_[static_cast<std::size_t>(simulated->role_at(at))])));
    default:
      return QString("%1%").arg(std::lround(100 * role_values_[static_cast<std::size_t>(simulated->role_at(at))]));
  }
}

QString ClusterCanvas::labels_of(const MapNode& node) const {
  QStringList labels;
  for (std::size_t i = 0; i < node.places.size(); ++i) {
    const QString label = label_of(node.first_device + static_cast<int>(i));
    if (!labels.contains(label)) labels << label;
  }
  return labels.size() <= 2 ? labels.join(' ') : labels.first() + "–" + labels.last();
}

QString ClusterCanvas::tip_of(int device) const {
  const MapNode& node = map_.nodes[static_cast<std::size_t>(cluster_.node_index(device))];
  QString text = QString("Device %1 of node %2 (%3)")
                     .arg(device - node.first_device)
                     .arg(node.node)
                     .arg(QString::fromStdString(node.kind));
  const program::Program* simulated = program();
  if (simulated == nullptr) return text;
  const auto rank = rank_of(device);
  if (!rank) return text + "\nThe plan does not use it.";
  const program::Coordinates at = simulated->mesh.coordinates(*rank);
  const program::Mesh& mesh = simulated->mesh;
  QStringList places;  // in groups of one there is nothing to tell
  if (mesh.tensor() > 1) places << QString("tensor %1").arg(at.tensor);
  if (mesh.context() > 1) places << QString("context %1").arg(at.context);
  if (mesh.data() > 1) places << QString("data %1").arg(at.data);
  if (mesh.pipeline() > 1) places << QString("pipeline stage %1").arg(at.pipeline);
  text = QString("Rank %1").arg(*rank) + (places.isEmpty() ? QString() : ": " + places.join(", ")) + "\n" +
         (mesh.expert() > 1 ? QString("Expert rank %1\n").arg(mesh.expert_rank(at)) : QString()) + text;
  const auto ranks = std::count(devices_.begin(), devices_.end(), device);
  if (ranks > 1) text += QString("\n%1 ranks take turns on it").arg(ranks);
  const simulator::StageResult& stage = evaluation_->figures.stages[static_cast<std::size_t>(simulated->role_at(at))];
  return text + QString("\nMemory %1 of %2\nBusy %3 of an iteration\nSends %4 an iteration")
                    .arg(QString::fromStdString(base::size(stage.memory.total())),
                         QString::fromStdString(base::size(stage.memory.capacity)),
                         QString::fromStdString(base::percent(busy_share(stage, evaluation_->figures.iteration_ps))),
                         QString::fromStdString(
                             base::size(static_cast<std::int64_t>(sent_bytes(*simulated, simulated->role_at(at))))));
}

QString ClusterCanvas::drop_words() const {
  QString words = QString("stage %1").arg(*dragged_stage_);
  const auto target = map_.node_at(to_map(last_).x(), to_map(last_).y());
  const auto from = pressed_ ? map_.node_at(to_map(*pressed_).x(), to_map(*pressed_).y()) : std::nullopt;
  if (!target || !from) return words + ": drop it on a node";
  words += QString(" to node %1: ").arg(*target);
  const MapNode &now = map_.nodes[static_cast<std::size_t>(*from)],
                &then = map_.nodes[static_cast<std::size_t>(*target)];
  if (*target == *from) return words + "where it is";
  return words +
         (now.group == then.group
              ? QString("a node of the same kind")
              : QString("%1 instead of %2").arg(QString::fromStdString(then.kind), QString::fromStdString(now.kind)));
}

}  // namespace trivium::gui
