#include "simulator/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "program/text.h"
#include "simulator/engine/flow.h"

namespace trivium::simulator {
namespace {

using program::Lane;

constexpr std::int32_t kNone = -1;

struct NodeRef {
  std::int32_t stage = 0;
  std::int32_t node = 0;
};

/// The members of one collective across stages, or the two ends of a transfer.
struct Rendezvous {
  std::vector<NodeRef> members;  // in order of stage
  std::int32_t ready = 0;        // members that could start
  std::string name;
};

/// A lane of a stage: what runs, what comes next.
struct LaneState {
  bool busy = false;
  bool ordered = true;
  std::size_t next = 0;                                   // ordered: place in Flow::lane_order
  std::set<std::pair<std::int64_t, std::int32_t>> ready;  // unordered: (ready time, node)
};

/// An end of work. Only ends are events: starts follow from them at once. Ties are broken by the order of starts, so
/// that the same input plays the same way.
struct End {
  std::int64_t time;
  std::int64_t sequence;
  NodeRef at;
  bool operator>(const End& other) const { return std::tie(time, sequence) > std::tie(other.time, other.sequence); }
};

class Player {
 public:
  Player(const CostedProgram& costed, Granularity granularity) : program_(*costed.program) {
    const bool merge = !costed.asynchronous_lanes;
    for (const program::Role& role : program_.roles) {
      auto& bodies = bodies_.emplace_back(program_.bodies.size());
      const auto& times = costed.op_ps[static_cast<std::size_t>(role.stage)];
      for (std::size_t b = 0; b < times.size(); ++b) {
        if (!times[b].empty()) bodies[b] = make_steps(program_.bodies[b], times[b], granularity, merge);
      }
    }
    for (std::size_t s = 0; s < program_.roles.size(); ++s) {
      flows_.push_back(make_flow(program_.roles[s], bodies_[s]));
      lanes_.emplace_back(program::kLanes);
      for (std::size_t lane = 0; lane < program::kLanes; ++lane) {
        lanes_.back()[lane].ordered = !program_.roles[s].order.empty() || static_cast<Lane>(lane) == Lane::kCompute;
      }
      spans_.emplace_back(flows_.back().task_of.size());
    }
    find_rendezvous();
  }

  edge::Result<Play> play() {
    for (std::int32_t s = 0; s < stages(); ++s) {
      Flow& flow = flow_of(s);
      for (std::int32_t n = 0; n < static_cast<std::int32_t>(flow.pending.size()); ++n) {
        if (flow.pending[static_cast<std::size_t>(n)] == 0) became_ready({s, n});
      }
    }
    while (!ends_.empty()) {
      const End end = ends_.top();
      ends_.pop();
      now_ = end.time;
      finish(end.at);
    }
    if (auto stuck = find_stuck(); !stuck.empty()) return edge::Error{edge::ErrorKind::kRuntime, stuck};
    Play result;
    result.makespan_ps = now_;
    for (auto& spans : spans_) {
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.sequence < b.sequence; });
      result.stages.push_back(std::move(spans));
    }
    return result;
  }

 private:
  std::int32_t stages() const { return static_cast<std::int32_t>(flows_.size()); }
  Flow& flow_of(std::int32_t stage) { return flows_[static_cast<std::size_t>(stage)]; }
  const BodyStep& step_of(NodeRef at) { return flow_of(at.stage).step(at.node); }
  LaneState& lane_of(NodeRef at) {
    return lanes_[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(step_of(at).lane)];
  }
  Span& span_of(NodeRef at) { return spans_[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(at.node)]; }
  std::int32_t& rendezvous_of(NodeRef at) { return flow_of(at.stage).rendezvous[static_cast<std::size_t>(at.node)]; }

