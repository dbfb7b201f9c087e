#include "hardware_profiles/hardware.h"

#include <cassert>
#include <cmath>
#include <cstddef>

namespace trivium::hardware {
namespace {

// Of the power above idling, in clocks: H100s held to 500 W of 700 (torchtitan's runs: 0.62 of the clocks of seconds)
// beside those of DGX H100 (0.785).
constexpr double kClocksOfPower = 0.62;

/// Where a device sits: its group, and how many nodes stand before its own.
struct Seat {
  std::size_t group = 0;
  int node = 0;
};

Seat seat_of(const Cluster& cluster, int device) {
  assert(device >= 0 && device < cluster.devices());
  Seat seat;
  for (const NodeGroup& group : cluster.groups) {
    const int held = group.count * group.node.devices;
    if (device < held) {
      seat.node += device / group.node.devices;
      return seat;
    }
    device -= held;
    seat.node += group.count;
    ++seat.group;
  }
  return seat;
}

}  // namespace

double Device::sustained_scale() const {
  const double all = (peak_power - idle_power).value(), allowed = (full_power() - idle_power).value();
  return allowed < all ? compute_scale * std::pow(allowed / all, kClocksOfPower) : compute_scale;
}

int Cluster::nodes() const {
  int sum = 0;
  for (const NodeGroup& group : groups) sum += group.count;
  return sum;
}

int Cluster::devices() const {
  int sum = 0;
  for (const NodeGroup& group : groups) sum += group.count * group.node.devices;
  return sum;
}

const Node& Cluster::node_of_device(int device) const { return groups.at(seat_of(*this, device).group).node; }

int Cluster::site_of_device(int device) const { return groups.at(seat_of(*this, device).group).site; }

const SiteLink* Cluster::link_between(int site, int other) const {
  for (const SiteLink& each : links) {
    if ((each.a == site && each.b == other) || (each.a == other && each.b == site)) return &each;
  }
  return nullptr;
}

int Cluster::node_index(int device) const { return seat_of(*this, device).node; }

}  // namespace trivium::hardware
