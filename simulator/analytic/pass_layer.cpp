#include "simulator/analytic/pass_layer.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "simulator/analytic/bus_load.h"
#include "simulator/cost/lanes.h"

namespace trivium::simulator {
namespace {

using program::Lane;

/// Whether `op` reads what `before` wrote, or writes what it read or wrote.
bool needs(const program::Op& op, const program::Op& before) {
  const auto meet = [](const auto& operands, const auto& others) {
    return std::any_of(operands.begin(), operands.end(), [&](std::int32_t b) {
      return b != program::kNoBuffer && std::find(others.begin(), others.end(), b) != others.end();
    });
  };
  return meet(op.in, before.out) || meet(op.out, before.out) || meet(op.out, before.in);
}

/// A collective on a lane of its own also waits for what had the memory of its result before. How that is laid out
/// differs between chunks of one layer and of several, or with a head: of these waits those for operands are left.
std::array<std::int32_t, program::kLanes - 1> waits_for_operands(const program::Op& op, const program::Body& body) {
  auto after = op.after;
  if (op.lane == Lane::kCompute) return after;
  for (std::int32_t& before : after) {
    const auto at = [&]() -> const program::Op& { return body.ops[static_cast<std::size_t>(before)]; };
    if (before < 0 || at().lane != Lane::kCompute) continue;
    while (before >= 0 && (at().lane != Lane::kCompute || !needs(op, at()))) --before;
  }
  return after;
}

PassBody body_of(const program::Program& program, int index) {
  PassBody body;
  if (index < 0) return body;
  const program::Body& whole = program.bodies[static_cast<std::size_t>(index)];
  body.ops.reserve(whole.ops.size());
  for (const program::Op& op : whole.ops) {
    body.ops.push_back({op.lane, op.kind, op.group, op.bytes, waits_for_operands(op, whole)});
  }
  for (const program::Segment& s : whole.segments) body.segments.push_back({s.begin, s.end, s.part, s.turn});
  return body;
}

std::array<int, PassLayer::kBodies> bodies_of(const program::ChunkTemplate& kind) {
  return {kind.forward, kind.backward, kind.backward_weights, kind.store_layer.empty() ? -1 : kind.store_layer.front()};
}

/// Segments of one part, which the host issues without waiting.
std::vector<std::pair<int, int>> ops_of_parts(const PassBody& body) {
  std::vector<std::pair<int, int>> parts;
  for (std::size_t s = 0; s < body.segments.size();) {
    const PassSegment& first = body.segments[s];
    int end = first.begin;
    for (; s < body.segments.size() && body.segments[s].part == first.part; ++s) end = body.segments[s].end;
    parts.emplace_back(first.begin, end);
  }
  return parts;
}

/// Of one body.
class PassReader {
 public:
  PassReader(const PassBody& body, const std::vector<std::int64_t>& times, int layer, BusLoad& bus, bool merge_lanes)
      : body_(body), times_(times), layer_(layer), bus_(bus), merge_lanes_(merge_lanes) {}

  PartTimes by_segment() const {
    PartTimes times;
    for (const PassSegment& s : body_.segments) add(times, of_layer(s), computed(s));
    return times;
  }

  // All segments of a part together.
  PartTimes by_part() const {
    PartTimes times;
    for (std::size_t s = 0; s < body_.segments.size();) {
      PassSegment part = body_.segments[s++];
      while (s < body_.segments.size() && body_.segments[s].part == part.part) part.end = body_.segments[s++].end;
      add(times, of_layer(part), computed(part));
    }
    return times;
  }

  PartTimes bus() const {
    PartTimes times;
    for (const PassSegment& s : body_.segments) add(times, of_layer(s), bus(s.begin, s.end));
    return times;
  }

  void add_exchanges(PartTimes& times) const {
    for (const PassSegment& s : body_.segments) add(times, of_layer(s), sum(s.begin, s.end, Lane::kExpert));
  }

