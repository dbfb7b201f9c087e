#include "program/lower/offload_tasks.h"

#include <vector>

namespace trivium::program {

const ChunkTemplate& OffloadTasks::kind_of(const Task& task) const {
  return program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(task.chunk)].kind)];
}

int OffloadTasks::add(TaskKind kind, int body, const Task& like) {
  Task task;
  task.kind = kind;
  task.body = body;
  task.chunk = like.chunk;
  task.frame = like.frame;
  task.micro_batch = like.micro_batch;
  role_.tasks.push_back(std::move(task));
  return static_cast<int>(role_.tasks.size()) - 1;
}

void OffloadTasks::wait(int task, int for_task, std::int16_t segment, std::int16_t before) {
  if (for_task >= 0) role_.tasks[static_cast<std::size_t>(task)].after.push_back({for_task, segment, before});
}

void OffloadTasks::around_pass(int task) {
  const Task& pass = role_.tasks[static_cast<std::size_t>(task)];
  const ChunkTemplate& kind = kind_of(pass);
  if (kind.store_layer.empty()) return;
  const bool forward = pass.kind == TaskKind::kForward;
  for (int i = 0; i < kind.layers; ++i) forward ? after_forward(task, i) : before_backward(task, kind.layers - 1 - i);
}

void OffloadTasks::after_forward(int task, int layer) {
  const Task pass = role_.tasks[static_cast<std::size_t>(task)];
  const ChunkTemplate& kind = kind_of(pass);
  const auto segment = static_cast<std::int16_t>(layer + (kind.embedding ? 1 : 0));
  Slot& slot = slots_[{pass.chunk, layer % 2}];
  wait(task, slot.store, kWholeTask, segment);
  const int store = add(TaskKind::kStore, kind.store_layer[static_cast<std::size_t>(layer)], pass);
  wait(store, task, segment);
  slot = {task, segment, store, {pass.micro_batch, layer}};
  stored_[{pass.chunk, pass.micro_batch, layer}] = store;
}

void OffloadTasks::before_backward(int task, int layer) {
  const Task pass = role_.tasks[static_cast<std::size_t>(task)];
  const ChunkTemplate& kind = kind_of(pass);
  const auto segment = static_cast<std::int16_t>(kind.layers - 1 - layer + kind.parts_at_end());
  Slot& slot = slots_[{pass.chunk, layer % 2}];
  int store = slot.store;
  if (slot.holds != std::pair<int, int>{pass.micro_batch, layer}) {
    const int fetch = add(TaskKind::kFetch, kind.fetch_layer[static_cast<std::size_t>(layer)], pass);
    wait(fetch, stored_.at({pass.chunk, pass.micro_batch, layer}));
    wait(fetch, slot.store);
    wait(fetch, slot.task, slot.segment);
    wait(task, fetch, kWholeTask, segment);
    store = -1;
  }
  slot = {task, segment, store, {pass.micro_batch, layer}};
}

void OffloadTasks::around_step(int task, const std::function<int(std::size_t)>& last_gather) {
  const Task step = role_.tasks[static_cast<std::size_t>(task)];
  const ChunkTemplate& kind = kind_of(step);
  std::vector<int> states, parameters;
  const auto around = [&](std::size_t b, int fetch_body, int store_body, std::vector<int>& stores) {
    const auto segment = static_cast<std::int16_t>(b);
    const int fetch = add(TaskKind::kFetch, fetch_body, step);
    if (b >= 2) wait(fetch, stores[b - 2]);
    wait(task, fetch, kWholeTask, segment);
    stores.push_back(add(TaskKind::kStore, store_body, step));
    wait(stores.back(), task, segment);
    return fetch;
  };
  for (std::size_t b = 0; b < kind.buckets.size(); ++b) {
    if (!kind.fetch_state.empty()) around(b, kind.fetch_state[b], kind.store_state[b], states);
    if (kind.fetch_parameter.empty()) continue;
    const int fetch = around(b, kind.fetch_parameter[b], kind.store_parameter[b], parameters);
    if (b < 2) wait(fetch, last_gather(b));
  }
}

}  // namespace trivium::program
