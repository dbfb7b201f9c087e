#include "simulator/schedule/task_graph.h"

#include <algorithm>
#include <numeric>

#include "program/ir/turns.h"

namespace trivium::simulator {
namespace {

using program::Lane;

/// Appends one role's tasks to the graph.
class RoleWriter {
 public:
  RoleWriter(TaskGraph& graph, const program::Role& role, const RoleBodies& bodies)
      : graph_(graph), role_(role), bodies_(bodies), first_(graph.first_node.size()), tasks_(role.tasks.size()) {}

  void write() {
    graph_.first_task.push_back(static_cast<std::int32_t>(first_));
    look_at_dependencies();
    add_nodes();
    graph_.lane_order.resize(graph_.lane_order.size() + program::kLanes);
    role_.order.empty() ? order_by_schedule() : order_by_host();
  }

 private:
  const StepBody& body_of(std::size_t task) const { return *steps_[task]; }
  std::int32_t node_of(std::size_t task) const { return graph_.first_node[first_ + task]; }
  std::vector<std::int32_t>& order_of(Lane lane) {
    return graph_.lane_order[graph_.lane_order.size() - program::kLanes + static_cast<std::size_t>(lane)];
  }

  // Of which tasks parts matter, and how many wait for each.
  void look_at_dependencies() {
    std::vector<char> parts_matter(tasks_, bodies_.whole.empty() ? 1 : 0);
    auto& counts = graph_.first_waiter;  // of task t: at t + 1
    counts.resize(first_ + tasks_ + 1, 0);
    for (std::size_t t = 0; t < tasks_; ++t) {
      for (const program::Dependency& d : role_.tasks[t].after) {
        if (d.segment != program::kWholeTask) parts_matter[static_cast<std::size_t>(d.task)] = 1;
        if (d.before != 0) parts_matter[t] = 1;
        ++counts[first_ + static_cast<std::size_t>(d.task) + 1];
      }
    }
    const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(first_);
    std::partial_sum(begin, counts.end(), begin);
    graph_.waiters.resize(static_cast<std::size_t>(counts.back()));
    steps_.reserve(tasks_);
    for (std::size_t t = 0; t < tasks_; ++t) {
      const auto id = static_cast<std::size_t>(role_.tasks[t].body);
      const bool parts = parts_matter[t] != 0 || !bodies_.whole[id];
      steps_.push_back(parts ? &bodies_.bodies[id] : &*bodies_.whole[id]);
    }
  }

  void add_nodes() {
    auto filled = std::vector<std::int32_t>(graph_.first_waiter.begin() + static_cast<std::ptrdiff_t>(first_),
                                            graph_.first_waiter.end() - 1);
    waits_beside_.assign(tasks_, 0);
    for (std::size_t t = 0; t < tasks_; ++t) {
      const StepBody& body = body_of(t);
      const std::size_t first_node = graph_.nodes.size();
      graph_.first_node.push_back(static_cast<std::int32_t>(first_node));
      const bool whole = body.steps.size() == 1 && body.segment_steps.size() == 1;
      for (const BodyStep& step : body.steps) {
        Node& node = graph_.nodes.emplace_back();
        node.step = &step;
        node.pending = step.waits;
        node.task = static_cast<std::int32_t>(t);
        node.stage = static_cast<std::int16_t>(graph_.first_task.size() - 1);  // of its role
        node.whole = whole;
      }
      graph_.first_left.push_back(static_cast<std::int32_t>(graph_.left.size()));
      if (!whole) graph_.left.insert(graph_.left.end(), body.segment_steps.begin(), body.segment_steps.end());
      graph_.segments_left.push_back(static_cast<std::int32_t>(body.segment_steps.size()));
      for (const program::Dependency& d : role_.tasks[t].after) {
        const auto before = static_cast<std::size_t>(d.before), awaited = static_cast<std::size_t>(d.task);
        const std::int32_t begin = body.segment_begin[before], count = body.segment_steps[before];
        for (std::int32_t i = begin; i < begin + count; ++i)
          ++graph_.nodes[first_node + static_cast<std::size_t>(i)].pending;
        graph_.waiters[static_cast<std::size_t>(filled[awaited]++)] = {node_of(t) + begin, count, d.segment};
        if (body_of(awaited).beside) waits_beside_[t] = 1;
      }
    }
  }

