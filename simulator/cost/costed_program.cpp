#include "simulator/cost/costed_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

#include "base/seconds.h"
#include "simulator/collectives/places.h"
#include "simulator/cost/core_sharing.h"
#include "simulator/cost/part_work.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

using program::Op;
using program::Program;

// Everything the cost of an op depends on other than the device: layers repeat, so most ops were costed before.
auto shape_key(const Op& op, int peer_stage) {
  return std::tuple(peer_stage, op.kind, op.pass, op.dtype, op.group, op.weight_transposed, op.token_sharded, op.flash,
                    op.heads, op.kv_heads, op.head_dim, op.sequence, op.window, op.chunked, op.document_keys,
                    op.experts, op.parts, op.m, op.n, op.k, op.elements, op.bytes, op.disk, op.fp8, op.operand);
}

class Coster {
 public:
  Coster(const Program& program, const hardware::Cluster& cluster, const hardware::Node& node, int rank)
      : program_(program), device_(node.device), ranks_(program, cluster, node, rank) {}

  // Durations of the ops of one part of a body. Layers repeat, so most were costed before.
  const std::vector<std::int64_t>& part(std::span<const Op> written, int peer_stage) {
    Key key;
    key.reserve(written.size());
    for (const Op& op : written) key.push_back(shape_key(op, peer_stage));
    const auto [at, fresh] = known_.try_emplace(std::move(key));
    if (fresh) at->second = ranks_.times(work_of(written, program_, device_), peer_stage);
    return at->second;
  }

 private:
  using Key = std::vector<decltype(shape_key(Op{}, 0))>;
  const Program& program_;
  const hardware::Device& device_;
  PlacedRanks ranks_;
  std::map<Key, std::vector<std::int64_t>> known_;
};

// Ops of a body by part, each part's in their order.
std::vector<std::vector<std::size_t>> ops_by_part(const program::Body& body) {
  std::vector<std::vector<std::size_t>> parts(static_cast<std::size_t>(body.parts()));
  for (const program::Segment& segment : body.segments) {
    for (int i = segment.begin; i < segment.end; ++i) {
      parts[static_cast<std::size_t>(segment.part)].push_back(static_cast<std::size_t>(i));
    }
  }
  return parts;
}

// A host runs ahead of all segments of a layer. Those of layers that are made again together are not next to each
// other.
void enter_times(const program::Body& body, int peer_stage, Coster& coster, std::vector<std::int64_t>& times) {
  const auto enter = [&](std::size_t op, std::int64_t ps) { times[op] = std::max(times[op], ps); };
  if (!std::ranges::is_sorted(body.segments, {}, &program::Segment::part)) {
    std::vector<Op> ops;
    for (const std::vector<std::size_t>& part : ops_by_part(body)) {
      ops.clear();
      for (const std::size_t i : part) ops.push_back(body.ops[i]);
      const auto& part_ps = coster.part(ops, peer_stage);
      for (std::size_t i = 0; i < part.size(); ++i) enter(part[i], part_ps[i]);
    }
    return;
  }
  for (std::size_t s = 0; s < body.segments.size();) {
    const program::Segment& first = body.segments[s];
    const auto begin = static_cast<std::size_t>(first.begin);
    auto end = begin;
    for (; s < body.segments.size() && body.segments[s].part == first.part; ++s) {
      end = static_cast<std::size_t>(body.segments[s].end);
    }
    const auto& part_ps = coster.part(std::span(body.ops).subspan(begin, end - begin), peer_stage);
    for (std::size_t i = begin; i < end; ++i) enter(i, part_ps[i - begin]);
  }
}

// All that computes; what ranks exchange is measured while they take turns.
void slow_down(CostedProgram& costed, double factor) {
  for (auto& bodies : costed.op_ps) {
    for (std::size_t body = 0; body < bodies.size(); ++body) {
      const std::vector<Op>& ops = costed.program->bodies[body].ops;
      for (std::size_t i = 0; i < bodies[body].size(); ++i) {
        if (program::is_communication(ops[i].kind) || program::is_copy(ops[i].kind)) continue;
        bodies[body][i] = std::llround(static_cast<double>(bodies[body][i]) * factor);
      }
    }
  }
}

