#include "simulator/replay/replay_engine.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulator/replay/flows.h"

namespace trivium::simulator {
namespace {

enum class State : std::uint8_t { kQueued, kWaiting, kAtRendezvous, kDone };

/// A rank's place in one of its streams.
struct StreamCursor {
  const Instruction* next = nullptr;
  const Instruction* end = nullptr;
  std::int64_t ready = 0;    // the latest of what it has waited for so far; at a rendezvous: its arrival
  std::uint64_t drawn = 0;   // steps so far
  std::uint8_t missing = 0;  // streams whose signal it still needs
  std::uint8_t awaited = 0;
  State state = State::kQueued;
};

/// Signals of one stream of a rank to another: the times at which they were given, in a ring.
struct Signals {
  std::uint32_t given = 0, taken = 0;
  std::uint32_t first = 0, mask = 0;  // in Stage::times
};

/// A collective that members are arriving at.
struct OpenRendezvous {
  std::int32_t arrived = 0;
  std::int64_t time = 0, ps = 0;
};

class Stage {
 public:
  Stage(std::span<const InstructionStreams> streams_by_role, const ReplayTopology& topology, const Variation& variation,
        const std::vector<bool>& record)
      : streams_by_role_(streams_by_role), topology_(topology), variation_(variation), flows_(topology) {
    const auto actors = static_cast<std::size_t>(topology.actors());
    cursors_.resize(actors * kStreams);
    signals_.resize(actors * kStreams * kStreams);
    rendezvous_.resize(topology.communicators.size());
    simulated_.finish_ps.assign(actors, 0);
    simulated_.runs.resize(actors);
    std::uint32_t times = 0;
    for (std::size_t p = 0; p < actors; ++p) {
      const InstructionStreams& instructions = streams_by_role[static_cast<std::size_t>(topology.role[p])];
      for (std::size_t s = 0; s < kStreams; ++s) {
        StreamCursor& cursor = cursors_[p * kStreams + s];
        cursor.next = instructions.streams[s].data();
        cursor.end = cursor.next + instructions.streams[s].size();
        cursor.state = cursor.next == cursor.end ? State::kDone : State::kQueued;
        if (cursor.state == State::kQueued) cursor.missing = cursor.next->waits;
        if (record[p]) simulated_.runs[p][s].reserve(instructions.streams[s].size());
        for (std::size_t to = 0; to < kStreams; ++to) {
          const auto room = std::bit_ceil(static_cast<std::uint32_t>(instructions.in_flight[s][to]));
          signals_[(p * kStreams + s) * kStreams + to] = {0, 0, times, room - 1};
          if (instructions.in_flight[s][to] > 0) times += room;
        }
      }
    }
    times_.resize(times);
    record_.assign(record.begin(), record.end());
  }

  ReplayOutcome run(const std::stop_token& stop) {
    int stretches = 0;
    const auto gives_up = [&] { return ++stretches % kStretchesBetweenLooks == 0 && stop.stop_requested(); };
    for (std::int32_t at = static_cast<std::int32_t>(cursors_.size()) - 1; at >= 0; --at) {
      if (cursor(at).state == State::kQueued) runnable_.push_back(at);
    }
    for (;;) {
      while (!runnable_.empty()) {
        const std::int32_t at = runnable_.back();
        runnable_.pop_back();
        if (gives_up()) return cancelled();
        run(at);
      }
      if (flows_.idle()) break;
      if (gives_up()) return cancelled();
      if (const auto ended = flows_.next()) leave(*ended);
    }
    for (const std::int64_t finish : simulated_.finish_ps)
      simulated_.makespan_ps = std::max(simulated_.makespan_ps, finish);
    for (std::int32_t at = 0; at < static_cast<std::int32_t>(cursors_.size()); ++at) {
      const StreamCursor& c = cursor(at);
      if (c.state == State::kDone) continue;
      const InstructionStreams& instructions =
          streams_by_role_[static_cast<std::size_t>(topology_.role[static_cast<std::size_t>(at / kStreams)])];
      const auto first = instructions.streams[static_cast<std::size_t>(at % kStreams)].data();
      simulated_.blocked.push_back({at / kStreams, at % kStreams, static_cast<std::int32_t>(c.next - first),
                                    c.state == State::kAtRendezvous ? -1 : std::int32_t{c.awaited}});
    }
    return std::move(simulated_);
  }