  void order_by_host() {
    for (const program::Issue& issue : role_.order) {
      enter(static_cast<std::size_t>(issue.task), static_cast<std::size_t>(issue.segment), false);
    }
  }

  // Where gathers and reductions share the compute lane, each comes when the first segment that waits for it does.
  void order_by_schedule() {
    entered_.assign(tasks_, 0);
    const std::vector<std::int32_t> backward_beside = program::backwards_beside(role_);
    for (std::size_t t = 0; t < tasks_; ++t) {
      if (body_of(t).beside && !graph_.waiters_of(first_ + t).empty()) continue;
      if (role_.tasks[t].beside >= 0 || entered_[t] != 0) continue;  // has come with its forward
      if (const std::int32_t backward = backward_beside[t]; backward >= 0) {
        enter_pair(t, static_cast<std::size_t>(backward));
        continue;
      }
      for (std::size_t s = 0; s < body_of(t).segment_steps.size(); ++s) enter_with_awaited(t, s);
    }
  }

  // What the backward waits for and the forward does not, such as its gradient from tensor ranks of the next stage,
  // comes before both.
  void enter_pair(std::size_t forward, std::size_t backward) {
    for (const program::Dependency& d : role_.tasks[backward].after) {
      const auto awaited = static_cast<std::size_t>(d.task);
      if (awaited < forward || entered_[awaited] != 0 || body_of(awaited).beside) continue;
      entered_[awaited] = 1;
      for (std::size_t s = 0; s < body_of(awaited).segment_steps.size(); ++s) enter_with_awaited(awaited, s);
    }
    program::take_turns(body_of(backward).turns, body_of(forward).turns, [&](bool is_forward, std::int16_t segment) {
      enter_with_awaited(is_forward ? forward : backward, static_cast<std::size_t>(segment));
    });
  }

  void enter_with_awaited(std::size_t t, std::size_t s) {
    if (waits_beside_[t] != 0) {
      for (const program::Dependency& d : role_.tasks[t].after) {
        const auto awaited = static_cast<std::size_t>(d.task);
        if (static_cast<std::size_t>(d.before) != s || !body_of(awaited).beside || entered_[awaited] != 0) continue;
        entered_[awaited] = 1;
        for (std::size_t i = 0; i < body_of(awaited).segment_steps.size(); ++i) enter_with_awaited(awaited, i);
      }
    }
    enter(t, s, true);
  }

  void enter(std::size_t task, std::size_t segment, bool compute_only) {
    const StepBody& body = body_of(task);
    const std::int32_t begin = body.segment_begin[segment];
    for (std::int32_t i = begin; i < begin + body.segment_steps[segment]; ++i) {
      const Lane lane = body.steps[static_cast<std::size_t>(i)].lane;
      if (!compute_only || lane == Lane::kCompute) order_of(lane).push_back(node_of(task) + i);
    }
  }

  TaskGraph& graph_;
  const program::Role& role_;
  const RoleBodies& bodies_;
  std::size_t first_, tasks_;  // the role's tasks among all
  std::vector<const StepBody*> steps_;
  std::vector<char> waits_beside_;  // for a collective that runs when it is ready
  std::vector<char> entered_;
};

}  // namespace

TaskGraph make_task_graph(const std::vector<program::Role>& roles, const std::vector<RoleBodies>& bodies) {
  TaskGraph graph;
  graph.first_waiter.push_back(0);
  std::size_t tasks = 0, waiters = 0;
  for (const program::Role& role : roles) {
    tasks += role.tasks.size();
    for (const program::Task& task : role.tasks) waiters += task.after.size();
  }
  graph.nodes.reserve(tasks + tasks / 4);  // most tasks are one step
  graph.waiters.reserve(waiters);
  graph.first_node.reserve(tasks);
  graph.first_waiter.reserve(tasks + 1);
  graph.first_left.reserve(tasks);
  graph.segments_left.reserve(tasks);
  for (std::size_t s = 0; s < roles.size(); ++s) RoleWriter(graph, roles[s], bodies[s]).write();
  return graph;
}

}  // namespace trivium::simulator
