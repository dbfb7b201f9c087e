// A plan in a few numbers: what the closed-form bound knows of it.
#pragma once

#include <cstdint>
#include <vector>

#include "program/plan.h"

namespace trivium::simulator {

/// Times in picoseconds. Passes count the compute lane alone.
struct Outline {
  struct Chunk {
    std::int64_t forward = 0, backward = 0;            ///< of one micro-batch; a split backward's first half
    std::int64_t send_forward = 0, send_backward = 0;  ///< to the chunk after, to the chunk before
    std::int64_t weights = 0;                          ///< second half of a split backward
  };
  /// What a stage does behind its last backward; each number is never above what the engine sees.
  struct Ending {
    std::int64_t reduce = 0;  ///< until its gradients are reduced
    std::int64_t norm = 0;
    std::int64_t optimizer = 0;        ///< all buckets
    std::int64_t first_optimizer = 0;  ///< the first bucket's
    std::int64_t gathers = 0;          ///< all buckets, on the data lane; 0 where nothing is gathered
    std::int64_t last_gather = 0;
    std::int64_t data = 0;  ///< all that the data lane does before the norm
    /// Optimizer and gathers: the last gather follows the last bucket, all gathers follow the first.
    std::int64_t step() const;
  };
  program::Schedule schedule{};
  int pipeline = 1, virtual_stages = 1;
  std::int64_t micro_batches = 0;
  std::vector<Chunk> chunks;    ///< by position in the model
  std::vector<Ending> endings;  ///< by stage
  std::int64_t norm_reduce = 0;
  bool norm_joins_stages = false;
};

/// No iteration that the engine plays of the plan is shorter, at either granularity, ordered or not (ps). The largest
/// of:
/// - a busy stage s: forwards of the first chunks before it, its own micro-batches, backwards of the chunks before it:
///   sum_{j<s} (f_j + t_j) + m sum_v (f_s + b_s) + sum_{j<s} (b_j + t_j). For equal stages this is the bubble (p-1)/m;
/// - a full pipe (1f1b): stage s has at most p-s micro-batches under way, each for a round trip to the last stage, so
/// it
///   starts at most p-s of them in that time. This is what slow transfers cost;
/// - a split backward's second halves w count as work of the stage, but nobody waits for them: gradients run down the
///   stages behind m (f_s + b_s), and the last w_s follows;
/// - one micro-batch after the other (sequential);
/// - a busy data lane: gathers and reductions of every micro-batch, one after the other;
/// and behind the last backwards reduction, norm, optimizer and gathers.
std::int64_t lower_bound_ps(const Outline& outline);

}  // namespace trivium::simulator
