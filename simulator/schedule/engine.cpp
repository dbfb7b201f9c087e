#include "simulator/schedule/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "program/ir/text.h"
#include "simulator/schedule/end_queue.h"
#include "simulator/schedule/task_graph.h"

namespace trivium::simulator {
namespace {

using program::Lane;

constexpr std::int32_t kNone = -1;

/// The members of one collective across roles, or the two ends of a transfer.
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
  bool chooses = false;                // it is among ListScheduler::choosing_
  const std::int32_t* next = nullptr;  // ordered: in TaskGraph::lane_order
  const std::int32_t* end = nullptr;
  // Unordered: (ready time, node), ascending, of what nobody's readiness is missing for.
  std::vector<std::pair<std::int64_t, std::int32_t>> ready;
};

class ListScheduler {
 public:
  /// `spans`: keep them. Without, and without an order of their segments, tasks where nothing waits for a part are
  /// simulated whole.
  ListScheduler(const CostedProgram& costed, Granularity granularity, bool spans)
      : program_(*costed.program), keeps_spans_(spans) {
    const bool by_parts = spans || std::any_of(program_.roles.begin(), program_.roles.end(),
                                               [](const program::Role& role) { return !role.order.empty(); });
    const bool merge = !costed.asynchronous_lanes;
    for (const auto& times : costed.op_ps) {
      auto& [bodies, whole] = bodies_.emplace_back();
      bodies.resize(program_.bodies.size());
      const bool unlike_replicas = !program_.replica_kinds.empty();
      for (std::size_t b = 0; b < times.size(); ++b) {
        if (times[b].empty()) continue;
        bodies[b] = make_steps(program_.bodies[b], times[b], granularity, merge, unlike_replicas);
      }
      if (by_parts) continue;
      for (const StepBody& body : bodies) whole.push_back(merged(body));
    }
    graph_ = make_task_graph(program_.roles, bodies_);
    lanes_.resize(program_.roles.size() * program::kLanes);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      LaneState& lane = lanes_[i];
      const auto which = static_cast<Lane>(i % program::kLanes);
      lane.ordered = !program_.roles[i / program::kLanes].order.empty() || which == Lane::kCompute;
      lane.next = graph_.lane_order[i].data();
      lane.end = lane.next + graph_.lane_order[i].size();
    }
    spans_.resize(program_.roles.size());
    find_rendezvous();
  }

