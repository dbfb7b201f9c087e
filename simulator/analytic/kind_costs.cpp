#include "simulator/analytic/kind_costs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "simulator/analytic/bus_load.h"
#include "simulator/cost/lanes.h"

namespace trivium::simulator {
namespace {

using program::Body;
using program::Lane;

class KindReader {
 public:
  KindReader(const CostedProgram& costed, const hardware::Cluster& cluster, int stage, std::size_t kind,
             bool every_pass)
      : costed_(costed),
        program_(*costed.program),
        bus_(program_, cluster, stage),
        kind_(program_.kinds[kind]),
        stage_(static_cast<std::size_t>(stage)),
        every_pass_(every_pass) {}

  KindCosts read() {
    KindCosts costs;
    for (std::size_t bucket = 0; bucket < kind_.buckets.size(); ++bucket) {
      if (!kind_.buckets[bucket].frozen) add_optimizer(costs.optimizer, bucket);
    }
    if (kind_.optimizer >= 0) costs.first_optimizer = segment(kind_.optimizer, 0, Lane::kCompute);
    costs.send_forward = whole(kind_.send_forward, Lane::kPipeline);
    costs.send_backward = whole(kind_.send_backward, Lane::kPipeline);
    costs.send_bus = bus_of(kind_.send_forward) + bus_of(kind_.send_backward);
    const Lane gathers = costed_.asynchronous_lanes ? Lane::kPipeline : Lane::kCompute;
    costs.gather_forward = whole(kind_.gather_forward, gathers);
    costs.gather_backward = whole(kind_.gather_backward, gathers);
    costs.norm.layer.front() = norm_layer();
    costs.norm_reduce = whole(kind_.norm_reduce, Lane::kCompute);
    const Lane data = costed_.asynchronous_lanes ? Lane::kData : Lane::kCompute;
    for (std::size_t bucket = 0; bucket < kind_.buckets.size(); ++bucket) {
      add(costs.gather, of_layer(bucket), whole(kind_.gather[bucket], data));
      add(costs.gather_bus, of_layer(bucket), bus_of(kind_.gather[bucket]));
      add(costs.replicas, of_layer(bucket), whole(kind_.reduce_replicas[bucket], data));
      // Where gradients are reduced in every pass, those of experts that no other rank holds are not: only what tensor
      // ranks add is left of them, once, and the bound leaves it out.
      if (every_pass_ && kind_.buckets[bucket].expert && kind_.buckets[bucket].gradient_slot < 0) continue;
      const int reduce = kind_.reduce[bucket];
      add(costs.reduce_bus, of_layer(bucket), bus_of(reduce));
      if (on_one_lane(reduce)) {
        add(costs.reduce, of_layer(bucket), whole(reduce, data));
      } else {
        costs.reduce_apart = std::max(costs.reduce_apart, whole(reduce, data));
      }
    }
    const Lane copy = costed_.asynchronous_lanes ? Lane::kCopy : Lane::kCompute;
    for (std::size_t bucket = 0; bucket < kind_.fetch_state.size(); ++bucket) {
      add(costs.fetch_state, of_layer(bucket), whole(kind_.fetch_state[bucket], copy));
      add(costs.store_state, of_layer(bucket), whole(kind_.store_state[bucket], copy));
    }
    if (kind_.buckets.empty()) return costs;
    costs.first_reduce = whole(kind_.reduce.front(), data);
    costs.last_gather = whole(kind_.gather.back(), data);
    return costs;
  }

 private:
  static void add(PartTimes& times, bool layer, std::int64_t ps) { (layer ? times.layer.front() : times.ends) += ps; }

  // The last segment clears the tied embedding's other gradient, too, which is no layer's.
  void add_optimizer(PartTimes& times, std::size_t bucket) const {
    const program::Segment& s = body(kind_.optimizer).segments[bucket];
    const auto& ps = costed_.op_ps[stage_][static_cast<std::size_t>(kind_.optimizer)];
    for (int i = s.begin; i < s.end && !ps.empty(); ++i) {
      const program::Op& op = body(kind_.optimizer).ops[static_cast<std::size_t>(i)];
      if (lane_of(op) == Lane::kCompute) {
        const bool of_chunk = op.kind == program::OpKind::kZeroGradients && op.bucket < 0;
        add(times, of_layer(bucket) && !of_chunk, ps[static_cast<std::size_t>(i)]);
      }
    }
  }

  bool of_layer(std::size_t bucket) const { return kind_.buckets[bucket].first_segment == (kind_.embedding ? 1 : 0); }

  const Body& body(int index) const { return program_.bodies[static_cast<std::size_t>(index)]; }

  Lane lane_of(const program::Op& op) const { return simulator::lane_of(op, !costed_.asynchronous_lanes); }

  // Ops on several lanes are simulated as a step of the compute lane, concurrent with reductions on the data lane.
  bool on_one_lane(int index) const {
    if (index < 0) return true;
    const auto& ops = body(index).ops;
    return std::all_of(ops.begin(), ops.end(), [&](const auto& op) { return lane_of(op) == lane_of(ops.front()); });
  }

