// What differs from the nominal run: slow devices and links by rank, and jitter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/error.h"
#include "simulator/replay/topology.h"
#include "simulator/replay/variation.h"

namespace trivium::simulator {

/// What differs from the nominal run. Ranks that are not named have factor 1.
struct Disturbance {
  double jitter = 0;                   ///< every op that computes takes 1 ± this as long, uniform
  std::map<int, double> slow_devices;  ///< rank -> factor on what it computes
  std::map<int, double> slow_links;    ///< rank -> factor on every collective and transfer it takes part in
  bool none() const { return jitter == 0 && slow_devices.empty() && slow_links.empty(); }
};

/// kUsage where a rank is named that is not one of `ranks`.
std::optional<base::Error> unknown_rank(const Disturbance& disturbance, int ranks);

/// For the actors of a topology: factors of every rank.
Variation variation_of(const Disturbance& disturbance, const ReplayTopology& topology, std::uint64_t seed);

}  // namespace trivium::simulator