  base::Result<ListSchedule> run(const std::stop_token& stop) {
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph_.nodes.size()); ++n) {
      if (node(n).pending == 0) became_ready(n);
    }
    choose();
    while (!ends_.empty()) {
      if (++ended_ % kEndsBetweenLooks == 0 && stop.stop_requested()) return cancelled();
      const End end = ends_.pop();
      now_ = end.time;
      if (end.what >= 0) {
        finish(end.what);
      } else {
        for (const std::int32_t member : members_of(rendezvous_[static_cast<std::size_t>(~end.what)])) finish(member);
      }
      if (!choosing_.empty() && (ends_.empty() || ends_.earliest() != now_)) choose();
    }
    if (auto stuck = find_stuck(); !stuck.empty()) return base::Error{base::ErrorKind::kRuntime, stuck};
    ListSchedule result;
    result.makespan_ps = now_;
    result.stages = std::move(spans_);
    return result;
  }

 private:
  Node& node(std::int32_t n) { return graph_.nodes[static_cast<std::size_t>(n)]; }
  LaneState& lane_of(const Node& at) {
    return lanes_[static_cast<std::size_t>(at.stage) * program::kLanes + static_cast<std::size_t>(at.step->lane)];
  }
  const program::Task& task_at(const Node& at) const {
    return program_.roles[static_cast<std::size_t>(at.stage)].tasks[static_cast<std::size_t>(at.task)];
  }
  std::span<const std::int32_t> members_of(const Rendezvous& r) const {
    return std::span(members_).subspan(static_cast<std::size_t>(r.first), static_cast<std::size_t>(r.size));
  }

  // Transfers meet by number; collectives that join roles by their place in each role's sequence of that group.
  void find_rendezvous() {
    std::map<std::tuple<program::Group, int, int, std::int64_t>, std::int32_t> collectives;
    std::vector<std::map<program::Group, std::int64_t>> counts(program_.roles.size());
    std::vector<std::int32_t> transfers;  // by number
    std::vector<std::int32_t> joining;
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph_.nodes.size()); ++n) {
      Node& at = node(n);
      if (!at.step->rendezvous) continue;
      std::int32_t* known = nullptr;
      if (const std::int32_t transfer = task_at(at).transfer; transfer >= 0) {
        const auto number = static_cast<std::size_t>(transfer);
        if (number >= transfers.size()) transfers.resize(number + 1, kNone);
        known = &transfers[number];
      } else {
        const program::Group group = at.step->group;
        const std::int64_t place = counts[static_cast<std::size_t>(at.stage)][group]++;
        const program::Role& role = program_.roles[static_cast<std::size_t>(at.stage)];
        const int stage = joins_stages(group) ? kNone : role.stage;
        const int kind = joins_replicas(group) ? kNone : role.replica_kind;
        known = &collectives.try_emplace({group, stage, kind, place}, kNone).first->second;
      }
      if (*known == kNone) {
        *known = static_cast<std::int32_t>(rendezvous_.size());
        rendezvous_.emplace_back();
      }
      ++rendezvous_[static_cast<std::size_t>(*known)].size;
      at.rendezvous = *known;
      joining.push_back(n);
    }
    std::int32_t first = 0;
    for (Rendezvous& rendezvous : rendezvous_) {
      rendezvous.first = first;
      first += rendezvous.size;
      rendezvous.size = 0;
    }
    members_.resize(joining.size());
    for (const std::int32_t n : joining) {
      Rendezvous& rendezvous = rendezvous_[static_cast<std::size_t>(node(n).rendezvous)];
      members_[static_cast<std::size_t>(rendezvous.first + rendezvous.size++)] = n;
    }
    for (Rendezvous& rendezvous : rendezvous_) {
      Node& one = node(members_[static_cast<std::size_t>(rendezvous.first)]);
      const bool transfer = one.step->group == program::Group::kPipeline;
      rendezvous.expected = transfer ? 2 : rendezvous.size;
      if (!transfer && rendezvous.size == 1) one.rendezvous = kNone;
    }
  }

  void became_ready(std::int32_t n) {
    Node& at = node(n);
    LaneState& lane = lane_of(at);
    if (!lane.ordered) {
      // A pass waits for what gathers received parts, which goes before the transfers that are ready.
      at.arrival = at.step->lane == Lane::kPipeline && !at.step->rendezvous ? 0 : now_;
      if (at.rendezvous == kNone) {
        enlist(n);
      } else {
        Rendezvous& r = rendezvous_[static_cast<std::size_t>(at.rendezvous)];
        if (++r.ready == r.expected) {
          for (const std::int32_t member : members_of(r)) enlist(member);
        }
      }
    }
    advance(lane);
  }

  void enlist(std::int32_t n) {
    auto& ready = lane_of(node(n)).ready;
    const std::pair entry(node(n).arrival, n);
    ready.insert(std::lower_bound(ready.begin(), ready.end(), entry), entry);
  }

  void advance(LaneState& lane) {
    if (lane.busy) return;
    if (lane.ordered) return advance_ordered(lane);
    if (!lane.chooses) choosing_.push_back(static_cast<std::int32_t>(&lane - lanes_.data()));
    lane.chooses = true;
  }

  // Lanes that take what is ready choose when all that ends now has ended: what they choose depends on what is ready,
  // not on the turn in which it became so, nor on whether tasks are simulated whole.
  void choose() {
    std::sort(choosing_.begin(), choosing_.end());
    for (const std::int32_t lane : choosing_) {
      LaneState& at = lanes_[static_cast<std::size_t>(lane)];
      at.chooses = false;
      if (!at.busy) advance_by_readiness(at);
    }
    choosing_.clear();
  }

  // The head of an in-order lane starts when it is ready; at a rendezvous it holds its lane until the others arrive.
  void advance_ordered(LaneState& lane) {
    if (lane.next == lane.end) return;
    const std::int32_t n = *lane.next;
    Node& at = node(n);
    if (at.pending != 0) return;
    ++lane.next;
    lane.busy = true;
    at.arrival = now_;
    look_ahead(n);
    if (at.rendezvous == kNone) return begin(n);
    Rendezvous& r = rendezvous_[static_cast<std::size_t>(at.rendezvous)];
    ++r.ready;
    if (r.complete()) meet(r);
  }

  // Stages advance by turns, so that what a stage needs next has left the near caches by the time it does. Nodes of a
  // stage are needed about in order, and with each its waiters, its rendezvous and that one's members.
  void look_ahead(std::int32_t n) {
    constexpr std::size_t kFar = 14, kNear = 6;
    const std::size_t far = static_cast<std::size_t>(n) + kFar, near = static_cast<std::size_t>(n) + kNear;
    if (far + 2 >= graph_.nodes.size()) return;
    __builtin_prefetch(graph_.nodes.data() + far);
    __builtin_prefetch(graph_.nodes.data() + far + 2);
    const Node& soon = graph_.nodes[near];
    const auto task = static_cast<std::size_t>(graph_.first_task[static_cast<std::size_t>(soon.stage)] + soon.task);
    __builtin_prefetch(graph_.waiters.data() + graph_.first_waiter[task]);
    for (std::size_t i = near; i < near + 3; ++i) {
      const std::int32_t rendezvous = graph_.nodes[i].rendezvous;
      if (rendezvous == kNone) continue;
      __builtin_prefetch(rendezvous_.data() + rendezvous);
      __builtin_prefetch(members_.data() + std::min(static_cast<std::size_t>(rendezvous) * 2, members_.size()));
    }
  }

  void advance_by_readiness(LaneState& lane) {
    for (std::size_t i = 0; i < lane.ready.size(); ++i) {
      const std::int32_t n = lane.ready[i].second;
      Node& at = node(n);
      if (at.rendezvous == kNone) {
        lane.ready.erase(lane.ready.begin() + static_cast<std::ptrdiff_t>(i));
        lane.busy = true;
        at.arrival = now_;
        return begin(n);
      }
      const Rendezvous& r = rendezvous_[static_cast<std::size_t>(at.rendezvous)];
      const auto members = members_of(r);
      if (std::any_of(members.begin(), members.end(), [&](std::int32_t m) { return lane_of(node(m)).busy; })) continue;
      for (const std::int32_t member : members) {
        LaneState& other = lane_of(node(member));
        std::erase(other.ready, std::pair(node(member).arrival, member));
        other.busy = true;
        node(member).arrival = now_;
      }
      return meet(r);
    }
  }

  // All members begin now and end together; the slowest of their durations holds.
  void meet(const Rendezvous& r) {
    std::int64_t longest = 0;
    for (const std::int32_t member : members_of(r)) longest = std::max(longest, node(member).step->ps);
    const std::int64_t sequence = sequence_++;
    for (const std::int32_t member : members_of(r)) note(member, longest, sequence);
    ends_.push({now_ + longest, ends_pushed_++, ~static_cast<std::int32_t>(&r - rendezvous_.data())});
  }

  void begin(std::int32_t n) {
    const std::int64_t ps = node(n).step->ps;
    note(n, ps, sequence_++);
    ends_.push({now_ + ps, ends_pushed_++, n});
  }

  void note(std::int32_t n, std::int64_t ps, std::int64_t sequence) {
    if (!keeps_spans_) return;
    const Node& at = node(n);
    Span span;
    span.start_ps = at.arrival;
    span.task = at.task;
    span.segment = at.step->segment;
    span.op = at.step->op;
    span.lane = at.step->lane;
    span.begin_ps = now_;
    span.end_ps = now_ + ps;
    span.sequence = sequence;
    spans_[static_cast<std::size_t>(at.stage)].push_back(span);
  }

  void finish(std::int32_t n) {
    const Node at = node(n);
    LaneState& lane = lane_of(at);
    lane.busy = false;
    ++finished_;
    const auto task = static_cast<std::size_t>(graph_.first_task[static_cast<std::size_t>(at.stage)] + at.task);
    if (at.whole) {
      for (const Waiter& waiter : graph_.waiters_of(task)) release(waiter);
    } else {
      finish_part(at, task);
    }
    advance(lane);
  }

  void finish_part(const Node& at, std::size_t task) {
    const BodyStep& step = *at.step;
    for (const std::int32_t next : step.next) release(graph_.first_node[task] + next);
    if (--graph_.left[static_cast<std::size_t>(graph_.first_left[task] + step.segment)] != 0) return;
    const bool whole = --graph_.segments_left[task] == 0;
    for (const Waiter& waiter : graph_.waiters_of(task)) {
      const bool open = waiter.segment == step.segment || (waiter.segment == program::kWholeTask && whole);
      if (open) release(waiter);
    }
  }

  void release(const Waiter& waiter) {
    for (std::int32_t n = waiter.first; n < waiter.first + waiter.count; ++n) release(n);
  }

  void release(std::int32_t n) {
    if (--node(n).pending == 0) became_ready(n);
  }

  std::string find_stuck() {
    const auto total = static_cast<std::int64_t>(graph_.nodes.size());
    if (finished_ == total) return "";
    std::string text =
        fmt::format("the simulation cannot proceed: {} of {} steps never ran;", total - finished_, total);
    int named = 0;
    for (std::size_t s = 0; s < program_.roles.size() && named < 4; ++s) {
      const LaneState& lane = lanes_[s * program::kLanes + static_cast<std::size_t>(Lane::kCompute)];
      if (lane.next == lane.end) continue;
      const Node& at = node(*lane.next);
      text += fmt::format(" stage {} waits at task {} ({});", program_.roles[s].stage, at.task, describe(task_at(at)));
      ++named;
    }
    for (std::size_t m = 0; m < rendezvous_.size() && named < 8; ++m) {
      const Rendezvous& r = rendezvous_[m];
      if (r.ready == 0 || r.complete()) continue;
      const Node& one = node(members_of(r).front());
      text += fmt::format(" {} of stage {} task {} ({}) has {} of {} members;", name_of(one.step->group),
                          program_.roles[static_cast<std::size_t>(one.stage)].stage, one.task, describe(task_at(one)),
                          r.ready, r.expected);
      ++named;
    }
    return text;
  }

  const program::Program& program_;
  bool keeps_spans_;
  std::vector<RoleBodies> bodies_;
  TaskGraph graph_;
  std::vector<LaneState> lanes_;          // [stage * kLanes + lane]
  std::vector<std::vector<Span>> spans_;  // by stage, in order of sequence
  std::vector<Rendezvous> rendezvous_;
  std::vector<std::int32_t> members_;
  std::vector<std::int32_t> choosing_;  // lanes that are free and take what is ready
  EndQueue ends_;                       // `what`: a node, or ~rendezvous
  std::int64_t now_ = 0, sequence_ = 0, finished_ = 0, ended_ = 0;
  std::uint32_t ends_pushed_ = 0;
};

}  // namespace

