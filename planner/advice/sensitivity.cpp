// What other hardware would bring, and what other costs would change.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "planner/advice/studies.h"
#include "planner/bound/evaluate.h"

namespace trivium::planner {
namespace {

using hardware::Cluster;

template <class Edit>
Cluster edited(Cluster cluster, Edit edit) {
  for (hardware::NodeGroup& group : cluster.groups) edit(group.node);
  return cluster;
}

struct Cost {
  const char* name;
  void (*scale)(hardware::Node&, double);  ///< the speed by a factor
};

/// The costs that a profile can get wrong, as speeds.
constexpr Cost kCosts[] = {
    {"compute",
     [](hardware::Node& node, double f) {
       node.device.compute_scale *= f;
       for (auto& [kind, rate] : node.device.op_rates) {
         rate.overhead = rate.overhead / f;
         rate.seconds_per_flop /= f;
         rate.seconds_per_byte /= f;
         rate.seconds_per_block /= f;
       }
     }},
    {"device memory",
     [](hardware::Node& node, double f) { node.device.memory_bandwidth = node.device.memory_bandwidth * f; }},
    {"links inside nodes",
     [](hardware::Node& node, double f) {
       node.intra.bandwidth = node.intra.bandwidth * f;
       for (auto& [ranks, bandwidth] : node.allreduce_bus) bandwidth = bandwidth * f;
     }},
    {"network", [](hardware::Node& node, double f) { node.network.bandwidth = node.network.bandwidth * f; }},
};

}  // namespace

std::vector<Sensitivity> sensitivities(const SearchRequest& request, const Candidate& best, const Effort& effort) {
  std::vector<Sensitivity> found;
  const auto look = [&](std::string change, const SearchRequest& other) {
    Sensitivity s{std::move(change), best_plan(other, effort), 0};
    if (s.best) s.gain = s.best->simulation.tokens_per_s / best.simulation.tokens_per_s - 1;
    found.push_back(std::move(s));
  };
  SearchRequest other = request;
  if (request.cluster.nodes() > 1) {
    other.cluster =
        edited(request.cluster, [](hardware::Node& node) { node.network.bandwidth = node.network.bandwidth * 2; });
    look("network twice as fast", other);
  }
  other.cluster = edited(request.cluster, [](hardware::Node& node) {
    node.intra.bandwidth = node.intra.bandwidth * 2;
    for (auto& [ranks, bandwidth] : node.allreduce_bus) bandwidth = bandwidth * 2;
  });
  look("links inside nodes twice as fast", other);
  other.cluster = edited(request.cluster, [](hardware::Node& node) { node.device.memory = node.device.memory * 2; });
  look("twice the memory", other);
  const bool may_grow = request.cluster.homogeneous() && request.ranks == 0 && !request.fixed.contains("data") &&
                        request.cluster.groups.front().node.adapters > 0;
  if (may_grow) look("one more node", on_nodes(request, request.cluster.nodes() + 1));
  if (may_grow) look("twice the nodes", on_nodes(request, request.cluster.nodes() * 2));
  return found;
}

Robustness robustness(const SearchRequest& request, const std::vector<Candidate>& candidates, double share) {
  Robustness result;
  for (const Cost& cost : kCosts) {
    for (const bool faster : {false, true}) {
      const double factor = faster ? 1 + share : 1 / (1 + share);
      const Cluster cluster = edited(request.cluster, [&](hardware::Node& node) { cost.scale(node, factor); });
      Robustness::Case one;
      one.change = fmt::format("{} {:.0f} % {}", cost.name, 100 * share, faster ? "faster" : "slower");
      std::int64_t chosen = 0, least = std::numeric_limits<std::int64_t>::max();
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        program::Job job = request.job;
        job.plan = candidates[i].plan;
        const auto simulated = full_simulation(job, cluster);
        if (!simulated) continue;
        const std::int64_t ps = simulated.value().iteration_ps;
        if (i == 0) chosen = ps;
        if (ps < least) {
          least = ps;
          one.winner = program::summary(job.plan);
        }
      }
      one.stays = chosen <= least;
      one.regret = static_cast<double>(chosen) / static_cast<double>(least) - 1;
      result.stays = result.stays && one.stays;
      result.worst_regret = std::max(result.worst_regret, one.regret);
      result.cases.push_back(std::move(one));
    }
  }
  return result;
}

}  // namespace trivium::planner
