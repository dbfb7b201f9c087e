// Which tokens of a sequence a rank of the context group holds.
#pragma once

#include <cstdint>

#include "program/plan/plan.h"

namespace trivium::program {

/// Position in a sequence of `sequence` tokens of the rank's `local`-th token, 0 <= local < sequence / ranks.
/// all_to_all: ranks hold one run each, in order. ring: the sequence is cut in 2 ranks chunks and rank r holds chunks r
/// and 2 ranks - 1 - r, so that causal attention is the same work for every rank in every step of the ring (as in
/// zigzag ring attention; Brandon et al. 2023, arXiv 2311.09431, balance it by stripes).
std::int64_t context_position(ContextMethod method, std::int64_t local, std::int64_t sequence, int rank, int ranks);

/// Which part of the heads, and which place in the ring, a context rank has in an op among `op_parts` ranks of a ring,
/// 1: of none.
constexpr int head_part(int op_parts, int rank, int ranks) { return rank % (ranks / op_parts); }
constexpr int ring_place(int op_parts, int rank, int ranks) { return rank / (ranks / op_parts); }

/// The rank that holds a position.
constexpr int context_owner(ContextMethod method, std::int64_t position, std::int64_t sequence, int ranks) {
  if (method == ContextMethod::kAllToAll || ranks == 1) return static_cast<int>(position / (sequence / ranks));
  const auto chunk = static_cast<int>(position / (sequence / (2 * ranks)));
  return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
}

/// The rank whose keys have come by after `step` shifts of the ring: they move from every rank to the next.
int ring_source(int rank, int step, int ranks);

}  // namespace trivium::program
