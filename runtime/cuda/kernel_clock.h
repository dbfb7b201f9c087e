// Times of ops by the records of their kernels, instead of by events around them, which also measure what lies between
// an event and a kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "runtime/backend.h"
#include "runtime/cuda/activity_log.h"

namespace trivium::runtime::cuda {

/// `Source` has what Cupti has (cupti.h): tag(number), untag(), now_ns(), flush(), log(). Whatever a thread issues
/// between a stamp and the next carries a number of that stamp's own. One rank's thread.
template <class Source>
class KernelClock {
 public:
  explicit KernelClock(Source& source) : source_(source) {}

  /// A step begins, `late_ns` after the start that all ranks share; the device is idle.
  void start(std::int64_t late_ns) {
    source_.untag();
    source_.log().forget();
    begin_ns_ = source_.now_ns() - static_cast<std::uint64_t>(late_ns);
    first_tag_ = next_tag_;  // records of the step before that come late are nobody's
    disowned_.clear();
    flushed_ = false;
  }

  void stamped(std::int32_t stamp) {
    const std::uint64_t tag = tag_of(stamp);
    source_.tag(tag);
    next_tag_ = tag + 1;
  }

  /// What is issued from here to the next stamp is not attributed: work that other threads issue for it, as NCCL's do,
  /// carries no number, and a copy issued along with it is not all of it.
  void disown() {
    source_.untag();
    disowned_.insert(next_tag_ - 1);
  }

  /// Once the device is idle: when the work between two neighbouring stamps ran. Where there was none, no time at the
  /// end of what ran before it. Nothing where stamps are no neighbours, as of transfers, or the work was disowned, or
  /// there is none before it either: events tell these times, on a clock that differs by microseconds.
  std::optional<Interval> between(std::int32_t from, std::int32_t to) {
    if (to != from + 1) return std::nullopt;
    if (!flushed_) source_.flush();
    flushed_ = true;
    if (const std::optional<Interval> own = seen(tag_of(from))) return own;
    if (from == 0 || disowned_.contains(tag_of(from))) return std::nullopt;
    std::optional<Interval> before = seen(tag_of(from) - 1);
    if (before) before->start_ns = before->end_ns;
    return before;
  }

 private:
  std::optional<Interval> seen(std::uint64_t tag) {
    const std::optional<WorkSpan> span = source_.log().span_of(tag);
    if (!span || span->start_ns < begin_ns_) return std::nullopt;
    return Interval{static_cast<std::int64_t>(span->start_ns - begin_ns_),
                    static_cast<std::int64_t>(span->end_ns - begin_ns_)};
  }
  std::uint64_t tag_of(std::int32_t stamp) const { return first_tag_ + static_cast<std::uint64_t>(stamp); }

  Source& source_;
  std::uint64_t begin_ns_ = 0, first_tag_ = 1, next_tag_ = 1;
  bool flushed_ = false;
  std::set<std::uint64_t> disowned_;
};

}  // namespace trivium::runtime::cuda
