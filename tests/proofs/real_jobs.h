// Search problems of real sizes: shipped models on shipped clusters.
#pragma once

#include <random>

#include "planner/search/search.h"

namespace trivium::planner {

/// A shipped model on up to 16 shipped nodes of one kind or two, with a batch of 1 to 8 samples a device: dense models
/// and mixtures, whole sequences and, on some, sequences that are long enough to be split; overlaps and compression
/// allowed in some, memory ignored in most, as what does not fit has a bound too.
SearchRequest real_job(std::mt19937& random);

/// A mixture on such nodes whose experts are spread over ranks with ZeRO 2 or 3, in stacks that shard otherwise: with
/// layers gathered ahead or not, in several collectives, or kept at the ends.
SearchRequest real_sharded_mixture(std::mt19937& random);

/// Pairs of passes of a mixture in a V (dualpipev with overlap.expert).
SearchRequest real_pairs_in_v(std::mt19937& random);

}  // namespace trivium::planner