 private:
  ReplayOutcome cancelled() {
    simulated_.cancelled = true;
    return std::move(simulated_);
  }
  StreamCursor& cursor(std::int32_t at) { return cursors_[static_cast<std::size_t>(at)]; }
  const Step& step_of(std::int32_t at) {
    const auto role = static_cast<std::size_t>(topology_.role[static_cast<std::size_t>(at / kStreams)]);
    return streams_by_role_[role].steps[static_cast<std::size_t>(cursor(at).next->first_step)];
  }

  // As far as this stream of this rank can go without the others.
  void run(std::int32_t at) {
    StreamCursor& c = cursor(at);
    while (take_signals(at, c)) {
      const Instruction& in = *c.next;
      if (in.rendezvous != RendezvousKind::kNone) {
        c.state = State::kAtRendezvous;
        arrive(at, c, in);
        return;
      }
      const std::int64_t begin = c.ready, ps = duration(at, c, in);
      if (topology_.cores >= 0 && flows_.enter({FlowKind::kWork, at, 0}, begin, ps, 0)) {
        c.state = State::kAtRendezvous;  // until its turns on a core are over
        return;
      }
      pass(at, c, begin, begin + ps);
      if (c.state == State::kDone) return;
    }
  }

  // Whether all the signals that the next instruction waits for have come; takes those that have.
  bool take_signals(std::int32_t at, StreamCursor& c) {
    const std::int32_t base = at / kStreams * kStreams, stream = at % kStreams;
    while (c.missing != 0) {
      const int from = std::countr_zero(c.missing);
      Signals& s = signals_[static_cast<std::size_t>((base + from) * kStreams + stream)];
      if (s.given == s.taken) {
        c.state = State::kWaiting;
        c.awaited = static_cast<std::uint8_t>(from);
        return false;
      }
      c.ready = std::max(c.ready, times_[s.first + (s.taken++ & s.mask)]);
      c.missing = static_cast<std::uint8_t>(c.missing & (c.missing - 1));
    }
    return true;
  }

  std::int64_t duration(std::int32_t at, const StreamCursor& c, const Instruction& in) const {
    const auto actor = static_cast<std::size_t>(at / kStreams);
    const double device = variation_.device.empty() ? 1.0 : variation_.device[actor];
    if (variation_.jitter == 0 && device == 1.0) return in.ps;
    const Draws draws(variation_.seed, static_cast<std::uint32_t>(topology_.rank[actor]),
                      static_cast<std::uint32_t>(at % kStreams));
    const Step* step = streams_by_role_[static_cast<std::size_t>(topology_.role[actor])].steps.data() + in.first_step;
    std::int64_t ps = 0;
    for (std::uint64_t i = 0; i < in.steps; ++i, ++step) ps += varied(*step, variation_, draws, c.drawn + i, device);
    return ps;
  }

  // The instruction at the cursor took place: its signals go out, the next one is up.
  void pass(std::int32_t at, StreamCursor& c, std::int64_t begin, std::int64_t end) {
    const auto actor = static_cast<std::size_t>(at / kStreams);
    if (record_[actor] != 0)
      simulated_.runs[actor][static_cast<std::size_t>(at % kStreams)].push_back({c.ready, begin, end});
    simulated_.finish_ps[actor] = std::max(simulated_.finish_ps[actor], end);
    for (unsigned to = c.next->signals; to != 0; to &= to - 1) signal(at, std::countr_zero(to), end);
    c.drawn += c.next->steps;
    c.ready = end;
    if (++c.next == c.end) {
      c.state = State::kDone;
    } else {
      c.missing = c.next->waits;
    }
  }

  void signal(std::int32_t at, int to, std::int64_t time) {
    Signals& s = signals_[static_cast<std::size_t>(at * kStreams + to)];
    times_[s.first + (s.given++ & s.mask)] = time;
    const std::int32_t other = at / kStreams * kStreams + to;
    StreamCursor& c = cursor(other);
    if (c.state == State::kWaiting && c.awaited == at % kStreams) enqueue(other);
  }

  void enqueue(std::int32_t at) {
    cursor(at).state = State::kQueued;
    runnable_.push_back(at);
  }

  double link_factor(std::int32_t actor) const {
    return variation_.link.empty() ? 1.0 : variation_.link[static_cast<std::size_t>(actor)];
  }

