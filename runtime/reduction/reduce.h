// Element-wise reduction of the members' buffers in ascending member order, the arithmetic of every communicator.
// The same inputs give the same bits on threads and on MPI, whatever the timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "program/ir/op.h"
#include "program/plan/dtype.h"

namespace trivium::runtime::reduction {

/// Bytes of one element: a pair of doubles for kPairSum (`type` then does not matter), else one value of `type`.
std::int64_t element_bytes(program::DType type, program::Reduction how);

/// result[e] = ((parts[0][e] + parts[1][e]) + parts[2][e]) + … (or the maximum) for e < count, written to each of
/// `results`. 16-bit floats are summed in fp32 and rounded once at the end; integers wrap; a NaN makes the maximum NaN.
/// A result may be one of the parts; other overlaps are not allowed. `parts` is not empty.
void reduce_in_order(std::span<const std::byte* const> parts, std::span<std::byte* const> results, std::int64_t count,
                     program::DType type, program::Reduction how);

/// Elements [begin, end) of `count` that member `index` of `members` reduces. Slices are whole cache lines, so that
/// members do not write to the same one; the last slices of a small buffer are empty.
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
Slice slice_of(std::int64_t count, int members, int index);

}  // namespace trivium::runtime::reduction
