// Copies that offloaded activations, parameters and optimizer state add around the passes and the step of a stage.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "program/ir/program.h"

namespace trivium::program {

/// Writes the copies and their dependencies. A layer's activations are stored after its forward and fetched, a layer
/// ahead, for its backward, unless they are still in their slot; a bucket's state, and its parameters, are fetched
/// before its AdamW, two buckets ahead, and stored after it. Called while tasks are written, in pass order.
class OffloadTasks {
 public:
  OffloadTasks(const Program& program, Role& role) : program_(program), role_(role) {}

  /// Copies around the pass `task` (forward or backward), which was added last.
  void around_pass(int task);
  /// Copies around the optimizer step `task`, which was added last. `last_gather`: the task that used one of the two
  /// staging slots of parameters last; -1: none.
  void around_step(int task, const std::function<int(std::size_t)>& last_gather);

 private:
  /// What a slot holds and who last touched it.
  struct Slot {
    int task = -1;  // last pass that used it, and up to which of its segments
    std::int16_t segment = 0;
    int store = -1;                     // the store of that use, where it was a forward's
    std::pair<int, int> holds{-1, -1};  // micro-batch, layer
  };

  int add(TaskKind kind, int body, const Task& like);
  void wait(int task, int for_task, std::int16_t segment = kWholeTask, std::int16_t before = 0);
  void after_forward(int pass, int layer);
  void before_backward(int pass, int layer);
  const ChunkTemplate& kind_of(const Task& task) const;

  const Program& program_;
  Role& role_;
  std::map<std::pair<int, int>, Slot> slots_;        // by chunk and slot
  std::map<std::tuple<int, int, int>, int> stored_;  // the copy of a chunk's micro-batch and layer
};

}  // namespace trivium::program