base::Error cancelled() { return {base::ErrorKind::kInterrupted, "given up before it was simulated to its end"}; }

base::Result<ListSchedule> list_schedule(const CostedProgram& costed, Granularity granularity,
                                         const std::stop_token& stop) {
  return ListScheduler(costed, granularity, true).run(stop);
}

namespace {

base::Result<std::int64_t> makespan(const CostedProgram& costed, Granularity granularity) {
  const base::Result<ListSchedule> simulated = ListScheduler(costed, granularity, false).run({});
  if (!simulated) return simulated.error();
  return simulated.value().makespan_ps;
}

}  // namespace

base::Result<std::int64_t> list_schedule_makespan(const CostedProgram& costed) {
  return makespan(costed, Granularity::kSegment);
}

base::Result<std::int64_t> relaxed_makespan(const CostedProgram& ordered) {
  return makespan(ordered, Granularity::kRelaxedSegment);
}

base::Result<program::Program> order(program::Program program, const hardware::Cluster& cluster,
                                     const std::stop_token& stop) {
  if (stop.stop_requested()) return cancelled();
  for (program::Role& role : program.roles) role.order.clear();
  const CostedProgram costed = cost(program, cluster);
  base::Result<ListSchedule> simulated = list_schedule(costed, Granularity::kSegment, stop);
  if (!simulated) return simulated.error();
  issue_in_order_of(program, simulated.value());
  return program;
}

