// What the device says of its work (CUPTI's activity records), joined to what the host was doing when it issued it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace trivium::runtime::cuda {

/// Nanoseconds of the records' clock.
struct WorkSpan {
  std::uint64_t start_ns = 0, end_ns = 0;
};

/// Records in any order and from any thread. A record of work carries the number of the call that issued it; a record
/// of a tag joins such a number to the tag that the calling thread had then. Which of the two comes first is open.
class ActivityLog {
 public:
  void add_work(std::uint32_t call, WorkSpan span);
  void add_tag(std::uint32_t call, std::uint64_t tag);
  /// From where the first work under the tag began to where the last ended; nothing where none is known.
  std::optional<WorkSpan> span_of(std::uint64_t tag);
  /// Everything so far.
  void forget();

 private:
  struct Work {
    std::uint32_t call;
    WorkSpan span;
  };
  void join();

  std::mutex mutex_;
  std::vector<Work> loose_;  // tag not known yet
  bool came_ = false;        // something, since they were last joined
  std::unordered_map<std::uint32_t, std::uint64_t> tags_;
  std::map<std::uint64_t, WorkSpan> spans_;  // by tag
};

}  // namespace trivium::runtime::cuda
