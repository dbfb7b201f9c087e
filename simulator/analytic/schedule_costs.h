// A plan in a few numbers: what the closed-form bound knows of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "program/plan/plan.h"

namespace trivium::simulator {

/// Times in picoseconds. Passes count the compute lane alone.
struct ScheduleCosts {
  struct Chunk {
    std::int64_t forward = 0, backward = 0;            ///< of one micro-batch; a split backward's first half
    std::int64_t send_forward = 0, send_backward = 0;  ///< until the chunk after, or before, has it whole
    std::int64_t weights = 0;                          ///< second half of a split backward
    std::int64_t store = 0;                            ///< copy lane: activations of a micro-batch, off the device
    std::int64_t fetch = 0;                            ///< and back, where none of it is still there
    std::int64_t fetch_inner = 0;                      ///< and back, where the two layers last used are
    std::int64_t copy_layer = 0;     ///< one layer's copy, one way; 0: nothing is claimed of copies between layers
    std::int64_t forward_layer = 0;  ///< compute of one layer, where copies are between layers
    std::int64_t backward_layer = 0;
    /// Neither pass is shorter than its bus is busy in one direction with what comes and goes while it runs. Included
    /// in `forward` and `backward`; the pass without it, for joined().
    std::int64_t forward_bus = 0, backward_bus = 0;
    std::int64_t forward_alone = 0, backward_alone = 0;
    std::int64_t bus = 0;       ///< of a micro-batch, all that one direction of the bus carries
    std::int64_t gathered = 0;  ///< no first forward ends before the data lane has gathered so long; 0: nothing is
    std::int64_t reduce = 0;    ///< all its buckets on the data lane, where they are reduced during the backward
    /// Where gradients are reduced after every micro-batch: of one of its layers, at least; of all; and what may be
    /// left of them when the slot of its last layer is free, at most.
    std::int64_t reduce_layer = 0, reduce_layers = 0, reduce_left = 0;
    bool again_first = false;       ///< layers are made again before any of them leaves gradients
    std::int64_t gather_layer = 0;  ///< parameters of one of its layers, at least, where every pass gathers them
    /// Of a pass, what the data lane gathers and reduces between its begin and the begin of its last layer, at least.
    std::int64_t forward_data = 0, backward_data = 0;
    std::int64_t exchanges = 0;  ///< of both passes with experts, on a lane of their own where passes run in pairs
    int layers = 0;
    int kind = 0;                                            ///< equal for chunks that share slots of gradients
    std::int64_t forward_through = 0, backward_through = 0;  ///< where passes run in pairs: from begin to end
  };
  /// What a stage does after its last backward; each number is never above what the engine sees.
  struct Ending {
    std::int64_t reduce = 0;  ///< until its gradients are reduced
    std::int64_t norm = 0;
    std::int64_t optimizer = 0;        ///< all buckets
    std::int64_t first_optimizer = 0;  ///< the first bucket's
    std::int64_t gathers = 0;          ///< all buckets, on the data lane; 0 where nothing is gathered
    std::int64_t last_gather = 0;
    std::int64_t data = 0;    ///< all that the data lane does before the norm
    std::int64_t copies = 0;  ///< all that the copy lane does after the norm
    std::int64_t bus = 0;     ///< all that one direction of the bus carries once a step
    /// Optimizer, copies and gathers: the last gather follows the last bucket, all gathers follow the first.
    std::int64_t step() const;
  };
  program::Schedule schedule{};
  int pipeline = 1, virtual_stages = 1;
  std::int64_t micro_batches = 0;
  std::vector<Chunk> chunks;    ///< by position in the model
  std::vector<Ending> endings;  ///< by stage
  std::int64_t norm_reduce = 0;
  bool norm_joins_stages = false;
  /// A forward and a backward of different micro-batches overlap: `forward` and `backward` are their times on the
  /// compute lane, together; neither alone is shorter than its `_through`.
  bool pairs = false;
  /// With pairs, by stage, chunk of the forward and chunk of the backward: how long a pair keeps the compute lane,
  /// waits for its exchanges included, at least. Empty: no longer than both passes.
  std::vector<std::int64_t> pair_ps;
  int gathered_ahead = 0;       ///< layers beyond the one in use, where every pass gathers them
  bool reduces_beside = false;  ///< reductions after every micro-batch have two slots; else the stage waits for each

