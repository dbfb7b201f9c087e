// Matching the two ends of a transfer between threads.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace trivium::runtime::inproc {

/// Names a transfer.
struct TransferKey {
  int source = 0, destination = 0;
  std::int64_t number = 0;
  auto operator<=>(const TransferKey&) const = default;
};

/// One end of a transfer. The end that is posted second copies and marks both done; after `done` only the owner touches
/// it.
struct TransferEnd {
  bool is_send = false;
  std::byte* data = nullptr;  ///< of a send: only read
  std::int64_t bytes = 0;
  std::atomic<bool> done{false};
};

/// The ends that wait for their other end. Thread-safe.
class TransferTable {
 public:
  explicit TransferTable(int ranks) : boxes_(static_cast<std::size_t>(ranks)) {}
  /// The other end, taken out of the table; or null, and `end` waits in the table until its other end comes.
  TransferEnd* match_or_leave(const TransferKey& key, TransferEnd& end);

 private:
  // One box per destination: transfers to different ranks do not contend.
  struct Box {
    std::mutex mutex;
    std::map<TransferKey, TransferEnd*> waiting;
  };
  std::vector<Box> boxes_;
};

}  // namespace trivium::runtime::inproc
