// Batches near the one that was asked for that divide into all devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/advice/studies.h"

namespace trivium::planner {

/// A batch with which all devices work, and every sample takes less time.
struct NearestBatch {
  std::int64_t global_batch = 0;
  Candidate best;   ///< on all devices; there may be a faster one
  double gain = 0;  ///< of samples per second: 0.1 is 10 % more
};

/// Multiples of the odd part of `devices` that keep the powers of two which `batch` has in common with them: the
/// nearest first, at most half of `batch` away. None where `batch` is one.
std::vector<std::int64_t> batches_near(std::int64_t batch, int devices);

/// Of batches_near() the first with which a plan on all devices makes 1 % more samples a second than the best of
/// `result`, the answer to the request, and the same placement, attention and activations. Found by a search, with
/// slower plans cut off by bounds. Nothing on heterogeneous nodes, or where the request says how many devices are used.
std::optional<NearestBatch> nearest_batch(const SearchRequest& request, const SearchResult& result,
                                          const Effort& effort);

}  // namespace trivium::planner