// Node kinds that hold ranks of a role, each with one of those ranks.
std::vector<std::pair<const hardware::Node*, int>> nodes_of_role(const Program& program,
                                                                 const hardware::Cluster& cluster,
                                                                 const program::Role& role) {
  if (cluster.homogeneous()) return {{&cluster.groups.front().node, program.representative(role)}};
  std::vector<std::pair<const hardware::Node*, int>> nodes;
  for (const int rank : ranks_of_stage(program.mesh, role.stage)) {
    if (!program.replica_kinds.empty() && &program.role_of(rank) != &role) continue;
    const hardware::Node* node = &cluster.node_of_device(rank);
    if (std::none_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.first == node; }))
      nodes.emplace_back(node, rank);
  }
  return nodes;
}

}  // namespace

int representative(const Program& program, int role) {
  return program.representative(program.roles[static_cast<std::size_t>(role)]);
}

CostedProgram cost(const Program& program, std::shared_ptr<const PlacedCluster> placed) {
  const hardware::Cluster &cluster = placed->get(), &given = placed->given();
  CostedProgram costed;
  costed.program = &program;
  costed.placed = std::move(placed);
  costed.op_ps.resize(program.roles.size());
  for (const auto& group : cluster.groups) costed.asynchronous_lanes &= group.node.asynchronous_lanes;
  for (const program::Role& role : program.roles) {
    auto& bodies = costed.op_ps[static_cast<std::size_t>(&role - program.roles.data())];
    bodies.resize(program.bodies.size());
    if (role.tasks.empty()) continue;
    std::vector<std::optional<int>> used(program.bodies.size());  // by body: peer stage of its transfer
    for (const program::Task& task : role.tasks) {
      auto& peer = used[static_cast<std::size_t>(task.body)];
      if (!peer) peer = task.peer_stage;
    }
    for (const auto& [node, rank] : nodes_of_role(program, cluster, role)) {
      Coster coster(program, cluster, *node, rank);
      for (std::size_t body = 0; body < used.size(); ++body) {
        if (!used[body]) continue;
        const program::Body& work = program.bodies[body];
        auto& times = bodies[body];
        times.resize(work.ops.size(), 0);
        enter_times(work, *used[body], coster, times);
      }
    }
  }
  if (shares_cores(program, given)) {
    slow_down(costed, core_sharing(program, given.groups.front().node));
  }
  return costed;
}

// An eighth of what 64 bits hold: no sum of what waits and works beside each other on a few lanes runs over.
std::optional<program::Infeasible> too_long(const CostedProgram& costed, double times) {
  constexpr double kMostPs = 1.0 * (std::int64_t{1} << 60);
  constexpr double kSecondsPerDay = 86'400;
  double all = 0;
  for (std::size_t r = 0; r < costed.op_ps.size(); ++r) {
    std::vector<double> bodies;
    for (const auto& ops : costed.op_ps[r]) bodies.push_back(std::accumulate(ops.begin(), ops.end(), 0.0));
    for (const program::Task& task : costed.program->roles[r].tasks) all += bodies[static_cast<std::size_t>(task.body)];
  }
  all *= times;
  if (all <= kMostPs) return std::nullopt;
  return program::Infeasible{
      "iteration-in-range",
      fmt::format("an iteration would take up to {:.3g} days, and no more than {:.0f} are simulated",
                  all / base::kPsPerSecond / kSecondsPerDay, kMostPs / base::kPsPerSecond / kSecondsPerDay)};
}

CostedProgram cost(const Program& program, const hardware::Cluster& cluster) {
  return cost(program, std::make_shared<const PlacedCluster>(program, cluster));
}

}  // namespace trivium::simulator
