#include "runtime/cuda/activity_log.h"

#include <algorithm>
#include <utility>

namespace trivium::runtime::cuda {

// A record that was flushed before its work ended has no times.
void ActivityLog::add_work(std::uint32_t call, WorkSpan span) {
  if (span.start_ns == 0 || span.end_ns < span.start_ns) return;
  const std::lock_guard lock(mutex_);
  loose_.push_back({call, span});
  came_ = true;
}

void ActivityLog::add_tag(std::uint32_t call, std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  tags_[call] = tag;
  came_ = true;
}

std::optional<WorkSpan> ActivityLog::span_of(std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(came_, false)) join();
  const auto found = spans_.find(tag);
  if (found == spans_.end()) return std::nullopt;
  return found->second;
}

// Work that nobody tagged stays: its tag may come with a later buffer.
void ActivityLog::join() {
  std::erase_if(loose_, [&](const Work& work) {
    const auto known = tags_.find(work.call);
    if (known == tags_.end()) return false;
    WorkSpan& span = spans_.try_emplace(known->second, work.span).first->second;
    span.start_ns = std::min(span.start_ns, work.span.start_ns);
    span.end_ns = std::max(span.end_ns, work.span.end_ns);
    return true;
  });
}

void ActivityLog::forget() {
  const std::lock_guard lock(mutex_);
  loose_.clear();
  tags_.clear();
  spans_.clear();
}

}  // namespace trivium::runtime::cuda
