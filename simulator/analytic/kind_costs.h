// A chunk template of one layer, costed: the pieces that chunks of any length are added up from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/model.h"
#include "simulator/analytic/turns.h"
#include "simulator/cost/costed_program.h"

namespace trivium::simulator {

/// By kind of layer, as models::layer_kinds counts them.
template <class Value>
using ByLayerKind = std::array<Value, models::kMostLayerKinds>;

/// Time that grows with the layers of a chunk, and time that embedding and head add (ps).
struct PartTimes {
  std::int64_t ends = 0;
  ByLayerKind<std::int64_t> layer{};  ///< that one layer of a kind takes
  std::int64_t of(const ByLayerKind<int>& layers) const {
    std::int64_t sum = ends;
    for (std::size_t kind = 0; kind < layers.size(); ++kind) sum += layers[kind] * layer[kind];
    return sum;
  }
};

/// Of layers of a chunk, which has some: what each takes at least, and at most (ps).
std::pair<std::int64_t, std::int64_t> range_of(const PartTimes& times, const ByLayerKind<int>& layers);

/// What all layers of a chunk but any `count` of them take at least (ps).
std::int64_t all_but(int count, const PartTimes& times, const ByLayerKind<int>& layers);

/// Of one kind on one stage (ps). Passes count what segments take of the compute lane, simulated by segments (where
/// passes run in pairs without the exchanges with the experts, which are segments of their own); the optimizer counts
/// the compute lane, `reduce` and `gather` the data lane; with lanes merged everything but transfers is on the compute
/// lane.
struct KindCosts {
  PartTimes forward, backward, optimizer, reduce, gather;
  PartTimes replicas;  ///< sums over shard groups
  /// Of a pass from its begin to its end: where passes run in pairs with the exchanges that it waits for.
  PartTimes forward_through, backward_through;
  PartTimes exchanges;  ///< both passes' on the lane of exchanges with experts, where passes run in pairs
  /// There, by kind: turns of a layer's passes; null where nothing is claimed of them.
  ByLayerKind<std::shared_ptr<const LayerTurns>> turns{};
  std::int64_t forward_lead = 0, backward_lead = 0;  ///< of `forward` and `backward`, what comes before the layer
  PartTimes weights;                                 ///< second half of the backward, where it is split
  PartTimes norm;                                    ///< one layer's share; embedding and head left out
  std::int64_t reduce_apart = 0;                     ///< longest reduction that is not on the data lane alone
  std::int64_t first_reduce = 0;                     ///< of the first bucket, which is ready last
  std::int64_t first_optimizer = 0;
  std::int64_t last_gather = 0;
  std::int64_t norm_reduce = 0;
  std::int64_t send_forward = 0, send_backward = 0;
  std::int64_t gather_forward = 0, gather_backward = 0;  ///< of what it receives in parts
  PartTimes copies;                                      ///< of a layer's activations, one way; 0 where they stay
  PartTimes fetch_state, store_state;                    ///< optimizer state; 0 where it stays
  /// How long the device's bus is busy in one direction (simulator/analytic/bus_load.h): with collectives of a pass,
  /// with one bucket's gathers and reductions, and with a layer's activations.
  PartTimes forward_bus, backward_bus, gather_bus, reduce_bus;
  std::int64_t send_bus = 0;  ///< what it sends to the stages before and after
  PartTimes copies_bus;
};

/// All but the passes (simulator/analytic/pass_layer.h), which are zero. Bodies that `stage` was not costed with take
/// no time. Precondition: the kind has one layer and one bucket per segment (and one for experts), or no buckets. The
/// layer is entered as that of the first kind. `cluster`: as the ranks see it. `every_pass`: gradients are reduced
/// after every backward, but for those of experts that no other rank holds.
KindCosts kind_costs(const CostedProgram& costed, const hardware::Cluster& cluster, int stage, std::size_t kind,
                     bool every_pass);

/// Of chunks that have layers of several kinds; of each the costs where it is the only one. What belongs to the first
/// or the last bucket alone is the least of all.
KindCosts joined(const std::vector<KindCosts>& kinds);

}  // namespace trivium::simulator
