// Nodes with round figures for tests of the collectives.
#pragma once

#include "hardware_profiles/hardware.h"

namespace trivium::simulator {

/// 8 devices, bus 200 GB/s, all-reduce latency 60 us among 8; 8 adapters of 25 GB/s at 80 %, hop 10 us; no late hosts.
inline hardware::Node fast_node() {
  hardware::Node node;
  node.devices = 8;
  node.intra = {.bandwidth = base::BytesPerSecond(300e9), .latency = base::Seconds(5e-6), .efficiency = 0.9};
  node.allreduce_bus = {{8, base::BytesPerSecond(200e9)}};
  node.allreduce_latency = {{8, base::Seconds(60e-6)}};
  node.adapters = 8;
  node.network = {.bandwidth = base::BytesPerSecond(25e9), .latency = base::Seconds(10e-6), .efficiency = 0.8};
  return node;
}

/// Cores of one machine: 4 GB/s at 80 %, 10 us.
inline hardware::Node shared_memory_node() {
  hardware::Node node;
  node.devices = 4;
  node.topology = hardware::Topology::kSharedMemory;
  node.intra = {.bandwidth = base::BytesPerSecond(4e9), .latency = base::Seconds(10e-6), .efficiency = 0.8};
  node.asynchronous_lanes = false;
  return node;
}

}  // namespace trivium::simulator
