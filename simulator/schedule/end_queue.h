// What ends next: a heap that is filled and emptied by turns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trivium::simulator {

/// An end of work. Ties are broken by the order of starts, so that the same input simulates the same way.
struct End {
  std::int64_t time = 0;
  std::uint32_t sequence = 0;
  std::int32_t what = 0;
  bool operator<(const End& other) const { return time != other.time ? time < other.time : sequence < other.sequence; }
};

/// A priority queue of ends, earliest first. Four children a node: half the levels of a binary heap, and those of one
/// node share a cache line. A push right after a pop takes the place of what was popped, so that the usual pair costs
/// one way down.
class EndQueue {
 public:
  bool empty() const { return ends_.size() == (hole_ ? 1 : 0); }

  void push(const End& end) {
    if (hole_) {
      hole_ = false;
      sink(end);
      return;
    }
    std::size_t at = ends_.size();
    ends_.push_back(end);
    while (at > 0) {
      const std::size_t parent = (at - 1) / kChildren;
      if (!(end < ends_[parent])) break;
      ends_[at] = ends_[parent];
      at = parent;
    }
    ends_[at] = end;
  }

  /// Precondition: not empty.
  End pop() {
    if (hole_) {
      const End last = ends_.back();
      ends_.pop_back();
      sink(last);
    }
    hole_ = true;
    return ends_.front();
  }

  /// The time of what pop() gives next. Precondition: not empty.
  std::int64_t earliest() const {
    if (!hole_) return ends_.front().time;
    return std::min_element(ends_.begin() + 1,
                            ends_.begin() + static_cast<std::ptrdiff_t>(std::min(ends_.size(), kChildren + 1)))
        ->time;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  // From the root, which is free, down to its place.
  void sink(const End& end) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = at * kChildren + 1;
      if (first >= ends_.size()) break;
      const std::size_t last = std::min(first + kChildren, ends_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < last; ++child) {
        if (ends_[child] < ends_[least]) least = child;
      }
      if (!(ends_[least] < end)) break;
      ends_[at] = ends_[least];
      at = least;
    }
    ends_[at] = end;
  }

  std::vector<End> ends_;
  bool hole_ = false;  // the root was popped and nothing has taken its place yet
};

}  // namespace trivium::simulator
