// What the state of a plan adds to its passes: gathers and reductions, copies, and what comes after the last backward.
#include <algorithm>
#include <tuple>

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
        std::tie(chunk.reduce_layer, chunk.reduce_longest) = range_of(middle.reduce, layers);
        chunk.reduce_layers = middle.reduce.of(layers);
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
  const auto [least_gather, longest_gather] = range_of(middle.gather, layers);
  chunk.gather_layer = least_gather;
  if (!ahead) return;
  chunk.forward_data = std::max<std::int64_t>(0, middle.gather.of(layers) - (1 + sharding_.ahead) * longest_gather);
  chunk.backward_data = chunk.forward_data;
  if (!sharding_.gradients || !sharding_.overlaps_reduce) return;
  chunk.backward_data += std::max<std::int64_t>(0, chunk.reduce_layers - 2 * chunk.reduce_longest);
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
  const auto layers = [&](int apart) { return std::max(0, key.layers - 1 - apart); };
  Serial serial;
  if (sharding_.parameters && (merged_lanes_ || sharding_.ahead == 0)) {
    serial.forward = serial.backward = layers(sharding_.ahead) * least(middle.gather.layer);
  }
  if (sharding_.gradients && (merged_lanes_ || !sharding_.overlaps_reduce)) {
    serial.backward += layers(sharding_.overlaps_reduce ? 2 : 0) * least(middle.reduce.layer);
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
  const std::int64_t gather = least(middle.gather_bus.layer), reduce = least(middle.reduce_bus.layer);
  const auto inside = [&](int apart) { return std::max(0, key.layers - 1 - apart); };
  ScheduleCosts::Chunk& chunk = schedule_costs.chunks[position];
  ScheduleCosts::Ending& ending = schedule_costs.endings[static_cast<std::size_t>(stage)];
  if (sharding_.parameters) {
    chunk.forward_bus = chunk.backward_bus = inside(sharding_.ahead) * gather;
    chunk.bus = 2 * key.layers * gather;
  } else {
    ending.bus += key.layers * gather;
  }
  if (sharding_.gradients) {
    chunk.backward_bus += inside(sharding_.overlaps_reduce ? 2 : 0) * reduce;
    chunk.bus += key.layers * reduce;
  } else {
    ending.bus += key.layers * reduce;
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
