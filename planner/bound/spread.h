// Layers of several kinds over stages: what the slowest stage takes at best, whichever stage has which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::planner {

/// What a stage takes (ps): `ends` whatever its layers are, `layer` for one of each kind.
struct KindLoad {
  std::int64_t ends = 0;
  simulator::ByLayerKind<std::int64_t> layer{};
};

/// What the slowest stage takes at best where layers could be cut into parts. `kinds`: the model's.
std::int64_t spread(std::span<const KindLoad> loads, const std::vector<models::LayersOfKind>& kinds);

/// Times of passes as loads of a schedule's stages that take all `kinds` of layers, in any distribution: a lower bound
/// of the passes (ps). Preconditions and symbols: those of Tree::balanced_bounds. `later`, by stage: m - 1 - u_s.
std::int64_t spread_passes(const std::vector<simulator::CostEstimator::StageKinds>& stages,
                           const std::vector<models::LayersOfKind>& kinds, std::int64_t micro_batches,
                           std::span<const std::int64_t> later, bool splits);

}  // namespace trivium::planner
