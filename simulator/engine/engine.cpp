#include "simulator/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <span>
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
  std::int32_t first = 0, size = 0;  // in members_, in order of stage
  std::int32_t expected = 0;
  std::int32_t ready = 0;  // members that could start
  bool complete() const { return ready >= expected; }
};

/// A lane of a stage: what runs, what comes next.
struct LaneState {
  bool busy = false;
  bool ordered = true;
  std::size_t next = 0;  // ordered: place in Flow::lane_order
  // Unordered: (ready time, node), ascending, of what nobody's readiness is missing for.
  std::vector<std::pair<std::int64_t, std::int32_t>> ready;
};

/// An end of work. Only ends are events: starts follow from them at once. Ties are broken by the order of starts, so
/// that the same input plays the same way.
struct End {
  std::int64_t time;
  std::int64_t sequence;
  NodeRef at;
  std::int32_t meeting;  // kNone: of one node alone
  bool operator>(const End& other) const { return time != other.time ? time > other.time : sequence > other.sequence; }
};

class Player {
 public:
  /// `spans`: keep them; without, tasks of which nothing waits for a part are played whole.
  Player(const CostedProgram& costed, Granularity granularity, bool spans)
      : program_(*costed.program), keeps_spans_(spans) {
    const bool merge = !costed.asynchronous_lanes;
    for (const program::Role& role : program_.roles) {
      auto& bodies = bodies_.emplace_back(program_.bodies.size());
      const auto& times = costed.op_ps[static_cast<std::size_t>(role.stage)];
      for (std::size_t b = 0; b < times.size(); ++b) {
        if (!times[b].empty()) bodies[b] = make_steps(program_.bodies[b], times[b], granularity, merge);
      }
    }
    for (std::size_t s = 0; s < program_.roles.size(); ++s) {
      auto& whole = whole_.emplace_back();
      if (!keeps_spans_) {
        for (const StepBody& body : bodies_[s]) whole.push_back(merged(body));
      }
      flows_.push_back(make_flow(program_.roles[s], bodies_[s], whole));
      lanes_.emplace_back(program::kLanes);
      for (std::size_t lane = 0; lane < program::kLanes; ++lane) {
        lanes_.back()[lane].ordered = !program_.roles[s].order.empty() || static_cast<Lane>(lane) == Lane::kCompute;
      }
      arrivals_.emplace_back(flows_.back().task_of.size(), 0);
      spans_.emplace_back();
      if (keeps_spans_) spans_.back().reserve(flows_.back().task_of.size());
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
      if (end.meeting == kNone) {
        finish(end.at);
      } else {
        for (const NodeRef member : members_of(meetings_[static_cast<std::size_t>(end.meeting)])) finish(member);
      }
    }
    if (auto stuck = find_stuck(); !stuck.empty()) return edge::Error{edge::ErrorKind::kRuntime, stuck};
    Play result;
    result.makespan_ps = now_;
    result.stages = std::move(spans_);
    return result;
  }

 private:
  std::int32_t stages() const { return static_cast<std::int32_t>(flows_.size()); }
  Flow& flow_of(std::int32_t stage) { return flows_[static_cast<std::size_t>(stage)]; }
  const BodyStep& step_of(NodeRef at) { return flow_of(at.stage).step(at.node); }
  LaneState& lane_of(NodeRef at) {
    return lanes_[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(step_of(at).lane)];
  }
  std::int64_t& arrival_of(NodeRef at) {
    return arrivals_[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(at.node)];
  }
  std::int32_t& rendezvous_of(NodeRef at) { return flow_of(at.stage).rendezvous[static_cast<std::size_t>(at.node)]; }

