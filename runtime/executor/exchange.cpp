#include "runtime/executor/exchange.h"

#include <algorithm>

namespace trivium::runtime {

void all_to_all(Communicator& communicator, std::span<const int> members, const std::byte* in, std::byte* out,
                std::int64_t part_bytes, std::int64_t number) {
  const auto part = [&](std::size_t i) { return static_cast<std::int64_t>(i) * part_bytes; };
  communicator.begin_batch();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == communicator.rank()) {
      communicator.copy(out + part(i), in + part(i), part_bytes);
      continue;
    }
    communicator.post_recv(members[i], number, out + part(i), part_bytes);
    communicator.post_send(members[i], number, in + part(i), part_bytes);
  }
  communicator.end_batch();
  for (const int member : members) {
    if (member == communicator.rank()) continue;
    communicator.wait_recv(member, number);
    communicator.wait_send(member, number);
  }
}

void exchange_rows(Communicator& communicator, std::span<const int> members, const std::byte* in, std::byte* out,
                   std::span<const std::int32_t> sent, std::span<const std::int32_t> received, std::int64_t row_bytes,
                   std::int64_t number) {
  communicator.begin_batch();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::int64_t to = sent[i] * row_bytes, from = received[i] * row_bytes;
    if (from > 0) communicator.post_recv(members[i], number, out, from);
    if (to > 0) communicator.post_send(members[i], number, in, to);
    in += to, out += from;
  }
  communicator.end_batch();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (received[i] > 0) communicator.wait_recv(members[i], number);
    if (sent[i] > 0) communicator.wait_send(members[i], number);
  }
}

void ring_shift(Communicator& communicator, std::span<const int> members, const std::byte* in, std::byte* out,
                std::int64_t bytes, std::int64_t number) {
  const auto count = members.size();
  const auto me =
      static_cast<std::size_t>(std::find(members.begin(), members.end(), communicator.rank()) - members.begin());
  const int next = members[(me + 1) % count], before = members[(me + count - 1) % count];
  communicator.begin_batch();
  communicator.post_recv(before, number, out, bytes);
  communicator.post_send(next, number, in, bytes);
  communicator.end_batch();
  communicator.wait_recv(before, number);
  communicator.wait_send(next, number);
}

bool is_exchange(program::OpKind kind) {
  return kind == program::OpKind::kAllToAll || kind == program::OpKind::kRingShift;
}

std::vector<int> exchange_peers(program::OpKind kind, std::span<const int> members, int rank) {
  std::vector<int> peers;
  const std::size_t count = members.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool neighbours = members[(i + 1) % count] == rank || members[(i + count - 1) % count] == rank;
    const bool meets = kind == program::OpKind::kAllToAll || (kind == program::OpKind::kRingShift && neighbours);
    if (meets && members[i] != rank) peers.push_back(members[i]);
  }
  return peers;
}

}  // namespace trivium::runtime
