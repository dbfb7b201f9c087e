#include "simulator/studies/link_use.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/seconds.h"
#include "simulator/collectives/network_bytes.h"
#include "simulator/collectives/site_links.h"

namespace trivium::simulator {
namespace {

using program::OpKind;
using TimeSpan = std::pair<std::int64_t, std::int64_t>;

constexpr std::array<std::string_view, kWires> kWireNames{"inside nodes", "network", "between sites", "to the host"};
constexpr std::array<std::string_view, kPhases> kPhaseNames{"forward",    "backward", "between stages", "gradients",
                                                            "parameters", "step",     "offload"};

Phase phase_of(program::TaskKind kind) {
  switch (kind) {
    case program::TaskKind::kForward:
      return Phase::kForward;
    case program::TaskKind::kBackward:
    case program::TaskKind::kBackwardWeights:
      return Phase::kBackward;
    case program::TaskKind::kSend:
    case program::TaskKind::kRecv:
    case program::TaskKind::kGatherReceived:
      return Phase::kStages;
    case program::TaskKind::kReduceGradients:
      return Phase::kGradients;
    case program::TaskKind::kGatherParameters:
      return Phase::kParameters;
    case program::TaskKind::kFetch:
    case program::TaskKind::kStore:
      return Phase::kOffload;
    case program::TaskKind::kGradientNorm:
    case program::TaskKind::kNormReduce:
    case program::TaskKind::kOptimizer:
      return Phase::kStep;
  }
  return Phase::kStep;
}

/// Disjoint and ascending.
std::vector<TimeSpan> united(std::vector<TimeSpan> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<TimeSpan> result;
  for (const TimeSpan& one : intervals) {
    if (one.second <= one.first) continue;
    if (!result.empty() && one.first <= result.back().second) {
      result.back().second = std::max(result.back().second, one.second);
    } else {
      result.push_back(one);
    }
  }
  return result;
}

std::int64_t length(const std::vector<TimeSpan>& intervals) {
  std::int64_t sum = 0;
  for (const TimeSpan& one : intervals) sum += one.second - one.first;
  return sum;
}

/// Both disjoint and ascending.
std::int64_t overlap(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max<std::int64_t>(0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return sum;
}

/// Which share of the bytes that a member sends goes over which wire, on average over the members.
using Shares = std::array<double, kWires>;

/// Of steps from rank to rank that lie so: the widest wire counts, and with it the adapters on the way to another site.
void add_step(const hardware::Cluster& placed, int from, int to, double weight, Shares& shares) {
  if (placed.node_index(from) == placed.node_index(to)) {
    shares[static_cast<std::size_t>(Wire::kInside)] += weight;
    return;
  }
  shares[static_cast<std::size_t>(Wire::kNetwork)] += weight;
  const bool crosses = placed.link_between(placed.site_of_device(from), placed.site_of_device(to)) != nullptr;
  if (crosses) shares[static_cast<std::size_t>(Wire::kSites)] += weight;
}

/// A ring visits the members node by node.
Shares ring_shares(const hardware::Cluster& placed, std::vector<int> members) {
  Shares shares{};
  std::sort(members.begin(), members.end());
  const double each = 1.0 / static_cast<double>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    add_step(placed, members[i], members[(i + 1) % members.size()], each, shares);
  }
  return shares;
}

Shares exchange_shares(const hardware::Cluster& placed, const std::vector<int>& members) {
  std::map<std::pair<int, int>, double> nodes;  // by site and node: members there
  for (const int member : members) ++nodes[{placed.site_of_device(member), placed.node_index(member)}];
  Shares shares{};
  const auto n = static_cast<double>(members.size());
  const double pairs = n * (n - 1);
  for (const auto& [from, here] : nodes) {
    for (const auto& [to, there] : nodes) {
      const bool same = from == to;
      const double weight = here * (same ? there - 1 : there) / pairs;
      shares[static_cast<std::size_t>(same ? Wire::kInside : Wire::kNetwork)] += weight;
      if (!same && placed.link_between(from.first, to.first) != nullptr) {
        shares[static_cast<std::size_t>(Wire::kSites)] += weight;
      }
    }
  }
  return shares;
}

/// A device's share of the wires of its node, one way.
base::BytesPerSecond rate_of_node(const hardware::Node& node, Wire wire) {
  switch (wire) {
    case Wire::kInside:
      return node.intra.bandwidth;
    case Wire::kNetwork:
      return node.network.bandwidth * (static_cast<double>(node.adapters) / node.devices);
    case Wire::kHost:
      return node.host_link / static_cast<double>(std::max(1, node.devices_per_host_link));
    case Wire::kSites:
      break;
  }
  return kUnlimited;
}

/// A device's share of the slowest link between sites.
base::BytesPerSecond rate_between_sites(const hardware::Cluster& placed) {
  base::BytesPerSecond least = kUnlimited;
  for (const hardware::SiteLink& link : placed.links) {
    least = std::min(least, rate_of(link) / static_cast<double>(placed.devices()));
  }
  return least;
}

/// Nodes behind the last rank have no say: they are idle.
base::BytesPerSecond capacity_of(const hardware::Cluster& placed, Wire wire, int ranks) {
  if (wire == Wire::kSites) return rate_between_sites(placed);
  base::BytesPerSecond least = kUnlimited;
  int first = 0;  // device of the group
  for (const hardware::NodeGroup& group : placed.groups) {
    if (first >= ranks) break;
    least = std::min(least, rate_of_node(group.node, wire));
    first += group.count * group.node.devices;
  }
  return least;
}

/// What a rank's events say, added to that of the ranks before.
class Uses {
 public:
  Uses(const program::Program& program, const hardware::Cluster& placed) : program_(program), placed_(placed) {}