  std::int64_t sum(int index, int begin, int end, Lane lane) const {
    const auto& times = costed_.op_ps[stage_][static_cast<std::size_t>(index)];
    std::int64_t total = 0;
    if (times.empty()) return total;
    for (int i = begin; i < end; ++i) {
      if (lane_of(body(index).ops[static_cast<std::size_t>(i)]) == lane) total += times[static_cast<std::size_t>(i)];
    }
    return total;
  }

  std::int64_t whole(int index, Lane lane) const {
    return index < 0 ? 0 : sum(index, 0, static_cast<int>(body(index).ops.size()), lane);
  }

  std::int64_t segment(int index, std::size_t which, Lane lane) const {
    const program::Segment& s = body(index).segments[which];
    return sum(index, s.begin, s.end, lane);
  }

  std::int64_t bus_of(int index, int begin, int end) {
    const auto& times = costed_.op_ps[stage_][static_cast<std::size_t>(index)];
    std::int64_t busy = 0;
    for (int i = begin; i < end && !times.empty(); ++i) {
      const program::Op& op = body(index).ops[static_cast<std::size_t>(i)];
      busy += bus_.of(op.kind, op.group, op.bytes, times[static_cast<std::size_t>(i)]);
    }
    return busy;
  }

  std::int64_t bus_of(int index) { return index < 0 ? 0 : bus_of(index, 0, static_cast<int>(body(index).ops.size())); }

  // The norm of a chunk is one run of kernels: its host and device times combine over all of them, so it is at least
  // what the layers alone would take, less a picosecond of rounding for each. What else the body does (fp8 delayed: the
  // largest numbers of all layers in a collective) is not of one layer, and nothing is claimed of it.
  std::int64_t norm_layer() const {
    if (kind_.embedding || kind_.head || kind_.norm < 0) return 0;
    std::int64_t time = 0;
    for (std::size_t s = 0; s < body(kind_.norm).segments.size(); ++s) {
      const program::Segment& here = body(kind_.norm).segments[s];
      const bool of_norm =
          body(kind_.norm).ops[static_cast<std::size_t>(here.begin)].kind == program::OpKind::kGradientNorm;
      if (of_norm) time += segment(kind_.norm, s, Lane::kCompute);
    }
    return std::max<std::int64_t>(0, time - 1);
  }

  const CostedProgram& costed_;
  const program::Program& program_;
  BusLoad bus_;
  const program::ChunkTemplate& kind_;
  std::size_t stage_;
  bool every_pass_;
};

}  // namespace

KindCosts kind_costs(const CostedProgram& costed, const hardware::Cluster& cluster, int stage, std::size_t kind,
                     bool every_pass) {
  return KindReader(costed, cluster, stage, kind, every_pass).read();
}

KindCosts joined(const std::vector<KindCosts>& kinds) {
  KindCosts costs = kinds.front();
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) {
    costs.turns[kind] = kinds[kind].turns.front();
    for (const auto part :
         {&KindCosts::forward, &KindCosts::backward, &KindCosts::forward_through, &KindCosts::backward_through,
          &KindCosts::exchanges, &KindCosts::weights, &KindCosts::optimizer, &KindCosts::reduce, &KindCosts::gather,
          &KindCosts::replicas, &KindCosts::norm, &KindCosts::fetch_state, &KindCosts::store_state,
          &KindCosts::forward_bus, &KindCosts::backward_bus, &KindCosts::gather_bus, &KindCosts::reduce_bus,
          &KindCosts::copies, &KindCosts::copies_bus}) {
      (costs.*part).layer[kind] = (kinds[kind].*part).layer.front();
      (costs.*part).ends = std::min((costs.*part).ends, (kinds[kind].*part).ends);
    }
    for (const auto part : {&KindCosts::reduce_apart, &KindCosts::first_reduce, &KindCosts::first_optimizer,
                            &KindCosts::last_gather, &KindCosts::norm_reduce}) {
      costs.*part = std::min(costs.*part, kinds[kind].*part);
    }
  }
  return costs;
}

std::pair<std::int64_t, std::int64_t> range_of(const PartTimes& times, const ByLayerKind<int>& layers) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (layers[kind] == 0) continue;
    least = std::min(least, times.layer[kind]);
    most = std::max(most, times.layer[kind]);
  }
  return {least, most};
}

std::int64_t all_but(int count, const PartTimes& times, const ByLayerKind<int>& layers) {
  std::int64_t all = 0, longest = 0;
  int held = 0;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    held += layers[kind];
    all += layers[kind] * times.layer[kind];
    if (layers[kind] > 0) longest = std::max(longest, times.layer[kind]);
  }
  return held > count ? std::max<std::int64_t>(0, all - count * longest) : 0;
}

}  // namespace trivium::simulator
