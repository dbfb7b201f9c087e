// What a cluster has, all nodes together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::gui {

/// Name and value: nodes, devices, peak of their best half precision, memory, bandwidth of the network, power, price.
/// What no profile says is left out.
std::vector<std::pair<std::string, std::string>> cluster_totals(const hardware::Cluster& cluster);

}  // namespace trivium::gui
