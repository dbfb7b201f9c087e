#include "gui/model/cluster_map.h"

#include <algorithm>

namespace trivium::gui {
namespace {

constexpr int kSlotsPerRow = 8;
constexpr double kSlot = 10, kGap = 2, kMargin = 3;
constexpr double kTitle = 12;  // room for the node's name
constexpr double kRackGap = 14;
constexpr double kThickest = 6;    // of the widest link
constexpr double kThinnest = 0.4;  // what is there is seen
constexpr double kSpine = 8;

double network_of(const hardware::Node& node) { return node.adapters * node.network.bandwidth.value(); }

double scale_of(const hardware::Cluster& cluster) {
  double most = 0;
  for (const hardware::NodeGroup& group : cluster.groups) {
    most = std::max({most, group.node.intra.bandwidth.value(), network_of(group.node)});
  }
  return most > 0 ? most / kThickest : 1;
}

/// A node at the origin.
MapNode node_at_origin(const hardware::Node& node, double scale) {
  MapNode map;
  map.kind = node.name;
  const int columns = std::min(kSlotsPerRow, std::max(1, node.devices));
  const int rows = (std::max(1, node.devices) + columns - 1) / columns;
  const double inner = columns * (kSlot + kGap) - kGap;
  for (int i = 0; i < node.devices; ++i) {
    map.places.push_back(
        {kMargin + (i % columns) * (kSlot + kGap), kTitle + kMargin + (i / columns) * (kSlot + kGap), kSlot, kSlot});
  }
  const double below = kTitle + kMargin + rows * (kSlot + kGap);
  const double bus = node.devices > 1 ? std::max(kThinnest, node.intra.bandwidth.value() / scale) : 0;
  map.bus = {kMargin, below, inner, bus};
  const double uplink = node.adapters > 0 ? std::max(kThinnest, network_of(node) / scale) : 0;
  map.uplink = {kMargin + inner + kMargin, kTitle, uplink, below + kThickest - kTitle};
  map.box = {0, 0, kMargin + inner + kMargin + kThickest + kMargin, below + kThickest + kMargin};
  return map;
}

Box moved(Box box, double x, double y) { return {box.x + x, box.y + y, box.width, box.height}; }

void move(MapNode& node, double x, double y) {
  node.box = moved(node.box, x, y);
  node.bus = moved(node.bus, x, y);
  node.uplink = moved(node.uplink, x, y);
  for (Box& slot : node.places) slot = moved(slot, x, y);
}

}  // namespace

std::optional<int> ClusterMap::node_at(double x, double y) const {
  for (const MapNode& node : nodes) {
    if (node.box.contains(x, y)) return node.node;
  }
  return std::nullopt;
}

std::optional<int> ClusterMap::device_at(double x, double y) const {
  const auto node = node_at(x, y);
  if (!node) return std::nullopt;
  const MapNode& found = nodes[static_cast<std::size_t>(*node)];
  for (std::size_t i = 0; i < found.places.size(); ++i) {
    if (found.places[i].contains(x, y)) return found.first_device + static_cast<int>(i);
  }
  return std::nullopt;
}

const Box& ClusterMap::place_of(int device) const {
  const auto after = std::partition_point(nodes.begin(), nodes.end(),
                                          [&](const MapNode& node) { return node.first_device <= device; });
  const MapNode& node = *std::prev(after);
  return node.places[static_cast<std::size_t>(device - node.first_device)];
}

ClusterMap lay_out(const hardware::Cluster& cluster, double aspect, double least_scale) {
  ClusterMap map;
  map.bytes_per_s_per_unit = std::max(least_scale, scale_of(cluster));
  double node_width = 0, node_height = 0;
  int device = 0;
  for (std::size_t g = 0; g < cluster.groups.size(); ++g) {
    const hardware::NodeGroup& group = cluster.groups[g];
    MapNode pattern = node_at_origin(group.node, map.bytes_per_s_per_unit);
    node_width = std::max(node_width, pattern.box.width);
    node_height = std::max(node_height, pattern.box.height);
    for (int i = 0; i < group.count; ++i) {
      pattern.node = static_cast<int>(map.nodes.size());
      pattern.group = static_cast<int>(g);
      pattern.first_device = device;
      device += group.node.devices;
      map.nodes.push_back(pattern);
    }
  }
  const int nodes = static_cast<int>(map.nodes.size());
  const int racks = (nodes + kNodesPerRack - 1) / kNodesPerRack;
  const int stacked = std::min(nodes, kNodesPerRack);
  const double rack_width = node_width + 2 * kMargin;
  const double rack_height = kRackTitle + stacked * (node_height + kGap) + kMargin;
  int columns = 1;
  double best = 0;  // zoom at which the picture fits a window of that shape
  for (int c = 1; c <= racks; ++c) {
    const int rows = (racks + c - 1) / c;
    const double fits = std::min(aspect / (c * (rack_width + kRackGap)), 1 / (rows * (rack_height + kRackGap)));
    if (fits > best) columns = c, best = fits;
  }
  const double top = nodes > 1 ? kSpine + kRackGap : 0;
  for (int r = 0; r < racks; ++r) {
    map.racks.push_back({(r % columns) * (rack_width + kRackGap), top + (r / columns) * (rack_height + kRackGap),
                         rack_width, rack_height});
  }
  for (MapNode& node : map.nodes) {
    const Box& rack = map.racks[static_cast<std::size_t>(node.node / kNodesPerRack)];
    move(node, rack.x + kMargin, rack.y + kRackTitle + (node.node % kNodesPerRack) * (node_height + kGap));
  }
  map.width = columns * (rack_width + kRackGap) - kRackGap;
  map.height = top + (racks + columns - 1) / columns * (rack_height + kRackGap) - kRackGap;
  if (nodes > 1) map.spine = {0, 0, map.width, kSpine};
  return map;
}

}  // namespace trivium::gui
