// Where racks, nodes, devices and links of a cluster stand in a picture. Units are free; widgets scale them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::gui {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
  bool contains(double px, double py) const { return px >= x && px < x + width && py >= y && py < y + height; }
};

struct MapNode {
  int node = 0;          ///< in rank order
  int group = 0;         ///< of the cluster
  int first_device = 0;  ///< of the cluster
  std::string kind;      ///< name of the node's profile
  Box box;
  std::vector<Box> places;  ///< one a device
  Box bus;                  ///< link between the node's devices: its height is the bandwidth of one device, to scale
  Box uplink;  ///< to the network: its width is the bandwidth of all adapters, on the same scale; none: no width

  bool operator==(const MapNode&) const = default;
};

struct ClusterMap {
  std::vector<Box> racks;  ///< of kNodesPerRack nodes each
  std::vector<MapNode> nodes;
  Box spine;  ///< the network above the racks; no height for one node
  double width = 0, height = 0;
  double bytes_per_s_per_unit = 0;  ///< scale of the links

  bool operator==(const ClusterMap&) const = default;
  /// The device there, as a number within the cluster.
  std::optional<int> device_at(double x, double y) const;
  /// The node there.
  std::optional<int> node_at(double x, double y) const;
  /// Place of a device, 0 <= device < devices of the cluster.
  const Box& place_of(int device) const;
};

/// Four systems a rack, as in NVIDIA's DGX SuperPOD reference architecture for DGX A100 (2020).
constexpr int kNodesPerRack = 4;
/// Room above the nodes of a rack for its name.
constexpr double kRackTitle = 8;

/// Racks in rows that make the picture about `aspect` times as wide as high. Links are drawn to `least_scale`
/// (bytes/s per unit) where that leaves room for the widest.
ClusterMap lay_out(const hardware::Cluster& cluster, double aspect, double least_scale = 0);

}  // namespace trivium::gui
