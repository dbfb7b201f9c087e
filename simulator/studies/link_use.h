// What a simulated iteration puts on which wires, when, and for whom.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "program/ir/timeline.h"

namespace trivium::simulator {

enum class Wire : std::uint8_t {
  kInside,   ///< device to device inside a node
  kNetwork,  ///< the nodes' adapters
  kSites,    ///< links between sites
  kHost      ///< device to the memory or disk of its host
};
constexpr int kWires = 4;
std::string_view name_of(Wire wire);  ///< "inside nodes" "network" "between sites" "to the host"

/// What the tasks do that use a wire.
enum class Phase : std::uint8_t { kForward, kBackward, kStages, kGradients, kParameters, kStep, kOffload };
constexpr int kPhases = 7;
std::string_view name_of(Phase phase);  ///< "forward" "backward" "between stages" "gradients" "parameters" "step" …

/// Of a device, on average over the stages. A ring over several nodes uses the wires inside them and the network at
/// once, and is counted for both.
struct LinkUse {
  Phase phase{};
  program::Group group{};       ///< kNone: copies
  std::int64_t operations = 0;  ///< of all stages together
  double bytes = 0;             ///< that it sends over the wire in an iteration
  double busy_s = 0;            ///< of an iteration; waiting for partners not counted
};

struct WireUse {
  Wire wire{};
  base::BytesPerSecond capacity;  ///< of a device's share, one way; of the slowest kind of node that has a rank
  double bytes = 0, busy_s = 0;   ///< as above; what overlaps is busy once
  double could = 0;               ///< bytes of a device in `busy_s`, each at the rate of its own node's wires
  double exposed_s = 0;           ///< part of `busy_s` in which the device computes nothing
  std::vector<LinkUse> uses;      ///< the busiest first

  double busy_share(double iteration_s) const { return iteration_s > 0 ? busy_s / iteration_s : 0; }
  /// What of the capacity is used while the wire is busy.
  double filled() const { return could > 0 ? bytes / could : 0; }
};

/// Wires that carry anything, in the order of the enumeration. `timeline`: op by op, of one rank of every role at
/// least; spans of whole segments tell nothing and are passed over. `placed`: rank r runs on its device r.
std::vector<WireUse> link_use(const program::Program& program, const program::Timeline& timeline,
                              const hardware::Cluster& placed);

}  // namespace trivium::simulator