  void add(const program::Role& role, std::span<const program::Event> events) {
    const int rank = events.front().rank;
    std::array<std::vector<TimeSpan>, kWires> busy;
    std::map<std::tuple<int, Phase, program::Group>, std::vector<TimeSpan>> parts;
    std::vector<TimeSpan> computes;
    for (const program::Event& event : events) {
      if (event.op < 0) continue;
      const program::Task& task = role.tasks[static_cast<std::size_t>(event.task)];
      const program::Op& op = program_.body_of(task).ops[static_cast<std::size_t>(event.op)];
      const TimeSpan span{event.start_ps + event.wait_ps, event.end_ps};
      if (!program::is_communication(op.kind) && !copies(op)) {
        computes.push_back(span);
        continue;
      }
      const Shares shares = shares_of(op, task, event.rank);
      const double sent = op.kind == OpKind::kRecv ? 0 : copies(op) ? op.bytes : wire_bytes(program_.mesh, op);
      const Phase phase = phase_of(task.kind);
      for (std::size_t wire = 0; wire < kWires; ++wire) {
        if (shares[wire] <= 0) continue;
        const auto key = std::tuple(static_cast<int>(wire), phase, op.group);
        busy[wire].push_back(span);
        parts[key].push_back(span);
        LinkUse& use = uses_[key];
        use.bytes += sent * shares[wire];
        ++use.operations;
      }
    }
    computes = united(std::move(computes));
    for (std::size_t wire = 0; wire < kWires; ++wire) {
      const std::vector<TimeSpan> one = united(std::move(busy[wire]));
      busy_ps_[wire] += static_cast<double>(length(one));
      could_[wire] +=
          static_cast<double>(length(one)) * base::kSecondsPerPs * rate_of_rank(rank, static_cast<Wire>(wire)).value();
      hidden_ps_[wire] += static_cast<double>(overlap(one, computes));
    }
    for (auto& [key, spans] : parts) {
      uses_[key].busy_s += static_cast<double>(length(united(std::move(spans)))) * base::kSecondsPerPs;
    }
    ++ranks_;
  }

