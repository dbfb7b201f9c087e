#include "runtime/cuda/activity_log.h"

#include <algorithm>

namespace trivium::runtime::cuda {

// A record that was flushed before its work ended has no times.
void ActivityLog::add_work(std::uint32_t call, WorkSpan span) {
  if (span.start_ns == 0 || span.end_ns < span.start_ns) return;
  const std::lock_guard lock(mutex_);
  loose_.push_back({call, span});
}

void ActivityLog::add_tag(std::uint32_t call, std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  tags_[call] = tag;
}

std::optional<WorkSpan> ActivityLog::span_of(std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  std::erase_if(loose_, [&](const Work& work) {
    const auto known = tags_.find(work.call);
    if (known == tags_.end()) return false;
    WorkSpan& span = spans_.try_emplace(known->second, work.span).first->second;
    span.start_ns = std::min(span.start_ns, work.span.start_ns);
    span.end_ns = std::max(span.end_ns, work.span.end_ns);
    return true;
  });
  const auto found = spans_.find(tag);
  if (found == spans_.end()) return std::nullopt;
  return found->second;
}

void ActivityLog::forget() {
  const std::lock_guard lock(mutex_);
  loose_.clear();
  tags_.clear();
  spans_.clear();
}

}  // namespace trivium::runtime::cuda