void issue_in_order_of(program::Program& program, ListSchedule& simulated) {
  for (std::size_t s = 0; s < program.roles.size(); ++s) {
    program::Role& role = program.roles[s];
    std::vector<std::int32_t> first;  // by task: its first segment in `issued`
    std::int32_t segments = 0;
    for (const program::Task& task : role.tasks) {
      first.push_back(segments);
      segments += static_cast<std::int32_t>(program.body_of(task).segments.size());
    }
    std::vector<char> issued(static_cast<std::size_t>(segments), 0);
    role.order.reserve(issued.size());
    // A host that computes while it issues (the CPU runtime) posts a transfer only between segments: what begins
    // together with a segment comes before it, or the partner would wait for that segment.
    std::vector<Span>& spans = simulated.stages[s];
    const auto computes = [](const Span& span) { return span.lane == Lane::kCompute && span.end_ps > span.begin_ps; };
    for (auto at = spans.begin(); at != spans.end();) {
      const auto later = std::find_if(at, spans.end(), [&](const Span& span) { return span.begin_ps > at->begin_ps; });
      if (later - at > 1) std::stable_partition(at, later, [&](const Span& span) { return !computes(span); });
      at = later;
    }
    for (const Span& span : spans) {
      char& done = issued[static_cast<std::size_t>(first[static_cast<std::size_t>(span.task)] + span.segment)];
      if (done == 0) role.order.push_back({span.task, static_cast<std::int16_t>(span.segment)});
      done = 1;
    }
  }
}

}  // namespace trivium::simulator
