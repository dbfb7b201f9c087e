#include "tests/proofs/bound_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/seconds.h"
#include "planner/bound/evaluate.h"
#include "planner/bound/tree.h"

namespace trivium::planner {
namespace {

// The engine's clock counts whole picoseconds, and so do the bounds' parts.
constexpr std::int64_t kRounding = 1000;

template <class Values>
const auto& any(const Values& values, std::mt19937& random) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

std::int64_t simulated(const SearchRequest& request, const program::Plan& plan) {
  program::Job job = request.job;
  job.plan = plan;
  const auto found = iteration(job, request.cluster, false);
  return std::holds_alternative<std::int64_t>(found) ? std::get<std::int64_t>(found) : 0;
}

bool breaks(const SearchRequest& request, std::mt19937& random, std::int64_t most_work) {
  constexpr int kTries = 12;
  for (int i = 0; i < kTries; ++i) {
    const auto pair = random_pair(request, random, most_work);
    if (pair && !pair->holds()) return true;
  }
  return false;
}

}  // namespace

bool BoundPair::holds() const {
  const std::int64_t bound = std::max({*std::max_element(bounds_ps.begin(), bounds_ps.end()), list_schedule_ps});
  return bound <= iteration_ps + kRounding;
}

std::string BoundPair::text() const {
  const auto s = [](std::int64_t ps) { return static_cast<double>(ps) * base::kSecondsPerPs; };
  std::string text;
  for (const std::int64_t bound : bounds_ps) text += fmt::format("{:.6g} ", s(bound));
  return text + fmt::format("list schedule {:.6g} simulated {:.6g}", s(list_schedule_ps), s(iteration_ps));
}

std::optional<BoundPair> random_pair(const SearchRequest& request, std::mt19937& random, std::int64_t most_work) {
  Tree tree(request);
  std::vector<Node> nodes = tree.roots();
  BoundPair pair;
  Node at;
  while (!nodes.empty()) {
    at = any(nodes, random);
    pair.bounds_ps[static_cast<std::size_t>(at.level)] = at.bound_ps;
    if (at.is_plan()) break;
    nodes = tree.open(at).nodes;
  }
  if (!at.is_plan() || request.job.model.layers * tree.micro_batches(*at.plan) > most_work) return std::nullopt;
  pair.plan = *at.plan;
  pair.iteration_ps = simulated(request, pair.plan);
  if (pair.iteration_ps == 0) return std::nullopt;
  program::Job job = request.job;
  job.plan = pair.plan;
  const auto scheduled = quick_bound(job, request.cluster, false);
  const auto* ps = std::get_if<std::int64_t>(&scheduled);
  if (ps != nullptr) pair.list_schedule_ps = *ps;
  return pair;
}

SearchRequest shrunk(const SearchRequest& request, std::mt19937& random, std::int64_t most_work) {
  SearchRequest smallest = request;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (int part = 0; part < 3 && !smaller; ++part) {
      SearchRequest tried = smallest;
      hardware::NodeGroup& nodes = tried.cluster.groups.back();
      std::int64_t& batch = tried.job.training.global_batch;
      if (part == 0 && nodes.count > 1) nodes.count /= 2;
      if (part == 1 && tried.job.model.layers > 1) tried.job.model.layers = (tried.job.model.layers + 1) / 2;
      if (part == 2 && batch % 2 == 0) batch /= 2;
      const bool same = nodes.count == smallest.cluster.groups.back().count &&
                        tried.job.model.layers == smallest.job.model.layers &&
                        batch == smallest.job.training.global_batch;
      if (same || !breaks(tried, random, most_work)) continue;
      smallest = std::move(tried);
      smaller = true;
    }
  }
  return smallest;
}

}  // namespace trivium::planner
