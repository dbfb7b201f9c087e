#include "program/lower/gradient_tasks.h"

namespace trivium::program {

int GradientTasks::add(TaskKind kind, int body, int like) {
  Task task;
  task.kind = kind;
  task.body = body;
  task.chunk = role_.tasks[static_cast<std::size_t>(like)].chunk;
  task.micro_batch = role_.tasks[static_cast<std::size_t>(like)].micro_batch;
  role_.tasks.push_back(std::move(task));
  return static_cast<int>(role_.tasks.size()) - 1;
}

void GradientTasks::wait(int task, int for_task, std::int16_t segment, std::int16_t before) {
  if (for_task >= 0) role_.tasks[static_cast<std::size_t>(task)].after.push_back({for_task, segment, before});
}

void GradientTasks::use(int task, SegmentRange segments, std::size_t bucket, Behind behind) {
  if (!is_offloaded()) return;
  const int chunk = role_.tasks[static_cast<std::size_t>(task)].chunk;
  const ChunkTemplate& kind =
      program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(chunk)].kind)];
  Slot& slot = slots_[{chunk, bucket % 2}];
  const std::size_t count = program_.body_of(role_.tasks[static_cast<std::size_t>(task)]).segments.size();
  const bool throughout = segments.first == 0 && segments.last + 1 == static_cast<int>(count);
  const std::int16_t end = throughout ? kWholeTask : segments.last;
  const bool held = slot.bucket == static_cast<int>(bucket);
  // Every segment waits: those on other lanes need not follow the first.
  const auto all_wait = [&](int for_task, std::int16_t segment) {
    for (std::int16_t s = segments.first; s <= segments.last; ++s) wait(task, for_task, segment, s);
  };
  if (held) {
    if (slot.task != task) all_wait(slot.task, slot.segment);
    if (slot.store >= 0) all_wait(slot.store, kWholeTask);
  } else {
    const int fetch = add(TaskKind::kFetch, kind.fetch_gradient[bucket], task);
    const auto [stored, fresh] = stored_.try_emplace({chunk, bucket}, -1);
    wait(fetch, stored->second);
    wait(fetch, slot.store);
    wait(fetch, slot.task, slot.segment);
    all_wait(fetch, kWholeTask);
  }
  int store = held && behind == Behind::kUnchanged ? slot.store : -1;
  if (behind == Behind::kStored) {
    store = stored_[{chunk, bucket}] = add(TaskKind::kStore, kind.store_gradient[bucket], task);
    wait(store, task, end);
  }
  slot = {static_cast<int>(bucket), task, end, store};
}

void GradientTasks::use(int task, std::size_t bucket) {
  const auto segments = program_.body_of(role_.tasks[static_cast<std::size_t>(task)]).segments.size();
  use(task, {0, static_cast<std::int16_t>(segments - 1)}, bucket, Behind::kStored);
}

}  // namespace trivium::program