  // Transfers meet by number; collectives that join stages by their place in each stage's sequence of that group.
  void find_rendezvous() {
    std::map<std::tuple<program::Group, std::int64_t>, std::int32_t> known;
    for (std::int32_t s = 0; s < stages(); ++s) {
      std::map<program::Group, std::int64_t> counts;
      Flow& flow = flow_of(s);
      for (std::int32_t n = 0; n < static_cast<std::int32_t>(flow.task_of.size()); ++n) {
        const BodyStep& step = flow.step(n);
        if (!step.joint) continue;
        const program::Task& task =
            flow.role->tasks[static_cast<std::size_t>(flow.task_of[static_cast<std::size_t>(n)])];
        const std::int64_t number = task.transfer >= 0 ? task.transfer : counts[step.group]++;
        const auto [at, fresh] = known.try_emplace({step.group, number}, static_cast<std::int32_t>(meetings_.size()));
        if (fresh) meetings_.push_back({{}, 0, fmt::format("{} {}", name_of(step.group), number)});
        meetings_[static_cast<std::size_t>(at->second)].members.push_back({s, n});
        flow.rendezvous[static_cast<std::size_t>(n)] = at->second;
      }
    }
    for (Rendezvous& meeting : meetings_) {
      const NodeRef first = meeting.members.front();
      const bool transfer = step_of(first).group == program::Group::kPipeline;
      if (!transfer && meeting.members.size() == 1) rendezvous_of(first) = kNone;
      expected_.push_back(transfer ? 2 : meeting.members.size());
    }
  }

  void became_ready(NodeRef at) {
    LaneState& lane = lane_of(at);
    if (!lane.ordered) {
      lane.ready.insert({now_, at.node});
      if (rendezvous_of(at) != kNone) ++meetings_[static_cast<std::size_t>(rendezvous_of(at))].ready;
    }
    advance(at.stage, step_of(at).lane);
  }

  void advance(std::int32_t stage, Lane which) {
    LaneState& lane = lanes_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(which)];
    if (lane.busy) return;
    lane.ordered ? advance_ordered(stage, which, lane) : advance_by_readiness(stage, lane);
  }

  // The head of an in-order lane starts when it is ready; at a rendezvous it holds its lane until the others arrive.
  void advance_ordered(std::int32_t stage, Lane which, LaneState& lane) {
    const auto& sequence = flow_of(stage).lane_order[static_cast<std::size_t>(which)];
    if (lane.next >= sequence.size()) return;
    const NodeRef at{stage, sequence[lane.next]};
    if (flow_of(stage).pending[static_cast<std::size_t>(at.node)] != 0) return;
    ++lane.next;
    lane.busy = true;
    span_of(at).start_ps = now_;
    const std::int32_t meeting = rendezvous_of(at);
    if (meeting == kNone) return begin(at);
    Rendezvous& r = meetings_[static_cast<std::size_t>(meeting)];
    if (static_cast<std::size_t>(++r.ready) < expected_[static_cast<std::size_t>(meeting)]) return;
    meet(r);
  }

  void advance_by_readiness(std::int32_t stage, LaneState& lane) {
    for (const auto& [since, node] : lane.ready) {
      const NodeRef at{stage, node};
      const std::int32_t meeting = rendezvous_of(at);
      if (meeting == kNone) {
        lane.ready.erase({since, node});
        lane.busy = true;
        span_of(at).start_ps = now_;
        return begin(at);
      }
      Rendezvous& r = meetings_[static_cast<std::size_t>(meeting)];
      if (static_cast<std::size_t>(r.ready) < expected_[static_cast<std::size_t>(meeting)]) continue;
      if (std::any_of(r.members.begin(), r.members.end(), [&](NodeRef m) { return lane_of(m).busy; })) continue;
      for (const NodeRef member : r.members) {
        LaneState& other = lane_of(member);
        std::erase_if(other.ready, [&](const auto& entry) { return entry.second == member.node; });
        other.busy = true;
        span_of(member).start_ps = now_;
      }
      return meet(r);
    }
  }

  // All members begin now and end together; the slowest of their durations holds.
  void meet(Rendezvous& r) {
    std::int64_t longest = 0;
    for (const NodeRef member : r.members) longest = std::max(longest, step_of(member).ps);
    const std::int64_t sequence = sequence_++;
    for (const NodeRef member : r.members) {
      note(member, longest, sequence);
    }
  }

  void begin(NodeRef at) { note(at, step_of(at).ps, sequence_++); }

  void note(NodeRef at, std::int64_t ps, std::int64_t sequence) {
    const BodyStep& step = step_of(at);
    Span& span = span_of(at);
    span.task = flow_of(at.stage).task_of[static_cast<std::size_t>(at.node)];
    span.segment = step.segment;
    span.op = step.op;
    span.lane = step.lane;
    span.begin_ps = now_;
    span.end_ps = now_ + ps;
    span.sequence = sequence;
    ends_.push({span.end_ps, ends_pushed_++, at});
  }

  void finish(NodeRef at) {
    Flow& flow = flow_of(at.stage);
    const BodyStep& step = step_of(at);
    lane_of(at).busy = false;
    ++finished_;
    const auto task = static_cast<std::size_t>(flow.task_of[static_cast<std::size_t>(at.node)]);
    for (const std::int32_t next : step.next) release({at.stage, flow.first[task] + next});
    if (--flow.left[task][static_cast<std::size_t>(step.segment)] == 0) {
      const bool whole = --flow.segments_left[task] == 0;
      for (const Flow::Waiter& waiter : flow.waiters[task]) {
        const bool open = waiter.segment == step.segment || (waiter.segment == program::kWholeTask && whole);
        if (open) release_segment(at.stage, waiter);
      }
    }
    advance(at.stage, step.lane);
  }

  void release_segment(std::int32_t stage, const Flow::Waiter& waiter) {
    Flow& flow = flow_of(stage);
    const StepBody& body = *flow.bodies[static_cast<std::size_t>(waiter.task)];
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
      if (body.steps[i].segment != waiter.before) continue;
      release({stage, flow.first[static_cast<std::size_t>(waiter.task)] + static_cast<std::int32_t>(i)});
    }
  }

  void release(NodeRef at) {
    if (--flow_of(at.stage).pending[static_cast<std::size_t>(at.node)] == 0) became_ready(at);
  }

  std::string find_stuck() {
    std::int64_t total = 0;
    for (const Flow& flow : flows_) total += static_cast<std::int64_t>(flow.task_of.size());
    if (finished_ == total) return "";
    std::string text =
        fmt::format("the simulation cannot proceed: {} of {} steps never ran;", total - finished_, total);
    int named = 0;
    for (std::int32_t s = 0; s < stages() && named < 4; ++s) {
      const auto& sequence = flow_of(s).lane_order[static_cast<std::size_t>(Lane::kCompute)];
      const LaneState& lane = lanes_[static_cast<std::size_t>(s)][static_cast<std::size_t>(Lane::kCompute)];
      if (lane.next >= sequence.size()) continue;
      const auto task = flow_of(s).task_of[static_cast<std::size_t>(sequence[lane.next])];
      text += fmt::format(" stage {} waits at task {} ({});", s, task,
                          describe(flow_of(s).role->tasks[static_cast<std::size_t>(task)]));
      ++named;
    }
    for (std::size_t m = 0; m < meetings_.size() && named < 8; ++m) {
      if (meetings_[m].ready == 0 || static_cast<std::size_t>(meetings_[m].ready) >= expected_[m]) continue;
      text += fmt::format(" {} has {} of {} members;", meetings_[m].name, meetings_[m].ready, expected_[m]);
      ++named;
    }
    return text;
  }

  const program::Program& program_;
  std::vector<std::vector<StepBody>> bodies_;
  std::vector<Flow> flows_;
  std::vector<std::vector<LaneState>> lanes_;
  std::vector<std::vector<Span>> spans_;
  std::vector<Rendezvous> meetings_;
  std::vector<std::size_t> expected_;  // members of every meeting
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t now_ = 0, sequence_ = 0, ends_pushed_ = 0, finished_ = 0;
};

}  // namespace

