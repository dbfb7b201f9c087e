#include "program/verify/verify_offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "program/ir/text.h"

namespace trivium::program {
namespace {

class OffloadChecker {
 public:
  OffloadChecker(const Program& program, const Role& role, std::vector<std::string>& problems)
      : program_(program), role_(role), problems_(problems) {
    for (std::size_t id = 0; id < role.tasks.size(); ++id) {
      const Task& task = role.tasks[id];
      if (task.kind == TaskKind::kFetch || task.kind == TaskKind::kStore) {
        copies_[{task.kind, task.chunk, task.micro_batch, task.body}] = static_cast<int>(id);
      }
    }
  }

  void check() {
    for (std::size_t id = 0; id < role_.tasks.size(); ++id) {
      const Task& task = role_.tasks[id];
      const ChunkTemplate& kind = kind_of(task);
      const bool forward = task.kind == TaskKind::kForward, backward = task.kind == TaskKind::kBackward;
      if (!kind.store_layer.empty() && (forward || backward)) {
        for (int i = 0; i < kind.layers; ++i) {
          forward ? check_forward(static_cast<int>(id), i) : check_backward(static_cast<int>(id), kind.layers - 1 - i);
        }
      }
      if (task.kind == TaskKind::kOptimizer) check_step(static_cast<int>(id));
    }
  }

 private:
  struct Slot {
    int task = -1;
    std::int16_t segment = 0;
    int store = -1;
    std::pair<int, int> holds{-1, -1};
  };

  const Task& task_at(int id) const { return role_.tasks[static_cast<std::size_t>(id)]; }

  const ChunkTemplate& kind_of(const Task& task) const {
    return program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(task.chunk)].kind)];
  }

  int copy_of(TaskKind kind, const Task& pass, int body) const {
    const auto found = copies_.find({kind, pass.chunk, pass.micro_batch, body});
    return found == copies_.end() ? -1 : found->second;
  }

  bool waits(int task, int for_task, std::int16_t segment, std::int16_t before) const {
    const auto& after = task_at(task).after;
    return std::any_of(after.begin(), after.end(), [&](const Dependency& d) {
      return d.task == for_task && d.before == before && (d.segment == segment || d.segment == kWholeTask);
    });
  }

  void say(int id, const std::string& what) {
    problems_.push_back(fmt::format("stage {} task {} ({}) {}", role_.stage, id, describe(task_at(id)), what));
  }

  void check_forward(int id, int layer) {
    const Task& pass = task_at(id);
    const ChunkTemplate& kind = kind_of(pass);
    const auto segment = static_cast<std::int16_t>(layer + (kind.embedding ? 1 : 0));
    Slot& slot = slots_[{pass.chunk, layer % 2}];
    if (slot.store >= 0 && !waits(id, slot.store, kWholeTask, segment)) {
      say(id,
          fmt::format("overwrites activations of layer {} that task {} still stores", slot.holds.second, slot.store));
    }
    const int store = copy_of(TaskKind::kStore, pass, kind.store_layer[static_cast<std::size_t>(layer)]);
    if (store < 0 || !waits(store, id, segment, 0)) {
      say(id, fmt::format("leaves activations of layer {} that nothing stores after it", layer));
    }
    slot = {id, segment, store, {pass.micro_batch, layer}};
  }

  void check_backward(int id, int layer) {
    const Task& pass = task_at(id);
    const ChunkTemplate& kind = kind_of(pass);
    const auto segment = static_cast<std::int16_t>(kind.layers - 1 - layer + kind.parts_at_end());
    Slot& slot = slots_[{pass.chunk, layer % 2}];
    const std::pair<int, int> wanted{pass.micro_batch, layer};
    if (slot.holds == wanted) {
      slot.task = id, slot.segment = segment;
      return;
    }
    const int fetch = copy_of(TaskKind::kFetch, pass, kind.fetch_layer[static_cast<std::size_t>(layer)]);
    if (fetch < 0 || !waits(id, fetch, kWholeTask, segment)) {
      say(id, fmt::format("does not wait for the activations of layer {}", layer));
    } else {
      const int store = copy_of(TaskKind::kStore, pass, kind.store_layer[static_cast<std::size_t>(layer)]);
      if (!waits(fetch, store, kWholeTask, 0)) say(fetch, "does not wait until they were stored");
      const bool free =
          waits(fetch, slot.task, slot.segment, 0) && (slot.store < 0 || waits(fetch, slot.store, kWholeTask, 0));
      if (slot.task >= 0 && !free) say(fetch, fmt::format("overwrites what task {} still uses", slot.task));
    }
    slot = {id, segment, -1, wanted};
  }

  void check_step(int id) {
    const Task& step = task_at(id);
    const ChunkTemplate& kind = kind_of(step);
    check_step(id, "state", kind.fetch_state, kind.store_state);
    check_step(id, "parameters", kind.fetch_parameter, kind.store_parameter);
  }

  void check_step(int id, const char* what, const std::vector<int>& fetches, const std::vector<int>& stores) {
    const Task& step = task_at(id);
    for (std::size_t b = 0; b < fetches.size(); ++b) {
      const auto segment = static_cast<std::int16_t>(b);
      const int fetch = copy_of(TaskKind::kFetch, step, fetches[b]);
      const int store = copy_of(TaskKind::kStore, step, stores[b]);
      if (fetch < 0 || !waits(id, fetch, kWholeTask, segment)) {
        say(id, fmt::format("does not wait for the {} of bucket {}", what, b));
      }
      if (store < 0 || !waits(store, id, segment, 0))
        say(id, fmt::format("does not give back the {} of bucket {}", what, b));
      if (b < 2 || fetch < 0) continue;
      const int before = copy_of(TaskKind::kStore, step, stores[b - 2]);
      if (!waits(fetch, before, kWholeTask, 0)) say(fetch, fmt::format("overwrites the {} of bucket {}", what, b - 2));
    }
  }

  const Program& program_;
  const Role& role_;
  std::vector<std::string>& problems_;
  std::map<std::tuple<TaskKind, int, int, int>, int> copies_;  // kind, chunk, micro-batch, body -> task
  std::map<std::pair<int, int>, Slot> slots_;                  // by chunk and slot
};

}  // namespace

void check_offload(const Program& program, std::vector<std::string>& problems) {
  for (const Role& role : program.roles) OffloadChecker(program, role, problems).check();
}

}  // namespace trivium::program
