// ZeRO 2 and 3: which parameters and gradients a rank keeps as shards, and where they are whole while they are used
// (Rajbhandari et al. 2020, arXiv 1910.02054, sections 5 and 7; prefetch and bucketing: Zhao et al. 2023, PyTorch FSDP,
// arXiv 2304.11277, section 3.3).
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// What of a job is sharded, and how far ahead it is gathered.
struct Sharding {
  Sharding() = default;
  Sharding(const Job& job, const StackTraits& stack);

  int shards = 1;                ///< ranks that share optimizer state; 1: nothing is sharded
  Group group = Group::kData;    ///< those ranks
  bool hybrid = false;           ///< several shard groups hold the same shards
  bool gradients = false;        ///< reduced to shards after every micro-batch
  bool parameters = false;       ///< gathered, or where a rank holds all of them fetched, for every pass
  bool away = false;             ///< parameters are kept off the device
  bool gathers_first = false;    ///< ZeRO 1 and 2: parameters are gathered during the next forward, not after the step
  bool accumulates = false;      ///< more than one backward, or half of one, adds to the gradient shards
  bool overlaps_reduce = false;  ///< reductions overlap the backward of the next bucket
  int ahead = 0;                 ///< buckets gathered beyond the one in use
  int parts = 1;                 ///< collectives a bucket is moved in
};

/// Sets where the buckets of `kind` lie, whole or as shards, and the bytes of its spaces. Buckets with the embedding or
/// the head have room of their own; the others share `ahead + 1` slots for parameters and one for gradients (two where
/// reductions overlap). A tied embedding that two stages hold keeps its gradients whole until they have been added.
/// Experts that are spread over ranks have slots of their own, for parameters and gradients, as they are used together
/// with their layer's, and stay whole where no other rank holds them; matrices that Muon steps have such slots, too,
/// and frozen parameters next to adapters.
/// Precondition: ranges and optimizer offsets of the buckets are set.
void place_shards(ChunkTemplate& kind, const Job& job, const Sharding& sharding, DType type, DType gradient);

/// Segments [first, last] of a body; first -1: none.
struct SegmentRange {
  std::int16_t first = -1, last = -1;
};

/// The segments of a body in which a bucket's parameters are read from its slot.
struct BucketUse {
  std::size_t bucket = 0;
  SegmentRange segments;
};
/// In the order in which they begin; ties as buckets are stored. A bucket has more than one use where another takes its
/// slot in between; else one, with both uses of a tied weight.
std::vector<BucketUse> parameter_uses(const Program& program, const Body& body);

/// By bucket: the segments of a body that write its gradients: both uses of a tied weight, or, without `head_use`, not
/// what accumulates apart.
std::vector<SegmentRange> gradient_writers(const Program& program, const Body& body, bool head_use = true);

/// Buckets that a body writes to, in the order in which `when` (first or last segment) says so; ties as they are
/// stored.
std::vector<std::size_t> buckets_in_order(const std::vector<SegmentRange>& ranges, std::int16_t SegmentRange::*when);

/// Whether bucket `bucket` holds the embedding or the head.
bool holds_end(const ChunkTemplate& kind, const Bucket& bucket);

}  // namespace trivium::program
