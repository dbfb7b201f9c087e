// What the state of a plan adds to its passes: gathers and reductions, copies, and what comes after the last backward.
#include <algorithm>

#include "program/schedules/schedule.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::simulator {

using program::ChunkKey;
using program::Plan;

ScheduleCosts CostEstimator::state(const Plan& plan) {
  const std::vector<ChunkKey> chunks = keys_of(plan);
  ScheduleCosts schedule_costs = empty_schedule_costs(plan, chunks.size());
  schedule_costs.reduces_beside = sharding_.overlaps_reduce;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const int stage = plan.stage_of(static_cast<int>(i));
    const Serial serial = serial_of(chunks[i], stage);
    if (!merged_lanes_ && plan.bucket_bytes == 0) {
      const KindCosts& middle = costs(layer_of(chunks[i]), stage);
      schedule_costs.chunks[i].again_first = chunks[i].group > 1;
      const Counts layers = layers_of(chunks[i]);
      if (sharding_.gradients) {
        ScheduleCosts::Chunk& chunk = schedule_costs.chunks[i];
        const auto [least, longest] = range_of(middle.reduce, layers);
        chunk.reduce_layer = least;
        chunk.reduce_layers = middle.reduce.of(layers);
        if (chunks[i].layers > 1) chunk.reduce_left = (slots_apart() ? 2 : 1) * longest;
      }
      add_gathers(schedule_costs, middle, layers, i);
    }
    schedule_costs.chunks[i].forward = serial.forward;
    schedule_costs.chunks[i].backward = serial.backward;
    add_bus(schedule_costs, chunks[i], i);
    schedule_costs.norm_reduce = std::max(schedule_costs.norm_reduce, costs(chunks[i], stage).norm_reduce);
  }
  for (int stage = 0; stage < plan.pipeline; ++stage) add_ending(schedule_costs, plan, chunks, stage);
  return schedule_costs;
}

// A layer is gathered when the pass has reached the layer `ahead` before it: what the data lane does one after another
// during a pass are the gathers of all its layers but those ahead and the first, and, where reductions have two slots,
// the reductions of all layers but two. Layers that a pass makes again are gathered twice.
void CostEstimator::add_gathers(ScheduleCosts& schedule_costs, const KindCosts& middle, const Counts& layers,
                                std::size_t position) const {
  if (!sharding_.parameters) return;
  ScheduleCosts::Chunk& chunk = schedule_costs.chunks[position];
  const bool ahead = sharding_.ahead > 0;
  const program::ScheduleTraits& traits = program::traits_of(schedule_costs.schedule);
  if (ahead && (sharding_.away || schedule_costs.pairs || traits.splits_backward))
    return;  // nothing is claimed of them
  schedule_costs.gathered_ahead = sharding_.ahead;
  chunk.gather_layer = range_of(middle.gather, layers).first;
  if (!ahead) return;
  chunk.forward_data = all_but(1 + sharding_.ahead, middle.gather, layers);
  chunk.backward_data = chunk.forward_data;
  if (!sharding_.gradients || !sharding_.overlaps_reduce) return;
  chunk.backward_data += all_but(slots_apart() ? 3 : 2, middle.reduce, layers);
}

// Whether gradients of spread experts take turns in their slots otherwise than those of layers do in theirs, as some
// layers have none: when a layer's slot is free, the experts' reduction that came with the one in it may be left.
bool CostEstimator::slots_apart() const {
  const auto is_mixture = [](const models::LayersOfKind& layers) { return layers.kind.mixture; };
  return job().plan.expert > 1 && std::ranges::any_of(layer_kinds(), is_mixture) &&
         !std::ranges::all_of(layer_kinds(), is_mixture);
}

// What of a chunk's state is copied after the norm: all of it both ways (where the host runs Adam, gradients go and
// parameters come), except for the fetches of the first two buckets, which come before. The first is the embedding's
// where there is one. With mixtures, whose experts' buckets come last, only dense layers count. State does not depend
// on the kind of a dense layer.
std::int64_t CostEstimator::state_copies(const ChunkKey& key, const KindCosts& costs, const KindCosts& middle) const {
  const Counts layers = layers_of(key);
  std::int64_t fetch = 0, dense = 0;
  for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) {
    if (layer_kinds()[kind].kind.mixture) continue;
    fetch = middle.fetch_state.layer[kind];
    dense += layers[kind] * (fetch + middle.store_state.layer[kind]);
  }
  if (job().model.experts) return dense - 2 * fetch;
  const std::int64_t ends = costs.fetch_state.ends;
  const std::int64_t before = key.embedding ? ends + fetch : key.layers > 1 ? 2 * fetch : fetch + ends;
  return costs.fetch_state.of(layers) + costs.store_state.of(layers) - before;
}

