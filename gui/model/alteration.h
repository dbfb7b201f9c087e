// Clusters whose nodes were edited: what they were before, and what is different.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::gui {

/// A cluster of known kinds of node, some of which were edited.
struct Alteration {
  std::string stock;                 ///< the same nodes as their profiles have them: "h200:64"
  std::vector<std::string> changes;  ///< "h200: one network adapter 100 GB/s instead of 50 GB/s"
};

/// None where every node is as its profile says, or no profile is known that could say it.
std::optional<Alteration> alteration(const hardware::Cluster& cluster);

/// Whether a profile of the node's name is known, and says something else.
bool is_altered(const hardware::Node& node);

/// "h200:64+h100-8x:2": names and counts, whatever the nodes are.
std::string nodes_text(const hardware::Cluster& cluster);

/// Named as its nodes: "h200:64, altered" where one was edited, so that no figure passes for that of the stock cluster.
/// Clusters of nodes without a known profile keep their name.
hardware::Cluster named_by_its_nodes(hardware::Cluster cluster);

}  // namespace trivium::gui
