// Collectives that the executor makes of transfers: all-to-all and ring shift.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/communicator.h"

namespace trivium::runtime {

/// Part i of `in` goes to the i-th of `members`, whose part for this rank becomes part i of `out`. `part_bytes`: of one
/// part. `number`: of the transfers; members must not have others of that number between them. Blocks until done.
void all_to_all(Communicator& communicator, std::span<const int> members, const std::byte* in, std::byte* out,
                std::int64_t part_bytes, std::int64_t number);

/// Rows of `row_bytes`, as many as each pair of members agrees on: `sent[i]` of `in` to the i-th member and
/// `received[i]` from it, in the order of the members.
void exchange_rows(Communicator& communicator, std::span<const int> members, const std::byte* in, std::byte* out,
                   std::span<const std::int32_t> sent, std::span<const std::int32_t> received, std::int64_t row_bytes,
                   std::int64_t number);

/// `in` goes to the next member (the first follows the last), `out` comes from the one before.
void ring_shift(Communicator& communicator, std::span<const int> members, const std::byte* in, std::byte* out,
                std::int64_t bytes, std::int64_t number);

/// Whether an op is made of transfers between the members of its group.
bool is_exchange(program::OpKind kind);

/// Whom `rank` exchanges data with in an op of that kind among `members`; none where the op is a collective of the
/// communicator's own.
std::vector<int> exchange_peers(program::OpKind kind, std::span<const int> members, int rank);

}  // namespace trivium::runtime