  /// Chunk `chunk` of a stage, which lies where the schedule places it.
  std::size_t position_of(std::size_t stage, int chunk) const {
    return static_cast<std::size_t>(program::traits_of(schedule).position_of(static_cast<int>(stage), chunk, pipeline));
  }
  std::int64_t pair_of(std::size_t stage, int forward, int backward) const {
    const Chunk& back = chunk_of(stage, backward);  // whole, where others are split
    const std::int64_t both = chunk_of(stage, forward).forward + back.backward + back.weights;
    const auto each = static_cast<std::size_t>(virtual_stages);
    const std::size_t at = (stage * each + static_cast<std::size_t>(forward)) * each;
    return pair_ps.empty() ? both : std::max(both, pair_ps[at + static_cast<std::size_t>(backward)]);
  }
  const Chunk& chunk_of(std::size_t stage, int chunk) const { return chunks[position_of(stage, chunk)]; }
};

/// The passes of one schedule costs with what another adds to them, and its endings. Both are of one plan.
ScheduleCosts joined(ScheduleCosts passes, const ScheduleCosts& state);

/// By stage: when its last backward ends, second halves included, and by chunk (position in the model) when that of the
/// last micro-batch begins. Ends of a step depend on nothing else of the passes.
struct PassEnds {
  std::vector<std::int64_t> stages, last_backward;
};

/// No passes that the engine simulates by segments end before (ps). The largest of:
/// - a busy stage s: forwards of the first chunks before it, its own micro-batches, backwards of the chunks before it:
///   sum_{j<s} (f_j + t_j) + m sum_v (f_s + b_s) + sum_{j<s} (b_j + t_j). For equal stages this is the bubble (p-1)/m;
/// - a full pipe (one chunk a stage, whole backwards, a steady state): stage s has at most its warm-up and one more
///   micro-batches under way (1f1b: p-s; sequential: 1), each for a round trip to the last stage, so it starts at most
///   as many in that time. This is what slow transfers cost;
/// - a split backward's second halves w count as work of the stage, but nobody waits for them: gradients run down the
///   stages after m (f_s + b_s), and the last w_s follows;
/// - several chunks a stage, in turn: the first micro-batch's way forward through all of them,
///   what the last stage then has left,
///   and the last one's way back;
/// - a busy copy lane.
/// The begins of the last backwards are not computed: 0.
PassEnds pass_ends(const ScheduleCosts& schedule_costs);

/// The same, more closely: the passes of all chunks in the order of the schedule, each as soon as its stage is free and
/// its input is there; copies of activations and reductions of every micro-batch hold up the stage's next passes, and
/// copies those of layers inside a pass. What is left out is that transfers share a lane. Takes a few nanoseconds for
/// each pass. Rounds of the schedule that repeat those before them, each as much later, are counted; `kAll` walks
/// them all, to the same ends.
enum class Rounds { kCounted, kAll };
PassEnds recurrence_ends(const ScheduleCosts& schedule_costs, Rounds rounds = Rounds::kCounted);

/// A chunk whose passes are set: none is shorter than its bus is busy. In pairs the compute lane is busy for as long as
/// it was.
void hold_to_bus(ScheduleCosts::Chunk& chunk, bool pairs);

/// No iteration whose passes end no earlier is shorter (ps): after the last backwards come reduction, norm, optimizer
/// and gathers; gathers and reductions of every micro-batch keep the data lane busy, one after another.
std::int64_t lower_bound_ps(const ScheduleCosts& schedule_costs, const PassEnds& ends);

/// With pass_ends.
std::int64_t lower_bound_ps(const ScheduleCosts& schedule_costs);

}  // namespace trivium::simulator