// A layer is gathered when the previous one is done and computed when it is gathered, and likewise reduced, where
// nothing runs ahead or overlaps; cores do all of it one after another. What may run before the chunk's input came, or
// after its output left, is left out: the first layers gathered and the last reduced.
CostEstimator::Serial CostEstimator::serial_of(const ChunkKey& key, int stage) {
  if (job().plan.bucket_bytes > 0) return {};
  const KindCosts& middle = costs(layer_of(key), stage);
  const Counts layers = layers_of(key);
  Serial serial;
  if (sharding_.parameters && (merged_lanes_ || sharding_.ahead == 0)) {
    serial.forward = serial.backward = all_but(1 + sharding_.ahead, middle.gather, layers);
  }
  if (sharding_.gradients && (merged_lanes_ || !sharding_.overlaps_reduce)) {
    serial.backward += all_but(sharding_.overlaps_reduce ? 3 : 1, middle.reduce, layers);
  }
  return serial;
}

// What the bus carries during a pass are the gathers and reductions that serial_of counts, whatever they overlap with;
// where these are done once a step instead, they count towards the step's end.
void CostEstimator::add_bus(ScheduleCosts& schedule_costs, const ChunkKey& key, std::size_t position) {
  if (job().plan.bucket_bytes > 0 || merged_lanes_) return;
  const int stage =
      program::traits_of(schedule_costs.schedule).stage_of(static_cast<int>(position), schedule_costs.pipeline);
  const KindCosts& middle = costs(layer_of(key), stage);
  const Counts layers = layers_of(key);
  const std::int64_t gather = middle.gather_bus.of(layers), reduce = middle.reduce_bus.of(layers);
  ScheduleCosts::Chunk& chunk = schedule_costs.chunks[position];
  ScheduleCosts::Ending& ending = schedule_costs.endings[static_cast<std::size_t>(stage)];
  if (sharding_.parameters) {
    chunk.forward_bus = chunk.backward_bus = all_but(1 + sharding_.ahead, middle.gather_bus, layers);
    chunk.bus = 2 * gather;
  } else {
    ending.bus += gather;
  }
  if (sharding_.gradients) {
    chunk.backward_bus += all_but(sharding_.overlaps_reduce ? 3 : 1, middle.reduce_bus, layers);
    chunk.bus += reduce;
  } else {
    ending.bus += reduce;
  }
}

// Host and device times of a norm's kernels combine over all of them, so the sum over layers with different parameters
// says too much.
std::int64_t CostEstimator::norm(const Counts& layers, const KindCosts& middle) const {
  std::int64_t dense = 0, mixtures = 0;
  for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) {
    (layer_kinds()[kind].kind.mixture ? mixtures : dense) += layers[kind] * middle.norm.layer[kind];
  }
  return std::max(dense, mixtures);
}

void CostEstimator::add_ending(ScheduleCosts& schedule_costs, const Plan& plan, const std::vector<ChunkKey>& chunks,
                               int stage) {
  if (plan.bucket_bytes > 0) return;  // buckets of several layers: nothing is claimed of them
  ScheduleCosts::Ending& ending = schedule_costs.endings[static_cast<std::size_t>(stage)];
  std::int64_t apart = 0, replicas = 0, gathered = 0, copied = 0;
  const bool beside = !merged_lanes_ && plan.overlap.gradient_reduction;
  for (int v = 0; v < plan.virtual_stages; ++v) {
    const auto position = static_cast<std::size_t>(plan.position_of(stage, v));
    const ChunkKey& chunk = chunks[position];
    const KindCosts &c = costs(chunk, stage), &middle = costs(layer_of(chunk), stage);
    const Counts layers = layers_of(chunk);
    if (v == 0) ending.first_optimizer = c.first_optimizer;
    const std::int64_t reduce = c.reduce.of(layers);
    if (beside) schedule_costs.chunks[position].reduce = middle.reduce.of(layers);
    if (!sharding_.gradients) {
      ending.reduce += reduce;
      apart = std::max(apart, c.reduce_apart);
    }
    const std::int64_t collectives =
        (sharding_.parameters ? 2 * middle.gather.of(layers) : 0) + middle.reduce.of(layers);
    if (sharding_.gradients) ending.data += schedule_costs.micro_batches * collectives;
    if (sharding_.gathers_first) {
      ending.data += middle.gather.of(layers);
      gathered += middle.gather.of(layers);
      if (!merged_lanes_) schedule_costs.chunks[position].gathered = gathered;
    }
    replicas += c.replicas.of(layers);
    // With biases of experts (gpt-oss) one of 1,000 random plans came out .015 % below a bound that counts the norm,
    // for a reason not yet found: nothing is claimed of it there.
    if (!job().model.experts || !job().model.linear_bias) ending.norm += norm(layers, middle);
    ending.optimizer += c.optimizer.of(layers);
    copied += state_copies(chunk, c, middle);
    if (sharding_.parameters || sharding_.gathers_first) continue;
    ending.gathers += c.gather.of(layers);
    ending.last_gather = c.last_gather;
  }
  ending.reduce = std::max(ending.reduce, apart);
  if (beside || sharding_.gradients) ending.reduce = costs(chunks[static_cast<std::size_t>(stage)], stage).first_reduce;
  if (!beside) ending.reduce += replicas;
  ending.copies = merged_lanes_ || copied <= 0 ? 0 : copied + ending.first_optimizer;  // none before the first AdamW
  if (merged_lanes_) {
    ending.optimizer += ending.gathers;
    ending.gathers = ending.data = 0;
  }
}

}  // namespace trivium::simulator
