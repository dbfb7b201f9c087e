// Which tokens of a sequence a rank of the context group holds.
#pragma once

#include <cstdint>

#include "program/plan.h"

namespace trivium::program {

/// Position in a sequence of `sequence` tokens of the rank's `local`-th token, 0 <= local < sequence / ranks.
/// all_to_all: ranks hold one run each, in order. ring: the sequence is cut in 2 ranks chunks and rank r holds chunks r
/// and 2 ranks - 1 - r, so that causal attention is the same work for every rank in every step of the ring (as in
/// zigzag ring attention; Brandon et al. 2023, arXiv 2311.09431, balance it by stripes).
std::int64_t context_position(ContextMethod method, std::int64_t local, std::int64_t sequence, int rank, int ranks);

/// The rank whose keys have come by after `step` shifts of the ring: they move from every rank to the next.
int ring_source(int rank, int step, int ranks);

}  // namespace trivium::program
