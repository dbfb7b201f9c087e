// A group of thread ranks: a barrier, and the place where members publish what they ask for.
// The collectives themselves are in ThreadCommunicator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "runtime/inproc/hub.h"
#include "runtime/reduction/agreement.h"

namespace trivium::runtime::inproc {

/// Payloads up to this size are copied into the group itself, which saves the second barrier.
constexpr std::size_t kSmallBytes = 4096;

/// What one member published for one collective.
struct alignas(64) Entry {
  reduction::Call call;
  const std::byte* source = nullptr;  ///< read by the others
  std::byte* target = nullptr;        ///< written by the others
  std::array<std::byte, kSmallBytes> small;
};

/// Shared by the members. Each member counts its own barriers and collectives and passes the counts in.
class Group {
 public:
  Group(Hub& hub, std::vector<int> ranks);

  int members() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  /// Entries of collective `number`. Two sets take turns: while a slow member still reads one, a fast one may fill the
  /// other; the first is filled again only after the barrier of the second, which the slow member reaches after
  /// reading.
  std::span<Entry> entries(std::int64_t number);
  /// Returns when every member has come to its barrier `number` (1, 2, …). Throws Aborted.
  void meet(int rank, std::int64_t number);

 private:
  Hub& hub_;
  const std::vector<int> ranks_;
  std::vector<Entry> entries_;  ///< two sets
  alignas(64) std::atomic<std::int64_t> arrivals_{0};
};

/// Hands the members of a group the same Group. Thread-safe.
class GroupTable {
 public:
  /// The Group of these ranks that they make for the `occurrence`-th time.
  std::shared_ptr<Group> find_or_make(Hub& hub, std::span<const int> ranks, int occurrence);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::vector<int>, int>, std::shared_ptr<Group>> groups_;
};

}  // namespace trivium::runtime::inproc
