// The passes of a kind of one layer, as much of them as their costs in any place need.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program/ir/program.h"
#include "simulator/analytic/kind_costs.h"
#include "simulator/cost/part_work.h"

namespace trivium::simulator {

struct PassOp {
  program::Lane lane{};
  program::OpKind kind{};
  program::Group group{};
  double bytes = 0;
  std::array<std::int32_t, program::kLanes - 1> after{};
};

struct PassSegment {
  std::int32_t begin = 0, end = 0;
  std::int16_t part = 0;
  bool turn = false;
};

struct PassBody {
  std::vector<PassOp> ops;
  std::vector<PassSegment> segments;
  /// Whether a part has several segments: in passes of pairs, and where a layer is made again before others go back.
  bool is_cut() const { return !segments.empty() && segments.back().part + 1 < static_cast<int>(segments.size()); }
};

/// Tens of kilobytes, where the bodies that it is made of take hundreds.
struct PassLayer {
  enum : std::size_t { kForward, kBackward, kWeights, kStore, kBodies };
  std::array<PassBody, kBodies> bodies;  ///< without segments where there is none
  int layer = 0, layer_back = 0;         ///< parts of a forward before the layer, and of a backward
};

/// Durations of the ops of its bodies (ps).
using PassOpTimes = std::array<std::vector<std::int64_t>, PassLayer::kBodies>;

/// Of a chunk template of one layer.
PassLayer pass_layer(const program::Program& program, std::size_t kind);

/// The same on a device, with what its ops cost there wherever the ranks lie.
struct CostedPassLayer {
  PassLayer layer;
  std::array<std::vector<PartWork>, PassLayer::kBodies> parts;  ///< of each body
};
CostedPassLayer costed_pass_layer(const program::Program& program, std::size_t kind, const hardware::Device& device);

/// Where ranks of the stage lie on nodes of one kind. `program`: its stack, mesh and settings count.
PassOpTimes times_of(const CostedPassLayer& layer, const program::Program& program, const hardware::Cluster& cluster,
                     int stage);

/// The same of a kind of a Program that was costed, wherever its ranks lie.
PassOpTimes times_of(const CostedProgram& costed, int stage, std::size_t kind);

/// What KindCosts says of the passes; all else is zero. The layer is entered as that of the first kind.
KindCosts pass_costs(const PassLayer& layer, const PassOpTimes& times, const program::Program& program,
                     const hardware::Cluster& cluster, int stage, bool merge_lanes);

}  // namespace trivium::simulator
