#include "gui/views/cluster_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "base/readable.h"
#include "gui/look/ink.h"
#include "gui/look/theme.h"
#include "gui/model/cluster_edit.h"
#include "gui/model/traffic.h"
#include "gui/timeline/strip_painter.h"
#include "gui/views/cluster_legend.h"

namespace trivium::gui {
namespace {

constexpr double kMargin = 16;       // pixels around the cluster when it fits
constexpr double kSmallestSlot = 2;  // pixels; below, a node is drawn as one
constexpr double kLabelSlot = 22;    // pixels from which on a device has its label
constexpr double kTitlePixels = 9;   // of height, below which no title is written
constexpr double kTitleShare = 0.8;  // of it, the letters
constexpr int kLeastText = 9;        // pixels: smaller letters cannot be read
constexpr int kNetworkText = 12;     // pixels, above its bar
constexpr double kNetworkLine = 20;  // pixels that this needs
constexpr const char* kNetwork = "network between nodes";
constexpr double kScaleRoom = 26;  // pixels below what is fitted, for the scale of links
constexpr double kZoomStep = 1.25;
constexpr double kClosest = 60, kFarthest = 0.02;
constexpr double kDragFrom = 6;  // pixels
constexpr double kWireRoom = 9;  // of the map, at the right of a rack, above which its wire is
constexpr int kVeil = 170;       // of 256: the share of the ground over what is not selected
constexpr double kPan = 60;

/// Where there is room for letters that can be read.
void draw_small_label(QPainter& painter, ShapedWords& shaped, const QRectF& box, const QString& words,
                      const QColor& ink) {
  if (box.height() < kLeastText || box.width() < shaped.width_of(kLeastText, words) + 2) return;
  painter.setPen(ink);
  shaped.draw_centred(painter, box, kLeastText, words);
}

/// Above the corner of a rack that is too small for a title, on a plate that leaves its first node free.
void draw_rack_number(QPainter& painter, ShapedWords& shaped, const QRectF& rack, double title, int number,
                      const QPalette& palette) {
  QString words = QString("rack %1").arg(number);
  const double room = rack.width() - kWireRoom * title / kRackTitle;
  if (shaped.width_of(kLeastText, words) + 3 > room) words = QString::number(number);
  const QRectF plate(rack.left(), rack.top() + title - kLeastText - 1, shaped.width_of(kLeastText, words) + 3,
                     kLeastText + 1);
  if (plate.width() > rack.width() || plate.height() > rack.height()) return;
  QColor ground = palette.color(QPalette::Base);
  ground.setAlpha(230);
  painter.fillRect(plate, ground);
  painter.setPen(palette.color(QPalette::WindowText));
  shaped.draw_centred(painter, plate, kLeastText, words);
}

}  // namespace

ClusterCanvas::ClusterCanvas(QWidget* parent) : QWidget(parent) {
  setAccessibleName("Cluster");
  setAccessibleDescription("Racks, nodes and devices; links to scale of their bandwidth");
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
}

const program::Program* ClusterCanvas::program() const {
  return evaluation_ && evaluation_->runs() ? evaluation_->program.get() : nullptr;
}

void ClusterCanvas::set_cluster(const hardware::Cluster& cluster) {
  const auto kinds = [](const hardware::Cluster& of) {
    std::vector<std::string> names;
    for (const hardware::NodeGroup& group : of.groups) names.push_back(group.node.name);
    return names;
  };
  // An edit of one link leaves the others as thick as they are, unless it needs the room.
  const double scale = kinds(cluster) == kinds(cluster_) ? map_.bytes_per_s_per_unit : 0;
  const double aspect = height() > 0 ? std::max(0.3, static_cast<double>(width()) / height()) : 1.5;
  ClusterMap map = lay_out(cluster, aspect, scale);
  const bool same = map == map_ && kinds(cluster) == kinds(cluster_);  // most edits are of the plan alone
  cluster_ = cluster;
  if (same) return;
  map_ = std::move(map);
  if (fitted_) fit();
  update();
}

void ClusterCanvas::set_evaluation(std::shared_ptr<const Evaluation> evaluation) {
  evaluation_ = std::move(evaluation);
  devices_.clear();
  ranks_.clear();
  if (program() != nullptr) {
    devices_ = devices_of_ranks(evaluation_->scenario.file.job.plan, evaluation_->scenario.cluster);
    ranks_.assign(static_cast<std::size_t>(evaluation_->scenario.cluster.devices()), -1);
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
      int& first = ranks_[static_cast<std::size_t>(devices_[rank])];
      if (first < 0) first = static_cast<int>(rank);
    }
  }
  if (selected_ && *selected_ >= static_cast<int>(devices_.size())) selected_.reset();
  set_colour(colour_);
  note_groups();
}

