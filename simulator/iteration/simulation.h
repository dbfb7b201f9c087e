// What a simulation is asked for, and the figures that it gives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "program/ir/timeline.h"
#include "simulator/certainty/certainty.h"
#include "simulator/iteration/breakdown.h"
#include "simulator/memory/memory.h"
#include "simulator/replay/disturbance.h"

namespace trivium::simulator {

class TopologyCache;

/// Of a role: a stage, or where micro-batches differ what one kind of replica does of it.
struct StageResult {
  int stage = 0;
  Breakdown breakdown{};  ///< ps; sums to the iteration
  StageMemory memory;
};

struct Simulation {
  std::int64_t iteration_ps = 0;  ///< with links shared by what overlaps on them
  double iteration_s = 0;
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;  ///< shares of the devices' dense peak in the plan's precision
  double model_flops_per_s_per_device = 0, hardware_flops_per_s_per_device = 0;
  std::array<double, kParts> breakdown_s{};  ///< mean over ranks; sums to iteration_s
  std::vector<StageResult> stages;           ///< in the order of the Program's roles
  std::optional<double> unshared_s;          ///< as if nothing shared a link, where asked for and shorter
  std::int64_t peak_memory_bytes = 0;        ///< of the fullest rank
  Certainty certainty;
  program::Timeline timeline;  ///< of every rank that was simulated; empty unless asked for
};

struct SimulationOptions {
  Granularity granularity = Granularity::kOp;
  bool timeline = false;
  /// Simulate every rank instead of one rank for every stage where that is the same; needed for a disturbance. The
  /// timeline is then that of every rank, the breakdown of a stage the mean over its ranks: over all, or where they
  /// have millions of spans together over some that lie evenly among them. Ranks that share cores are always all
  /// simulated, op by op.
  bool every_rank = false;
  /// Communication that overlaps on a link shares it: simulated by one rank for all of a stage that sit alike. False:
  /// every transfer has its links to itself.
  bool shared_links = true;
  /// The breakdown is the mean over ranks of each role, one and as many more, evenly, as have so many spans together.
  double most_spans = kMostSpans;
  static constexpr double kMostSpans = 8e6;
  bool unshared = false;  ///< find Simulation::unshared_s too
  Disturbance disturbance{};
  std::uint64_t seed = 0;               ///< of the jitter
  TopologyCache* topologies = nullptr;  ///< of the same cluster: what simulations leave for each other; not owned
};

}  // namespace trivium::simulator
