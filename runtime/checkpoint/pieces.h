// What of the model a rank holds, as rectangles of whole tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/checkpoint/box.h"
#include "runtime/executor/arenas.h"

namespace trivium::runtime::checkpoint {

/// A rectangle of a global tensor and where it lies in a rank's memory.
struct Piece {
  State state{};
  std::string name;                    ///< global
  int replica = 0, replicas = 1;       ///< residuals: the replica, and how many there are
  std::int64_t rows = 0, columns = 0;  ///< of the whole tensor; vectors are (1, n)
  Box box;
  std::byte* first = nullptr;  ///< the box's first element
  std::int64_t stride = 0;     ///< elements from one row of the box to the next
  program::DType type{};
  bool added = false;  ///< an adapter's: where a checkpoint has none it stays as it is, its moments 0
};

/// The spaces in which pieces lie.
inline constexpr std::array kKeptSpaces{program::Space::kParameter, program::Space::kOffloadedParameter,
                                        program::Space::kOptimizer, program::Space::kOffloadedState};

/// What this rank saves: over all ranks every element of every tensor exactly once, whatever the plan. Flat parts of
/// buckets become up to three rectangles a parameter and column section. Padding and tied copies are left out.
/// Residuals are every replica's own.
/// `arenas`, here and below: memory of the host.
std::vector<Piece> saved_pieces(const program::Program& program, int rank, const Arenas& arenas);

/// What this rank needs of a checkpoint: every place that keeps an element of a tensor between steps.
std::vector<Piece> needed_pieces(const program::Program& program, int rank, const Arenas& arenas);

}  // namespace trivium::runtime::checkpoint