void ClusterCanvas::set_colour(DeviceColour colour) {
  colour_ = colour;
  role_values_.clear();
  if (const program::Program* simulated = program()) {
    for (const simulator::StageResult& stage : evaluation_->figures.stages) {
      double value = 0;
      if (colour_ == DeviceColour::kMemory) {
        value = static_cast<double>(stage.memory.total()) / static_cast<double>(stage.memory.capacity);
      }
      if (colour_ == DeviceColour::kUtilisation) value = busy_share(stage, evaluation_->figures.iteration_ps);
      if (colour_ == DeviceColour::kTraffic) value = sent_bytes(*simulated, stage.memory.role);
      role_values_.push_back(value);
    }
    if (colour_ == DeviceColour::kTraffic && !role_values_.empty()) {
      most_sent_ = std::max(1.0, *std::max_element(role_values_.begin(), role_values_.end()));
      for (double& value : role_values_) value /= most_sent_;
    }
  }
  update();
}

void ClusterCanvas::select(std::optional<int> rank) {
  if (rank && *rank >= static_cast<int>(devices_.size())) rank.reset();
  selected_ = rank;
  note_groups();
  if (on_select) on_select(selected_);
  update();
}

const std::vector<LitGroup>& lit_groups() {
  static const std::vector<LitGroup> kGroups{{program::Group::kTensor, "tensor", Qt::SolidLine},
                                             {program::Group::kContext, "context", Qt::DashDotLine},
                                             {program::Group::kExpert, "expert", Qt::DashDotDotLine},
                                             {program::Group::kData, "data", Qt::DotLine},
                                             {program::Group::kPipeline, "pipeline", Qt::DashLine}};
  return kGroups;
}

void ClusterCanvas::note_groups() {
  peers_.clear();
  if (!selected_) return;
  const program::Mesh& mesh = program()->mesh;
  for (const LitGroup& lit : lit_groups()) {
    const std::vector<int> members = mesh.members(lit.group, *selected_);
    if (members.size() < 2) continue;
    std::set<int> devices;
    for (const int rank : members) devices.insert(devices_[static_cast<std::size_t>(rank)]);
    peers_.emplace_back(&lit, std::move(devices));
  }
}

const LitGroup* ClusterCanvas::lit_by(int device) const {
  const auto found =
      std::find_if(peers_.begin(), peers_.end(), [&](const auto& group) { return group.second.contains(device); });
  return found == peers_.end() ? nullptr : found->first;
}

bool ClusterCanvas::has_idle() const { return std::find(ranks_.begin(), ranks_.end(), -1) != ranks_.end(); }

QPointF ClusterCanvas::to_screen(double x, double y) const { return QPointF(x, y) * zoom_ + offset_; }
QPointF ClusterCanvas::to_map(QPointF screen) const { return (screen - offset_) / zoom_; }
QRectF ClusterCanvas::on_screen(const Box& box) const {
  return {to_screen(box.x, box.y), QSizeF(box.width * zoom_, box.height * zoom_)};
}

void ClusterCanvas::fit() {
  fitted_ = true;
  if (map_.width <= 0 || map_.height <= 0) return;
  const double above = map_.spine.height > 0 ? kNetworkLine + 1 : kMargin;  // room for the name of the network
  const double high = height() - kScaleRoom - above - kMargin;
  zoom_ = std::max(kFarthest, std::min((width() - 2 * kMargin) / map_.width, high / map_.height));
  offset_ = QPointF((width() - map_.width * zoom_) / 2, above + (high - map_.height * zoom_) / 2);
  update();
}

void ClusterCanvas::zoom_at(QPointF screen, double factor) {
  const QPointF before = to_map(screen);
  zoom_ = std::clamp(zoom_ * factor, kFarthest, kClosest);
  offset_ = screen - before * zoom_;
  fitted_ = false;
  update();
}

void ClusterCanvas::draw_links(QPainter& painter) const {
  if (map_.spine.height <= 0) return;
  const QColor link = link_colour(palette());
  painter.fillRect(on_screen(map_.spine), link);
  painter.setPen(ink_on(link));
  QFont font = painter.font();
  font.setPixelSize(std::clamp(static_cast<int>(map_.spine.height * zoom_ * 0.75), kLeastText, 15));
  painter.setFont(font);
  const QRectF spine = on_screen(map_.spine);
  if (spine.height() >= kLeastText + 2) {
    painter.drawText(spine.intersected(QRectF(rect())), Qt::AlignCenter, kNetwork);
  } else if (spine.top() >= kNetworkLine) {  // no room in it: above it
    painter.setPen(palette().color(QPalette::WindowText));
    font.setPixelSize(kNetworkText);
    painter.setFont(font);
    painter.drawText(
        QRectF(std::max(spine.left(), kMargin), spine.top() - kNetworkLine, spine.width(), kNetworkLine - 2),
        Qt::AlignLeft | Qt::AlignVCenter, kNetwork);
  }
  // Racks of the first row are connected to the spine, the others to the gaps between rows.
  for (const Box& rack : map_.racks) {
    const double from = rack.y <= map_.racks[0].y ? map_.spine.y + map_.spine.height : rack.y - 14;
    const double x = rack.x + rack.width - 6;
    QRectF wire = on_screen({x - 0.5, from, 1, rack.y - from});
    wire.setWidth(std::max(1.0, wire.width()));  // thinner ones are not seen at all
    painter.fillRect(wire, link);
  }
}