  // Transfers meet by number; collectives that join stages by their place in each stage's sequence of that group.
  void find_rendezvous() {
    std::map<std::pair<program::Group, std::int64_t>, std::int32_t> collectives;
    std::vector<std::int32_t> transfers;  // by number
    std::vector<NodeRef> joint;
    for (std::int32_t s = 0; s < stages(); ++s) {
      std::map<program::Group, std::int64_t> counts;
      Flow& flow = flow_of(s);
      for (std::int32_t n = 0; n < static_cast<std::int32_t>(flow.task_of.size()); ++n) {
        const BodyStep& step = flow.step(n);
        if (!step.joint) continue;
        const program::Task& task = task_at({s, n});
        std::int32_t* known = nullptr;
        if (task.transfer >= 0) {
          const auto number = static_cast<std::size_t>(task.transfer);
          if (number >= transfers.size()) transfers.resize(number + 1, kNone);
          known = &transfers[number];
        } else {
          known = &collectives.try_emplace({step.group, counts[step.group]++}, kNone).first->second;
        }
        if (*known == kNone) {
          *known = static_cast<std::int32_t>(meetings_.size());
          meetings_.emplace_back();
        }
        ++meetings_[static_cast<std::size_t>(*known)].size;
        flow.rendezvous[static_cast<std::size_t>(n)] = *known;
        joint.push_back({s, n});
      }
    }
    std::int32_t first = 0;
    for (Rendezvous& meeting : meetings_) {
      meeting.first = first;
      first += meeting.size;
      meeting.size = 0;
    }
    members_.resize(joint.size());
    for (const NodeRef at : joint) {
      Rendezvous& meeting = meetings_[static_cast<std::size_t>(rendezvous_of(at))];
      members_[static_cast<std::size_t>(meeting.first + meeting.size++)] = at;
    }
    for (Rendezvous& meeting : meetings_) {
      const NodeRef one = members_[static_cast<std::size_t>(meeting.first)];
      const bool transfer = step_of(one).group == program::Group::kPipeline;
      meeting.expected = transfer ? 2 : meeting.size;
      if (!transfer && meeting.size == 1) rendezvous_of(one) = kNone;
    }
  }

  const program::Task& task_at(NodeRef at) {
    const Flow& flow = flow_of(at.stage);
    return flow.role->tasks[static_cast<std::size_t>(flow.task_of[static_cast<std::size_t>(at.node)])];
  }
  std::span<const NodeRef> members_of(const Rendezvous& r) const {
    return std::span(members_).subspan(static_cast<std::size_t>(r.first), static_cast<std::size_t>(r.size));
  }

  void became_ready(NodeRef at) {
    if (!lane_of(at).ordered) {
      arrival_of(at) = now_;
      const std::int32_t meeting = rendezvous_of(at);
      if (meeting == kNone) {
        enlist(at);
      } else {
        Rendezvous& r = meetings_[static_cast<std::size_t>(meeting)];
        if (++r.ready == r.expected) {
          for (const NodeRef member : members_of(r)) enlist(member);
        }
      }
    }
    advance(at.stage, step_of(at).lane);
  }

  void enlist(NodeRef at) {
    auto& ready = lane_of(at).ready;
    const std::pair entry(arrival_of(at), at.node);
    ready.insert(std::lower_bound(ready.begin(), ready.end(), entry), entry);
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
    arrival_of(at) = now_;
    const std::int32_t meeting = rendezvous_of(at);
    if (meeting == kNone) return begin(at);
    Rendezvous& r = meetings_[static_cast<std::size_t>(meeting)];
    ++r.ready;
    if (r.complete()) meet(r);
  }

  void advance_by_readiness(std::int32_t stage, LaneState& lane) {
    for (std::size_t i = 0; i < lane.ready.size(); ++i) {
      const NodeRef at{stage, lane.ready[i].second};
      const std::int32_t meeting = rendezvous_of(at);
      if (meeting == kNone) {
        lane.ready.erase(lane.ready.begin() + static_cast<std::ptrdiff_t>(i));
        lane.busy = true;
        arrival_of(at) = now_;
        return begin(at);
      }
      const Rendezvous& r = meetings_[static_cast<std::size_t>(meeting)];
      const auto members = members_of(r);
      if (std::any_of(members.begin(), members.end(), [&](NodeRef m) { return lane_of(m).busy; })) continue;
      for (const NodeRef member : members) {
        LaneState& other = lane_of(member);
        std::erase(other.ready, std::pair(arrival_of(member), member.node));
        other.busy = true;
        arrival_of(member) = now_;
      }
      return meet(r);
    }
  }