  void arrive(std::int32_t at, StreamCursor& c, const Instruction& in) {
    const std::int32_t actor = at / kStreams;
    const double slow = link_factor(actor);
    const std::int64_t ps = slow == 1.0 ? in.ps : std::llround(static_cast<double>(in.ps) * slow);
    if (in.rendezvous == RendezvousKind::kCopy)
      return meet({FlowKind::kCopy, at, in.partner}, c.ready, ps, step_of(at).wire);
    if (in.rendezvous == RendezvousKind::kCollective) {
      const auto id = topology_.communicator[static_cast<std::size_t>(actor * topology_.channels + in.partner)];
      OpenRendezvous& rendezvous = rendezvous_[static_cast<std::size_t>(id)];
      rendezvous.time = std::max(rendezvous.time, c.ready);
      rendezvous.ps = std::max(rendezvous.ps, ps);
      if (++rendezvous.arrived < topology_.communicators[static_cast<std::size_t>(id)].size) return;
      const OpenRendezvous full = rendezvous;
      rendezvous = {};
      const Step& step = step_of(at);
      return meet({step.exchange ? FlowKind::kExchange : FlowKind::kCollective, at, id}, full.time, full.ps, step.wire);
    }
    const std::int32_t role = topology_.role[static_cast<std::size_t>(actor)];
    const std::int32_t peer = topology_.peer(actor, in.peer_role);
    const std::int32_t there = peer * kStreams + at % kStreams;
    const StreamCursor& other = cursor(there);
    const bool waits = other.state == State::kAtRendezvous && other.next->rendezvous == RendezvousKind::kTransfer &&
                       other.next->partner == in.partner && other.next->peer_role == role && there != at;
    if (!waits) return;
    const double other_slow = link_factor(peer);
    const std::int64_t other_ps = std::llround(static_cast<double>(other.next->ps) * other_slow);
    const bool outward = step_of(at).sends;
    const FlowParty party{FlowKind::kTransfer, outward ? at : there, outward ? there : at};
    meet(party, std::max(c.ready, other.ready), std::max(ps, other_ps), step_of(at).wire);
  }

  // Everybody is there: over links of their own they know when they end; shared links are shared in order of time.
  void meet(const FlowParty& party, std::int64_t begin, std::int64_t ps, double wire) {
    ++simulated_.rendezvous;
    if (topology_.cores >= 0) ps += topology_.wake_up_ps;
    if (flows_.enter(party, begin, ps, wire)) {
      ++simulated_.flows;
    } else {
      leave({party, begin, begin + ps});
    }
  }

  void leave(const FlowEnd& end) {
    const auto go_on = [&](std::int32_t at) {
      StreamCursor& c = cursor(at);
      pass(at, c, end.begin, end.end);
      if (c.state != State::kDone) enqueue(at);
    };
    if (end.party.kind == FlowKind::kCollective || end.party.kind == FlowKind::kExchange) {
      const Communicator& all = topology_.communicators[static_cast<std::size_t>(end.party.other)];
      const std::int32_t stream = end.party.at % kStreams;
      for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
        go_on(topology_.members[static_cast<std::size_t>(i)] * kStreams + stream);
      }
      return;
    }
    go_on(end.party.at);
    if (end.party.kind == FlowKind::kTransfer) go_on(end.party.other);
  }

  std::span<const InstructionStreams> streams_by_role_;
  const ReplayTopology& topology_;
  const Variation& variation_;
  Flows flows_;
  std::vector<StreamCursor> cursors_;       // [actor * kStreams + stream]
  std::vector<Signals> signals_;            // [(actor * kStreams + from) * kStreams + to]
  std::vector<std::int64_t> times_;         // rings of all signals
  std::vector<OpenRendezvous> rendezvous_;  // by communicator: in-order streams have at most one under way
  std::vector<std::int32_t> runnable_;
  std::vector<char> record_;
  ReplayOutcome simulated_;
};

}  // namespace

std::int64_t varied(const Step& step, const Variation& variation, const Draws& draws, std::uint64_t n, double device) {
  if (!step.computes) return step.ps;
  return std::llround(static_cast<double>(step.ps) * (1 + variation.jitter * draws.at(n)) * device);
}

ReplayOutcome run_replay(std::span<const InstructionStreams> streams_by_role, const ReplayTopology& topology,
                         const Variation& variation, const std::vector<bool>& record, const std::stop_token& stop) {
  return Stage(streams_by_role, topology, variation, record).run(stop);
}

}  // namespace trivium::simulator