  std::int64_t before_layer() const {
    std::int64_t sum = 0;
    for (const PassSegment& s : body_.segments) {
      if (s.part < static_cast<std::int16_t>(layer_)) sum += computed(s);
    }
    return sum;
  }

  std::int64_t whole(Lane lane) const { return sum(0, static_cast<int>(body_.ops.size()), lane); }
  std::int64_t whole_bus() const { return bus(0, static_cast<int>(body_.ops.size())); }

  // Those of the layer; none where others are in parts as well.
  std::vector<Turn> turns() const {
    std::vector<Turn> turns(1);
    const PassSegment* exchange = nullptr;  // that the next turn may wait for
    for (const PassSegment& s : body_.segments) {
      const bool exchanges = s.begin < s.end && lane_of(s.begin) == Lane::kExpert;
      if (!of_layer(s)) {
        if (s.turn || exchanges) return {};
        continue;
      }
      if (exchanges) {
        Turn& turn = turns.back();
        turn = {turn.before + turn.beside, waits_for_all_before(s) ? sum(s.begin, s.end, Lane::kExpert) : 0, 0};
        exchange = &s;
        continue;
      }
      if (s.turn) {
        if (exchange == nullptr || !waits_first(s, *exchange)) turns.back().exchange = 0;
        turns.emplace_back();
        exchange = nullptr;
      }
      (exchange == nullptr ? turns.back().before : turns.back().beside) += computed(s);
    }
    turns.back().exchange = 0;
    return turns;
  }

 private:
  static void add(PartTimes& times, bool layer, std::int64_t ps) { (layer ? times.layer.front() : times.ends) += ps; }
  bool of_layer(const PassSegment& segment) const { return segment.part == static_cast<std::int16_t>(layer_); }
  const PassOp& op(int i) const { return body_.ops[static_cast<std::size_t>(i)]; }
  Lane lane_of(int i) const { return simulator::lane_of(op(i).lane, op(i).group, merge_lanes_); }

  // Whether the exchange waits for the last that is computed before it.
  bool waits_for_all_before(const PassSegment& exchange) const {
    int last = exchange.begin - 1;
    while (last >= 0 && lane_of(last) != Lane::kCompute) --last;
    const auto& after = op(exchange.begin).after;
    return last >= 0 && std::find(after.begin(), after.end(), last) != after.end();
  }

  // Whether nothing of the segment is computed before the exchange has ended.
  bool waits_first(const PassSegment& s, const PassSegment& exchange) const {
    int first = s.begin;
    while (first < s.end && lane_of(first) != Lane::kCompute) ++first;
    if (first == s.end) return false;
    const auto& after = op(first).after;
    return std::any_of(after.begin(), after.end(), [&](int before) {
      return before + 1 == exchange.end;  // the last of the exchange
    });
  }

  std::int64_t sum(int begin, int end, Lane lane) const {
    std::int64_t total = 0;
    for (int i = begin; i < end; ++i) {
      if (lane_of(i) == lane) total += times_[static_cast<std::size_t>(i)];
    }
    return total;
  }

  // How long the compute lane takes for a segment, including waits for other lanes. Of those only ops count that follow
  // a kernel of the segment: the others may have overlapped with the previous segment.
  std::int64_t computed(const PassSegment& s) const {
    return held_by<PassOp>(body_.ops, times_, s.begin, s.end, Lane::kCompute, merge_lanes_);
  }

  std::int64_t bus(int begin, int end) const {
    std::int64_t busy = 0;
    for (int i = begin; i < end; ++i) {
      busy += bus_.of(op(i).kind, op(i).group, op(i).bytes, times_[static_cast<std::size_t>(i)]);
    }
    return busy;
  }

