// All tasks of all stages unrolled into steps with counters, side by side in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/schedule/step_body.h"

namespace trivium::simulator {

/// One step of one task of one stage. Nodes of a task lie together, as do those of a stage.
struct Node {
  const BodyStep* step = nullptr;
  std::int64_t arrival = 0;      ///< when it could start
  std::int32_t pending = 0;      ///< what it still waits for
  std::int32_t rendezvous = -1;  ///< -1: it joins nobody
  std::int32_t task = 0;         ///< of its stage
  std::int16_t stage = 0;        ///< place of its role, which is the stage where replicas are alike
  bool whole = false;            ///< the only step of its task
};

/// Nodes [first, first + count), one segment of a task, that wait until `segment` of another has ended.
struct Waiter {
  std::int32_t first = 0, count = 0;
  std::int16_t segment = program::kWholeTask;
};

/// Tasks are numbered over all stages.
struct TaskGraph {
  std::vector<Node> nodes;
  std::vector<std::int32_t> first_task;    ///< by stage
  std::vector<std::int32_t> first_node;    ///< by task
  std::vector<std::int32_t> first_waiter;  ///< by task, and one more: its range of `waiters`
  std::vector<Waiter> waiters;
  std::vector<std::int32_t> first_left;     ///< by task: its first segment in `left`; not for tasks of one step
  std::vector<std::int32_t> left;           ///< by segment of tasks: steps left
  std::vector<std::int32_t> segments_left;  ///< by task
  std::vector<std::vector<std::int32_t>> lane_order;  ///< [stage * kLanes + lane]: nodes in order; empty: by readiness

  std::span<const Waiter> waiters_of(std::size_t task) const {
    const auto begin = static_cast<std::size_t>(first_waiter[task]),
               end = static_cast<std::size_t>(first_waiter[task + 1]);
    return std::span(waiters).subspan(begin, end - begin);
  }
};

/// What the tasks of a role are made of. `bodies`: steps of every body of the program that the role runs. `whole`: by
/// body, what replaces a task where nothing waits for a part of it; empty: nothing does. Both are referred to.
struct RoleBodies {
  std::vector<StepBody> bodies;
  std::vector<std::optional<StepBody>> whole;
};

/// `bodies`: by role.
TaskGraph make_task_graph(const std::vector<program::Role>& roles, const std::vector<RoleBodies>& bodies);

}  // namespace trivium::simulator
