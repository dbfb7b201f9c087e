// The barrier of a group and the table of groups.
#include "runtime/inproc/group.h"

namespace trivium::runtime::inproc {

Group::Group(Hub& hub, std::vector<int> ranks) : hub_(hub), ranks_(std::move(ranks)), entries_(2 * ranks_.size()) {}

std::span<Entry> Group::entries(std::int64_t number) {
  return std::span(entries_).subspan(number % 2 == 0 ? 0 : ranks_.size(), ranks_.size());
}

void Group::meet(int rank, std::int64_t number) {
  // Nobody arrives at barrier n + 1 before all arrived at n, so one ever-growing count tells all barriers apart.
  const std::int64_t all = number * members();
  if (arrivals_.fetch_add(1, std::memory_order_acq_rel) + 1 == all) {
    for (const int other : ranks_) {
      if (other != rank) hub_.ring(other);
    }
    return;
  }
  hub_.wait_until(rank, [&] { return arrivals_.load(std::memory_order_acquire) >= all; });
}

std::shared_ptr<Group> GroupTable::find_or_make(Hub& hub, std::span<const int> ranks, int occurrence) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Group>& group = groups_[{std::vector<int>(ranks.begin(), ranks.end()), occurrence}];
  if (!group) group = std::make_shared<Group>(hub, std::vector<int>(ranks.begin(), ranks.end()));
  return group;
}

}  // namespace trivium::runtime::inproc
