// What a member asks of a collective, and whether all members ask the same.
// Members that disagree would wait for ever or mix memory up; here they get a sentence instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "program/ir/op.h"
#include "program/plan/dtype.h"

namespace trivium::runtime::reduction {

enum class CallKind : std::uint8_t { kBarrier, kAllReduce, kReduceScatter, kAllGather, kBroadcast };

/// One member's call. A plain value without padding that matters: it travels between processes as bytes.
struct Call {
  CallKind kind = CallKind::kBarrier;
  program::DType type = program::DType::kUint8;
  program::Reduction how = program::Reduction::kSum;
  std::int32_t root = -1;
  std::int64_t count = 0;

  bool operator==(const Call&) const = default;
};

/// Why the members' calls cannot be carried out together: the first that differs from the first member's, a negative
/// count, a count that the members cannot share evenly, a root outside the group. `ranks[i]` made `calls[i]`.
std::optional<std::string> disagreement(std::span<const int> ranks, std::span<const Call> calls);

/// Why `part` (bytes) may not lie where it lies: it overlaps `whole` elsewhere than as part `index` of it.
std::optional<std::string> misplaced_part(const void* part, const void* whole, std::int64_t part_bytes, int members,
                                          int index);

}  // namespace trivium::runtime::reduction
