// Nodes of which a job takes only some devices.
#pragma once

#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

/// The node as a job sees it that takes `devices` of its devices: whole hosts of a domain of several hosts, or some
/// devices of one host. Adapters are those of the devices. Memory, drives, power and price are those of the hosts that
/// are taken. Tables by group size end with the largest group that fits. Errors: Failure(kInput) where there are fewer
/// devices, or the number is neither a multiple of a host's nor fits on one host.
Node with_devices(Node node, int devices);

/// The cluster with so many devices of every node, named accordingly. Errors: as with_devices.
Cluster with_devices_per_node(Cluster cluster, int devices);

/// "gb200-nvl72:4", or "gb200-nvl72:4x64" where 64 of each node's devices are taken.
std::string cluster_text(const Node& node, int count);

}  // namespace trivium::hardware
