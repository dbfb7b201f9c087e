#include "planner/fewer_nodes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "planner/ranking.h"
#include "simulator/analytic/shared_costs.h"

namespace trivium::planner {
namespace {

constexpr std::size_t kMostCounts = 3;
constexpr int kIdlePart = 4;  // of the nodes: one in so many at most

int divisors(int number) {
  int count = 0;
  for (int d = 1; d <= number; ++d) count += number % d == 0 ? 1 : 0;
  return count;
}

}  // namespace

std::vector<int> counts_beside(int nodes) {
  std::vector<std::pair<int, int>> counts;  // by divisors, then by nodes
  const int of_all = divisors(nodes);
  for (int n = nodes - nodes / kIdlePart; n < nodes; ++n) {
    if (const int count = divisors(n); count > of_all) counts.emplace_back(count, n);
  }
  std::sort(counts.rbegin(), counts.rend());
  if (counts.size() > kMostCounts) counts.resize(kMostCounts);
  std::vector<int> found;
  for (const auto& [count, n] : counts) found.push_back(n);
  return found;
}

SearchResult search_with_idle_nodes(const SearchRequest& request, int threads, const std::stop_token& stop,
                                    const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  SearchRequest all = request;
  if (!all.costs) all.costs = std::make_shared<simulator::SharedCosts>();
  SearchResult result = search_as_given(all, threads, stop, progress);
  const bool open = request.cluster.homogeneous() && request.ranks == 0 && !request.played_as;
  if (!open || result.best.empty()) return result;
  const int devices = request.cluster.groups.front().node.devices;
  const double of_all_s = result.best.front().simulation.iteration_s;
  for (const int nodes : counts_beside(request.cluster.nodes())) {
    if (stop.stop_requested()) {
      result.proved = false;
      break;
    }
    SearchRequest part = all;
    part.ranks = nodes * devices;
    part.others = 0;
    part.limit_ps = limit_behind(result.best, request);
    join(result, search_as_given(part, threads, stop, progress), request);
  }
  const int used = result.best.front().plan.ranks() / devices;
  if (used < request.cluster.nodes()) {
    result.nodes_used = used;
    result.all_nodes_s = of_all_s;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace trivium::planner