void ClusterCanvas::draw_node(QPainter& painter, const MapNode& node) const {
  const QRectF box = on_screen(node.box);
  painter.setPen(QPen(quiet_colour(palette()), 1));
  painter.setBrush(palette().color(QPalette::Base));
  painter.drawRect(box);
  const QColor link = link_colour(palette());
  painter.fillRect(on_screen(node.bus), link);
  painter.fillRect(on_screen(node.uplink), link);
  if (node.places.empty()) return;
  const double slot = node.places[0].width * zoom_;
  if (slot < kSmallestSlot) {
    const QColor colour = colour_of(node.first_device);
    painter.fillRect(box, colour);
    return draw_small_label(painter, shaped_, box, labels_of(node), ink_on(colour));
  }
  for (std::size_t i = 0; i < node.places.size(); ++i) {
    const int device = node.first_device + static_cast<int>(i);
    const QRectF place = on_screen(node.places[i]);
    QColor colour = colour_of(device);
    painter.fillRect(place, colour);
    if (selected_) {
      const bool mine = devices_[static_cast<std::size_t>(*selected_)] == device;
      const LitGroup* lit = lit_by(device);
      if (mine || lit != nullptr) {
        draw_ring(painter, place, mine ? nullptr : lit, palette());
      } else {
        colour = QColor(mix(colour.rgb(), palette().color(QPalette::Base).rgb(), kVeil));
        painter.fillRect(place, colour);
      }
    }
    if (slot >= kLabelSlot) {
      painter.setPen(ink_on(colour));
      shaped_.draw_centred(painter, place, std::clamp(static_cast<int>(slot * 0.36), kLeastText, 18), label_of(device));
    }
  }
  const std::optional<Title> title = title_of(node);
  if (!title) return;
  painter.setPen(palette().color(QPalette::WindowText));
  shaped_.draw_left(painter, title->line, title->font.pixelSize(), title->words);
}

std::optional<ClusterCanvas::Title> ClusterCanvas::title_of(const MapNode& node) const {
  const QRectF box = on_screen(node.box);
  const double high = node.places.empty() ? 0 : (node.places[0].y - node.box.y) * zoom_;
  if (high < kTitlePixels) return std::nullopt;
  QString name = QString::number(node.node);
  const bool labelled = node.places[0].width * zoom_ >= kLabelSlot;  // its devices are, each for itself
  if (!labelled) name += ": " + labels_of(node);
  if (cluster_.groups.size() > 1) {
    name += "  " + QString::fromStdString(node.kind);
  } else if (labelled) {
    name = "node " + name;
  }
  const QRectF line(box.left() + 3 * zoom_, box.top(), box.width() - 12 * zoom_, high);
  shaped_.set_font(font());
  int pixels = std::clamp(static_cast<int>(high * kTitleShare), kLeastText, 15);
  while (pixels > kLeastText && shaped_.width_of(pixels, name) > line.width()) --pixels;
  Title title{line, name, shaped_.font_of(pixels)};
  if (shaped_.width_of(pixels, name) > line.width()) {
    title.words = QFontMetricsF(title.font).elidedText(name, Qt::ElideRight, line.width());
  }
  return title;
}

