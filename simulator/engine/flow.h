// A stage's tasks unrolled into steps with counters: the engine's working form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/engine/costed_program.h"
#include "simulator/engine/engine.h"

namespace trivium::simulator {

/// One step of a body.
struct BodyStep {
  program::Lane lane{};
  std::int32_t segment = 0;
  std::int32_t op = -1;
  std::int64_t ps = 0;
  bool joint = false;              ///< a collective that joins stages, or an end of a transfer
  program::Group group{};          ///< of a joint step
  std::vector<std::int32_t> next;  ///< steps of the body that wait for this one (other lanes)
  std::int32_t waits = 0;          ///< how many steps of the body it waits for
};

/// A body as steps, those of one segment side by side. `segment_steps[s]`: how many steps segment s has.
struct StepBody {
  std::vector<BodyStep> steps;
  std::vector<std::int32_t> segment_steps;
  std::vector<std::int32_t> segment_begin;  ///< by segment: its first step
  bool beside = false;  ///< collectives of gathers and reductions alone: they run when they are ready
};

/// Steps of a body with a stage's durations. `merge_lanes`: everything but transfers on the compute lane.
StepBody make_steps(const program::Body& body, const std::vector<std::int64_t>& op_ps, Granularity granularity,
                    bool merge_lanes);

/// The same with all segments in one step on the compute lane; nothing where they run on several lanes or have to be
/// seen one by one.
std::optional<StepBody> merged(const StepBody& by_segment);

/// (task, step) of a stage as one number.
struct Flow {
  struct Waiter {
    std::int32_t segment;  // of the awaited task, or kWholeTask
    std::int32_t task;
    std::int32_t before;
  };
  const program::Role* role = nullptr;
  std::vector<const StepBody*> bodies;     // by task
  std::vector<std::int32_t> first;         // by task: its first node
  std::vector<std::int32_t> task_of;       // by node
  std::vector<std::int32_t> pending;       // by node: what it still waits for
  std::vector<std::int32_t> first_waiter;  // by task, and one more: its range of `waiters`
  std::vector<Waiter> waiters;
  std::vector<std::int32_t> first_left;     // by task: its first segment in `left`
  std::vector<std::int32_t> left;           // by segment of every task: steps left
  std::vector<std::int32_t> segments_left;  // by task
  std::vector<std::int32_t> rendezvous;     // by node; -1: none
  std::vector<std::vector<std::int32_t>>
      lane_order;  // by lane: nodes in order; empty lanes of unordered programs: by readiness

  std::span<const Waiter> waiters_of(std::size_t task) const {
    const auto begin = static_cast<std::size_t>(first_waiter[task]),
               end = static_cast<std::size_t>(first_waiter[task + 1]);
    return std::span(waiters).subspan(begin, end - begin);
  }
  const BodyStep& step(std::int32_t node) const {
    const auto task = static_cast<std::size_t>(task_of[static_cast<std::size_t>(node)]);
    return bodies[task]->steps[static_cast<std::size_t>(node - first[task])];
  }
};

/// `bodies`: steps of every body of the program that the stage runs. `whole`: by body, what stands for a task of which
/// nothing waits for a part; empty: nothing does.
Flow make_flow(const program::Role& role, const std::vector<StepBody>& bodies,
               const std::vector<std::optional<StepBody>>& whole = {});

}  // namespace trivium::simulator