  const PassBody& body_;
  const std::vector<std::int64_t>& times_;
  int layer_;
  BusLoad& bus_;
  bool merge_lanes_;
};

}  // namespace

PassLayer pass_layer(const program::Program& program, std::size_t kind) {
  const program::ChunkTemplate& whole = program.kinds[kind];
  PassLayer layer;
  layer.layer = whole.embedding ? 1 : 0;
  layer.layer_back = whole.parts_at_end();
  const auto bodies = bodies_of(whole);
  for (std::size_t b = 0; b < bodies.size(); ++b) layer.bodies[b] = body_of(program, bodies[b]);
  return layer;
}

CostedPassLayer costed_pass_layer(const program::Program& program, std::size_t kind, const hardware::Device& device) {
  CostedPassLayer costed{pass_layer(program, kind), {}};
  const auto bodies = bodies_of(program.kinds[kind]);
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    if (bodies[b] < 0) continue;
    const std::span<const program::Op> ops = program.bodies[static_cast<std::size_t>(bodies[b])].ops;
    for (const auto& [begin, end] : ops_of_parts(costed.layer.bodies[b])) {
      costed.parts[b].push_back(work_of(
          ops.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), program, device));
    }
  }
  return costed;
}

PassOpTimes times_of(const CostedPassLayer& layer, const program::Program& program, const hardware::Cluster& cluster,
                     int stage) {
  const int rank = program.mesh.rank({0, 0, 0, stage});
  PlacedRanks ranks(program, cluster, cluster.groups.front().node, rank);
  PassOpTimes times;
  for (std::size_t b = 0; b < times.size(); ++b) {
    times[b].reserve(layer.layer.bodies[b].ops.size());
    for (const PartWork& part : layer.parts[b]) {
      for (const std::int64_t ps : ranks.times(part, -1)) times[b].push_back(ps);
    }
  }
  return times;
}

PassOpTimes times_of(const CostedProgram& costed, int stage, std::size_t kind) {
  PassOpTimes times;
  const auto bodies = bodies_of(costed.program->kinds[kind]);
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    if (bodies[b] < 0) continue;
    times[b] = costed.op_ps[static_cast<std::size_t>(stage)][static_cast<std::size_t>(bodies[b])];
  }
  return times;
}

KindCosts pass_costs(const PassLayer& layer, const PassOpTimes& times, const program::Program& program,
                     const hardware::Cluster& cluster, int stage, bool merge_lanes) {
  BusLoad bus(program, cluster, stage);
  const auto reader = [&](std::size_t body, int at) {
    return PassReader(layer.bodies[body], times[body], at, bus, merge_lanes);
  };
  const PassReader forward = reader(PassLayer::kForward, layer.layer);
  const PassReader backward = reader(PassLayer::kBackward, layer.layer_back);
  const bool forward_cut = layer.bodies[PassLayer::kForward].is_cut();
  const bool backward_cut = forward_cut && layer.bodies[PassLayer::kBackward].is_cut();  // in pairs
  KindCosts costs;
  costs.forward = forward.by_segment();
  costs.backward = backward.by_segment();
  costs.forward_bus = forward.bus();
  costs.backward_bus = backward.bus();
  costs.forward_through = forward_cut ? forward.by_part() : costs.forward;
  costs.backward_through = backward_cut ? backward.by_part() : costs.backward;
  costs.forward_lead = forward.before_layer();
  costs.backward_lead = backward.before_layer();
  if (forward_cut) {
    LayerTurns turns{forward.turns(), backward.turns()};
    const bool known = !turns.forward.empty() && !turns.backward.empty();
    if (known) costs.turns.front() = std::make_shared<const LayerTurns>(std::move(turns));
  }
  forward.add_exchanges(costs.exchanges);
  backward.add_exchanges(costs.exchanges);
  costs.weights = reader(PassLayer::kWeights, layer.layer_back).by_segment();
  const PassReader store = reader(PassLayer::kStore, 0);
  costs.copies.layer.front() = store.whole(merge_lanes ? Lane::kCompute : Lane::kCopy);
  costs.copies_bus.layer.front() = store.whole_bus();
  return costs;
}

}  // namespace trivium::simulator