  // All members begin now and end together; the slowest of their durations holds.
  void meet(const Rendezvous& r) {
    std::int64_t longest = 0;
    for (const NodeRef member : members_of(r)) longest = std::max(longest, step_of(member).ps);
    const std::int64_t sequence = sequence_++;
    for (const NodeRef member : members_of(r)) note(member, longest, sequence);
    ends_.push({now_ + longest, ends_pushed_++, {}, static_cast<std::int32_t>(&r - meetings_.data())});
  }

  void begin(NodeRef at) {
    const std::int64_t ps = step_of(at).ps;
    note(at, ps, sequence_++);
    ends_.push({now_ + ps, ends_pushed_++, at, kNone});
  }

  void note(NodeRef at, std::int64_t ps, std::int64_t sequence) {
    if (!keeps_spans_) return;
    const BodyStep& step = step_of(at);
    Span span;
    span.start_ps = arrival_of(at);
    span.task = flow_of(at.stage).task_of[static_cast<std::size_t>(at.node)];
    span.segment = step.segment;
    span.op = step.op;
    span.lane = step.lane;
    span.begin_ps = now_;
    span.end_ps = now_ + ps;
    span.sequence = sequence;
    spans_[static_cast<std::size_t>(at.stage)].push_back(span);
  }

  void finish(NodeRef at) {
    Flow& flow = flow_of(at.stage);
    const BodyStep& step = step_of(at);
    lane_of(at).busy = false;
    ++finished_;
    const auto task = static_cast<std::size_t>(flow.task_of[static_cast<std::size_t>(at.node)]);
    for (const std::int32_t next : step.next) release({at.stage, flow.first[task] + next});
    if (--flow.left[static_cast<std::size_t>(flow.first_left[task] + step.segment)] == 0) {
      const bool whole = --flow.segments_left[task] == 0;
      for (const Flow::Waiter& waiter : flow.waiters_of(task)) {
        const bool open = waiter.segment == step.segment || (waiter.segment == program::kWholeTask && whole);
        if (open) release_segment(at.stage, waiter);
      }
    }
    advance(at.stage, step.lane);
  }

  void release_segment(std::int32_t stage, const Flow::Waiter& waiter) {
    Flow& flow = flow_of(stage);
    const StepBody& body = *flow.bodies[static_cast<std::size_t>(waiter.task)];
    const auto before = static_cast<std::size_t>(waiter.before);
    const std::int32_t begin = flow.first[static_cast<std::size_t>(waiter.task)] + body.segment_begin[before];
    for (std::int32_t i = 0; i < body.segment_steps[before]; ++i) release({stage, begin + i});
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
      const Rendezvous& r = meetings_[m];
      if (r.ready == 0 || r.complete()) continue;
      const NodeRef one = members_of(r).front();
      text += fmt::format(" {} of stage {} task {} ({}) has {} of {} members;", name_of(step_of(one).group), one.stage,
                          flow_of(one.stage).task_of[static_cast<std::size_t>(one.node)], describe(task_at(one)),
                          r.ready, r.expected);
      ++named;
    }
    return text;
  }

  const program::Program& program_;
  bool keeps_spans_;
  std::vector<std::vector<StepBody>> bodies_;
  std::vector<std::vector<std::optional<StepBody>>> whole_;
  std::vector<Flow> flows_;
  std::vector<std::vector<LaneState>> lanes_;
  std::vector<std::vector<std::int64_t>> arrivals_;  // by node: when it could start
  std::vector<std::vector<Span>> spans_;             // in order of sequence
  std::vector<Rendezvous> meetings_;
  std::vector<NodeRef> members_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t now_ = 0, sequence_ = 0, ends_pushed_ = 0, finished_ = 0;
};

}  // namespace

edge::Result<Play> play(const CostedProgram& costed, Granularity granularity) {
  return Player(costed, granularity, true).play();
}

edge::Result<std::int64_t> play_makespan(const CostedProgram& costed) {
  const edge::Result<Play> played = Player(costed, Granularity::kSegment, false).play();
  if (!played) return played.error();
  return played.value().makespan_ps;
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