  std::vector<WireUse> result() const {
    std::vector<WireUse> wires;
    for (std::size_t w = 0; w < kWires; ++w) {
      WireUse use;
      use.wire = static_cast<Wire>(w);
      for (const auto& [key, part] : uses_) {
        if (std::get<0>(key) != static_cast<int>(w)) continue;
        use.uses.push_back(part);
        LinkUse& mean = use.uses.back();
        mean.phase = std::get<1>(key);
        mean.group = std::get<2>(key);
        mean.bytes /= ranks_;
        mean.busy_s /= ranks_;
        use.bytes += mean.bytes;
      }
      if (use.uses.empty()) continue;
      std::stable_sort(use.uses.begin(), use.uses.end(),
                       [](const LinkUse& a, const LinkUse& b) { return a.busy_s > b.busy_s; });
      use.capacity = capacity_of(placed_, use.wire, program_.mesh.size());
      use.could = could_[w] / ranks_;
      use.busy_s = busy_ps_[w] * base::kSecondsPerPs / ranks_;
      use.exposed_s = (busy_ps_[w] - hidden_ps_[w]) * base::kSecondsPerPs / ranks_;
      wires.push_back(std::move(use));
    }
    return wires;
  }

 private:
  base::BytesPerSecond rate_of_rank(int rank, Wire wire) const {
    return wire == Wire::kSites ? rate_between_sites(placed_) : rate_of_node(placed_.node_of_device(rank), wire);
  }

  static bool copies(const program::Op& op) { return program::is_copy(op.kind); }

  const Shares& shares_of(const program::Op& op, const program::Task& task, int rank) {
    const bool transfer = op.kind == OpKind::kSend || op.kind == OpKind::kRecv;
    const auto key = std::tuple(copies(op) ? OpKind::kFetch
                                : transfer ? OpKind::kSend
                                           : ring_or_exchange(op),
                                op.group, rank, transfer ? task.peer_stage : -1);
    const auto [at, is_new] = shares_.try_emplace(key, Shares{});
    if (!is_new) return at->second;
    Shares& shares = at->second;
    if (copies(op)) {
      shares[static_cast<std::size_t>(Wire::kHost)] = 1;
    } else if (transfer) {
      program::Coordinates there = program_.mesh.coordinates(rank);
      there.pipeline = task.peer_stage;
      add_step(placed_, rank, program_.mesh.rank(there), 1, shares);
    } else {
      const std::vector<int> members = program_.mesh.members(op.group, rank);
      if (members.size() > 1) {
        shares = ring_or_exchange(op) == OpKind::kAllToAll ? exchange_shares(placed_, members)
                                                           : ring_shares(placed_, members);
      }
    }
    return shares;
  }

  static OpKind ring_or_exchange(const program::Op& op) {
    return op.kind == OpKind::kAllToAll ? OpKind::kAllToAll : OpKind::kAllReduce;
  }

  const program::Program& program_;
  const hardware::Cluster& placed_;
  std::map<std::tuple<int, Phase, program::Group>, LinkUse> uses_;
  std::map<std::tuple<OpKind, program::Group, int, std::int32_t>, Shares> shares_;
  std::array<double, kWires> busy_ps_{}, hidden_ps_{}, could_{};
  double ranks_ = 0;
};

}  // namespace

std::string_view name_of(Wire wire) { return kWireNames[static_cast<std::size_t>(wire)]; }
std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

std::vector<WireUse> link_use(const program::Program& program, const program::Timeline& timeline,
                              const hardware::Cluster& placed) {
  Uses uses(program, placed);
  const std::span events(timeline.events);
  for (std::size_t begin = 0; begin < events.size();) {
    std::size_t end = begin;
    while (end < events.size() && events[end].rank == events[begin].rank) ++end;
    uses.add(program.role_of(events[begin].rank), events.subspan(begin, end - begin));
    begin = end;
  }
  return uses.result();
}

}  // namespace trivium::simulator