edge::Result<Play> play(const CostedProgram& costed, Granularity granularity) {
  return Player(costed, granularity).play();
}

edge::Result<program::Program> order(program::Program program, const hardware::Cluster& cluster) {
  for (program::Role& role : program.roles) role.order.clear();
  const CostedProgram costed = cost(program, cluster);
  edge::Result<Play> played = play(costed, Granularity::kSegment);
  if (!played) return played.error();
  for (std::size_t s = 0; s < program.roles.size(); ++s) {
    std::set<std::pair<std::int32_t, std::int32_t>> issued;
    // A host that computes while it issues (the CPU runtime) posts a transfer only between segments: what begins
    // together with a segment comes before it, or the partner would wait for that segment.
    std::vector<Span> spans = played.value().stages[s];
    const auto computes = [](const Span& span) { return span.lane == Lane::kCompute && span.end_ps > span.begin_ps; };
    std::stable_sort(spans.begin(), spans.end(), [&](const Span& a, const Span& b) {
      return std::pair(a.begin_ps, computes(a)) < std::pair(b.begin_ps, computes(b));
    });
    for (const Span& span : spans) {
      if (!issued.insert({span.task, span.segment}).second) continue;
      program.roles[s].order.push_back({span.task, static_cast<std::int16_t>(span.segment)});
    }
  }
  return program;
}

}  // namespace trivium::simulator
