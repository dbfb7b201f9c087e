#include "planner/search/fewer_nodes.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "planner/search/one_space.h"
#include "planner/search/ranking.h"
#include "planner/space/space.h"
#include "simulator/analytic/shared_costs.h"

namespace trivium::planner {
namespace {

constexpr std::size_t kMostBeside = 3, kMostWeighed = 64;
constexpr std::int64_t kSoonDone = 15'000;  // nodes of a tree that are opened in a fraction of a second
constexpr int kIdlePart = 4;                // of the nodes: one in so many at most

int divisors(int number) {
  int count = 0;
  for (int d = 1; d <= number; ++d) count += number % d == 0 ? 1 : 0;
  return count;
}

// The fewest layers times samples that the busiest rank of any split computes, as parts of them where tensor and
// context ranks share them: m micro-batches through ceil(L / p) layers, and p - 1 chunks of a layer to fill the
// pipeline.
double least_work(SearchRequest request, int nodes) {
  request.ranks = nodes * request.cluster.groups.front().node.devices;
  double least = std::numeric_limits<double>::infinity();
  const Space space(request);
  for (const program::Plan& split : space.splits()) {
    const std::int64_t batch = request.job.training.global_batch,
                       together = std::int64_t{split.data} * split.micro_batch;
    // The request's own plan, where nothing splits so many; samples that the replicas cannot share evenly.
    if (split.ranks() != request.ranks || batch % together != 0) continue;
    const auto micro_batches = static_cast<double>(batch / together);
    const auto layers = static_cast<double>((request.job.model.layers + split.pipeline - 1) / split.pipeline);
    const double passes = (micro_batches * layers + split.pipeline - 1) * split.micro_batch;
    least = std::min(least, passes / (static_cast<double>(split.tensor) * split.context));
  }
  return least;
}

}  // namespace

CountsOfNodes counts_of_nodes(const SearchRequest& request) {
  const int all = request.cluster.nodes();
  std::vector<std::pair<int, int>> weighed;  // by divisors, then by nodes
  for (int n = all - all / kIdlePart; n < all; ++n) weighed.emplace_back(divisors(n), n);
  std::sort(weighed.rbegin(), weighed.rend());
  if (weighed.size() > kMostWeighed) weighed.resize(kMostWeighed);
  std::vector<std::pair<double, int>> counts;  // by work, then the larger first
  const double of_all = weighed.empty() ? 0 : least_work(request, all);
  for (const auto& [count, n] : weighed) {
    const double work = least_work(request, n);
    if (work < std::numeric_limits<double>::infinity()) counts.emplace_back(work, -n);
  }
  std::sort(counts.begin(), counts.end());
  if (counts.size() > kMostBeside) counts.resize(kMostBeside);
  counts.emplace_back(of_all, -all);
  std::sort(counts.begin(), counts.end());
  CountsOfNodes found;
  for (const auto& [work, n] : counts) (work <= of_all ? found.light : found.heavy).push_back(-n);
  return found;
}

SearchResult search_with_idle_nodes(const SearchRequest& request, int threads, const std::stop_token& stop,
                                    const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  SearchRequest all = request;
  if (!all.costs) all.costs = std::make_shared<simulator::SharedCosts>();
  const bool open = request.cluster.homogeneous() && request.ranks == 0 && !request.simulated_as;
  if (!open) return search_as_given(all, threads, stop, progress);
  const int nodes = request.cluster.nodes(), devices = request.cluster.groups.front().node.devices;
  const auto search_on = [&](int count, const SearchResult* known) {
    SearchRequest part = all;
    if (count < nodes) part.ranks = count * devices;
    if (known != nullptr) {
      part.on_bound = nullptr;
      part.others = 0;
      part.limit_ps = limit_behind(known->best, request);
    }
    return search_as_given(part, threads, stop, progress);
  };
  auto [counts, heavy] = counts_of_nodes(request);
  SearchResult result = search_on(counts.front(), nullptr);
  if (result.best.empty() && counts.front() < nodes) {  // what nodes have too little room for, all of them may hold
    SearchResult of_all = search_on(nodes, nullptr);
    join(of_all, result, request);
    result = std::move(of_all);
    std::erase(counts, nodes);
  }
  if (result.nodes_opened < kSoonDone) counts.insert(counts.end(), heavy.begin(), heavy.end());
  for (std::size_t i = 1; i < counts.size() && !result.best.empty(); ++i) {
    if (stop.stop_requested()) {
      result.proved = false;
      break;
    }
    join(result, search_on(counts[i], &result), request);
  }
  if (!result.best.empty() && result.best.front().plan.ranks() < nodes * devices) {
    result.nodes_used = result.best.front().plan.ranks() / devices;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace trivium::planner
