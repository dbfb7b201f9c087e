// Passes by what they recompute.
#include <algorithm>
#include <utility>

#include "simulator/analytic/cost_estimator.h"

namespace trivium::simulator {

using program::ChunkKey;
using program::Plan;

// Of layers that are made again together each pass is a segment of its own.
ChunkKey CostEstimator::layer_of(const ChunkKey& key) {
  constexpr int kTogether = 2;
  ChunkKey one{1, false, false, key.recompute, key.modules};
  one.group = std::min(key.group, kTogether);
  return one;
}

// Where the first layers alone are recomputed, what that takes counts as the chunk's ends.
const KindCosts& CostEstimator::pass_costs(const ChunkKey& key, int stage, SharedCosts::Part part, bool leads_back) {
  if (key.again == 0) return costs(key, stage, part, leads_back);
  ChunkKey first = key, kept = key;
  first.again = kept.again = 0;
  first.layers = key.again;
  kept.recompute = program::Recompute::kNone;
  const KindCosts& full = costs(first, stage, part, leads_back);
  KindCosts all = costs(kept, stage, part, leads_back);
  const Counts again = layers_of(first);
  for (PartTimes KindCosts::*pass :
       {&KindCosts::forward, &KindCosts::backward, &KindCosts::weights, &KindCosts::forward_bus,
        &KindCosts::backward_bus, &KindCosts::forward_through, &KindCosts::backward_through}) {
    for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) {
      (all.*pass).ends += again[kind] * ((full.*pass).layer[kind] - (all.*pass).layer[kind]);
    }
  }
  costs_.push_back(std::move(all));
  return costs_.back();
}

std::int64_t CostEstimator::layer_ps() {
  std::int64_t fastest = 0;
  for (int stage = 0; stage < job().plan.pipeline; ++stage) {
    const bool seen = stage > 0 && (*places_)[static_cast<std::size_t>(stage)].passes == places_->front().passes;
    if (seen) continue;
    Plan alike = job().plan;
    alike.stage_recompute.clear();
    if (alike.recompute_layers > 0) alike.recompute = program::Recompute::kNone;
    const KindCosts& c = costs(program::with_recompute({1}, alike, 0), stage, SharedCosts::Part::kPasses);
    ByLayerKind<std::int64_t> passes{};
    for (std::size_t kind = 0; kind < passes.size(); ++kind) {
      passes[kind] = c.forward.layer[kind] + c.backward.layer[kind] + c.weights.layer[kind];
    }
    const std::int64_t longer = std::max(least(passes), least(c.exchanges.layer));  // of two lanes
    fastest = stage == 0 ? longer : std::min(fastest, longer);
  }
  return fastest;
}

// What is not kept for the backward need not be copied either.
ScheduleCosts CostEstimator::least_passes(const Plan& plan) {
  std::vector<ChunkKey> chunks = keys_of(plan);
  for (ChunkKey& key : chunks)
    key.recompute = program::Recompute::kNone, key.modules = {}, key.again = 0, key.group = 1;
  return passes_of(plan, chunks, [&](ChunkKey key, int stage, bool leads_back) -> const KindCosts& {
    const KindCosts& kept = costs(key, stage, SharedCosts::Part::kPassesAndTransfers, leads_back);
    if (this->least(kept.copies.layer) == 0) return kept;
    KindCosts least = kept;
    key.recompute = program::Recompute::kSelective;
    key.modules = program::ModuleSet::all();
    const KindCosts& fewest = costs(key, stage, SharedCosts::Part::kPasses);
    for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) {
      least.copies.layer[kind] = std::min(least.copies.layer[kind], fewest.copies.layer[kind]);
      least.copies_bus.layer[kind] = std::min(least.copies_bus.layer[kind], fewest.copies_bus.layer[kind]);
    }
    costs_.push_back(std::move(least));
    return costs_.back();
  });
}

}  // namespace trivium::simulator