void ClusterCanvas::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  shaped_.set_font(font());
  painter.fillRect(event->rect(), palette().color(QPalette::Window));
  const QRectF seen = QRectF(rect());
  std::vector<std::pair<QRectF, int>> small_racks;
  draw_links(painter);
  for (std::size_t r = 0; r < map_.racks.size(); ++r) {
    const QRectF box = on_screen(map_.racks[r]);
    if (!box.intersects(seen)) continue;
    painter.setPen(QPen(quiet_colour(palette()), 1));
    painter.setBrush(palette().color(QPalette::AlternateBase));
    painter.drawRect(box);
    if (const double title = kRackTitle * zoom_; title < kTitlePixels) {
      small_racks.emplace_back(box, static_cast<int>(r));
    } else {
      painter.setPen(palette().color(QPalette::WindowText));
      shaped_.draw_left(painter, QRectF(box.left() + 3 * zoom_, box.top(), box.width(), title),
                        std::clamp(static_cast<int>(title * kTitleShare), kLeastText, 16), QString("rack %1").arg(r));
    }
  }
  for (const MapNode& node : map_.nodes) {
    if (on_screen(node.box).intersects(seen)) draw_node(painter, node);
  }
  for (const auto& [box, number] : small_racks) {
    draw_rack_number(painter, shaped_, box, kRackTitle * zoom_, number, palette());
  }
  if (map_.bytes_per_s_per_unit > 0) {
    painter.setFont(font());
    draw_link_scale(painter, QRectF(rect()), map_.bytes_per_s_per_unit / zoom_, palette());
  }
  if (dragged_stage_) {
    if (const auto node = map_.node_at(to_map(last_).x(), to_map(last_).y())) {
      painter.setPen(QPen(palette().color(QPalette::Highlight), 3));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(on_screen(map_.nodes[static_cast<std::size_t>(*node)].box));
    }
    painter.setFont(font());
    const QString words = drop_words();
    QRectF plate(last_ + QPointF(14, -22),
                 QSizeF(fontMetrics().horizontalAdvance(words) + 10, fontMetrics().height() + 4));
    plate.moveRight(std::min(plate.right(), width() - 2.0));
    painter.fillRect(plate, palette().color(QPalette::ToolTipBase));
    painter.setPen(palette().color(QPalette::ToolTipText));
    painter.drawText(plate, Qt::AlignCenter, words);
  }
  if (hasFocus()) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

std::optional<int> ClusterCanvas::rank_of(int device) const {
  const auto at = static_cast<std::size_t>(device);
  if (program() == nullptr || at >= ranks_.size() || ranks_[at] < 0) return std::nullopt;
  return ranks_[at];
}

std::optional<int> ClusterCanvas::rank_at(QPointF screen) const {
  const auto device = map_.device_at(to_map(screen).x(), to_map(screen).y());
  return device ? rank_of(*device) : std::nullopt;
}

void ClusterCanvas::resizeEvent(QResizeEvent* /*event*/) {
  if (!fitted_) return;
  set_cluster(cluster_);
  fit();
}

void ClusterCanvas::mousePressEvent(QMouseEvent* event) {
  pressed_ = last_ = event->position();
  panning_ = false;
  dragged_stage_.reset();
}

void ClusterCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (pressed_ && (event->buttons() & (Qt::LeftButton | Qt::MiddleButton)) != 0) {
    const bool moved = (at - *pressed_).manhattanLength() >= kDragFrom;
    if (moved && !panning_ && !dragged_stage_) {
      const auto rank = event->buttons() & Qt::LeftButton ? rank_at(*pressed_) : std::nullopt;
      if (rank) {
        dragged_stage_ = program()->mesh.coordinates(*rank).pipeline;
      } else {
        panning_ = true;
      }
    }
    if (panning_) {
      offset_ += at - last_;
      fitted_ = false;
    }
    update();
  }
  last_ = at;
}

void ClusterCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (dragged_stage_) {
    const auto node = map_.node_at(to_map(at).x(), to_map(at).y());
    const int stage = *dragged_stage_;
    dragged_stage_.reset();
    if (node && on_move) on_move(stage, *node);
  } else if (pressed_ && !panning_) {
    select(rank_at(at));
  }
  pressed_.reset();
  panning_ = false;
  update();
}

void ClusterCanvas::wheelEvent(QWheelEvent* event) {
  zoom_at(event->position(), event->angleDelta().y() > 0 ? kZoomStep : 1 / kZoomStep);
}

void ClusterCanvas::keyPressEvent(QKeyEvent* event) {
  const QPointF middle(width() / 2.0, height() / 2.0);
  const auto pan = [&](double dx, double dy) {
    offset_ += QPointF(dx, dy);
    fitted_ = false;
    update();
  };
  switch (event->key()) {
    case Qt::Key_F:
      return fit();
    case Qt::Key_Plus:
    case Qt::Key_Equal:
    case Qt::Key_W:
      return zoom_at(middle, kZoomStep);
    case Qt::Key_Minus:
    case Qt::Key_S:
      return zoom_at(middle, 1 / kZoomStep);
    case Qt::Key_A:
    case Qt::Key_Left:
      return pan(kPan, 0);
    case Qt::Key_D:
    case Qt::Key_Right:
      return pan(-kPan, 0);
    case Qt::Key_Up:
      return pan(0, kPan);
    case Qt::Key_Down:
      return pan(0, -kPan);
    case Qt::Key_Escape:
      return select(std::nullopt);
    default:
      QWidget::keyPressEvent(event);
  }
}

bool ClusterCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QPointF at = to_map(help->pos());
    if (const auto device = map_.device_at(at.x(), at.y())) {
      QToolTip::showText(help->globalPos(), tip_of(*device), this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  return QWidget::event(event);
}

}  // namespace trivium::gui
