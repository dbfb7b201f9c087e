#include "planner/advice/studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/quote.h"
#include "base/seconds.h"
#include "hardware_profiles/part_of_node.h"
#include "planner/advice/relax.h"
#include "planner/search/costless.h"
#include "planner/space/space.h"
#include "simulator/analytic/shared_costs.h"
#include "simulator/studies/whole_training.h"

namespace trivium::planner {
namespace {

constexpr double kNextMemory = 0.95;
constexpr std::size_t kMostFront = 20;
constexpr int kScaleHalvings = 6;
constexpr int kMostDoublings = 12;
constexpr int kMostDevices = 1 << 20;
constexpr double kLongestLimit = 1e6;  // s of an iteration: beyond it ps would leave 64 bits
constexpr std::int64_t kMostOfARange = 1 << 24;
constexpr double kExpectedFaster = 1.15;  // than simulated, at most, where the expected time has to keep a limit
constexpr double kAnyFitting = 0.05;      // of the iteration: where what counts is that a plan fits

std::string whole_refusal(const SearchResult& result) {
  if (result.rejected.empty()) return "the given bounds leave no plan";
  const auto most = std::max_element(result.rejected.begin(), result.rejected.end(),
                                     [](const Rejected& a, const Rejected& b) { return a.plans < b.plans; });
  return fmt::format("{}: {}", most->family, most->reason);
}

/// How many nodes of the cluster's kind may be one cluster: those without adapters stay alone.
int most_nodes(const SearchRequest& request) {
  const hardware::Node& node = request.cluster.groups.front().node;
  return node.adapters == 0 ? 1 : std::max(1, kMostDevices / node.devices);
}

/// As expected when measured.
double training_seconds(const SearchRequest& request, const Candidate& best) {
  program::Job job = request.job;
  job.plan = best.plan;
  return simulator::whole_training(job, request.cluster, best.simulation)->seconds;
}

}  // namespace

SearchRequest on_nodes(const SearchRequest& request, int nodes) {
  SearchRequest other = request;
  hardware::NodeGroup& group = other.cluster.groups.front();
  group.count = nodes;
  other.cluster.name = hardware::cluster_text(group.node, nodes);
  other.ranks = 0;
  return other;
}

std::optional<Candidate> best_plan(const SearchRequest& request, const Effort& effort) {
  if (lacks_memory(request)) return std::nullopt;
  SearchRequest one = request;
  one.best = 1;
  one.others = 0;
  SearchResult result = search(one, effort.threads, effort.stop, {});
  if (result.best.empty()) return std::nullopt;
  return std::move(result.best.front());
}

std::vector<Candidate> memory_front(const SearchRequest& request, const Effort& effort) {
  std::vector<Candidate> front;
  SearchRequest tighter = request;
  tighter.ignore_memory = false;
  while (front.size() < kMostFront && !effort.stop.stop_requested()) {
    auto best = best_plan(tighter, effort);
    if (!best) break;
    const base::Bytes peak(static_cast<double>(best->simulation.peak_memory_bytes));
    for (hardware::NodeGroup& group : tighter.cluster.groups) {
      hardware::Device& device = group.node.device;  // what it reserves no plan can save
      device.memory = std::min(device.memory, device.reserved + (peak - device.reserved) * kNextMemory);
    }
    // SimulationTrace by segments two plans can change places: one that is no faster than a smaller one is no part of
    // the front.
    while (!front.empty() && front.back().simulation.iteration_ps >= best->simulation.iteration_ps) front.pop_back();
    front.push_back(std::move(*best));
  }
  return front;
}

std::vector<CostPoint> cost_front(const SearchRequest& request, const Effort& effort) {
  std::vector<CostPoint> front;  // fewer nodes are slower: each has to be cheaper than all before
  for (int nodes = request.cluster.nodes(); nodes > 0 && !effort.stop.stop_requested(); nodes /= 2) {
    const SearchRequest some = on_nodes(request, nodes);
    auto best = best_plan(some, effort);
    if (!best) break;
    program::Job job = some.job;
    job.plan = best->plan;
    const auto whole = simulator::whole_training(job, some.cluster, best->simulation);
    if (!whole || !whole->cost_usd) break;
    while (!front.empty() && front.back().seconds >= whole->seconds && front.back().cost_usd >= *whole->cost_usd) {
      front.pop_back();
    }
    const bool cheaper = front.empty() || *whole->cost_usd < front.back().cost_usd;
    if (cheaper) front.push_back({nodes, std::move(*best), whole->seconds, *whole->cost_usd});
  }
  return front;
}

std::vector<int> scale_counts(int devices) {
  std::vector<int> counts{devices};
  for (int i = 0; i < kScaleHalvings && counts.back() % 2 == 0; ++i) counts.push_back(counts.back() / 2);
  std::reverse(counts.begin(), counts.end());
  return counts;
}

std::vector<ScalePoint> scaling(const SearchRequest& request, const std::vector<int>& ranks, bool weak,
                                const Effort& effort) {
  const int most = *std::max_element(ranks.begin(), ranks.end());
  const std::int64_t batch = request.job.training.global_batch;
  const int devices = request.cluster.groups.front().node.devices;
  double most_each = 0;  // tokens per second and device
  std::vector<ScalePoint> points;
  for (const int count : ranks) {
    if (effort.stop.stop_requested()) break;
    if (effort.says) effort.says(fmt::format("{} devices", count));
    ScalePoint point{count, (count + devices - 1) / devices, batch, {}, "", 0};
    const hardware::Node& node = request.cluster.groups.front().node;
    if (point.nodes > 1 && node.adapters == 0) {
      point.refused = fmt::format("{} nodes: {} has no network adapters, so it can only be used as one node",
                                  point.nodes, base::quote(node.name));
      points.push_back(std::move(point));
      continue;
    }
    SearchRequest some = on_nodes(request, point.nodes);
    some.ranks = count;
    some.best = 1;
    if (weak) {
      point.global_batch = some.job.training.global_batch = batch * count / most;
      if (batch * count % most != 0 || point.global_batch == 0) {
        point.refused = fmt::format("{} x {} / {} is no whole batch", batch, count, most);
        points.push_back(std::move(point));
        continue;
      }
    }
    SearchResult result = search(some, effort.threads, effort.stop, {});
    if (result.best.empty()) {
      point.refused = whole_refusal(result);
      some.gap = std::max(some.gap, kAnyFitting);
      const std::vector<Relaxation> nearest = relaxations(some, 1, effort);
      if (!nearest.empty()) point.refused += "; fits " + nearest.front().words;
    } else {
      point.best = std::move(result.best.front());
      most_each = std::max(most_each, point.best->simulation.tokens_per_s / count);
    }
    points.push_back(std::move(point));
  }
  for (ScalePoint& point : points) {
    if (point.best) point.efficiency = point.best->simulation.tokens_per_s / point.ranks / most_each;
  }
  return points;
}

DeadlineAnswer smallest_cluster(const SearchRequest& request, double seconds, const Effort& effort) {
  DeadlineAnswer answer;
  // Slower iterations miss the deadline: they are not looked for.
  const program::Training& training = request.job.training;
  const double tokens = static_cast<double>(training.global_batch * training.sequence);
  const double limit_s = kExpectedFaster * seconds * tokens / static_cast<double>(training.total_tokens);
  const std::int64_t limit_ps =
      limit_s < kLongestLimit ? static_cast<std::int64_t>(limit_s * base::kPsPerSecond) + 1 : request.limit_ps;
  const auto costs = std::make_shared<simulator::SharedCosts>();
  const auto meets = [&](int nodes) {
    answer.tried = std::max(answer.tried, nodes);
    SearchRequest some = on_nodes(request, nodes);
    some.limit_ps = std::min(some.limit_ps, limit_ps);
    if (nodes > 1) some.costs = costs;  // one node of cores may take more ranks than it has, at other costs
    if (effort.says) effort.says(fmt::format("{} nodes", nodes));
    auto best = best_plan(some, effort);
    if (!best || training_seconds(some, *best) > seconds) return false;
    answer.nodes = nodes;
    answer.seconds = training_seconds(some, *best);
    answer.best = std::move(best);
    return true;
  };
  const double least = std::ceil(least_training_s(on_nodes(request, 1)) / seconds);
  const int most = most_nodes(request);
  if (least > most) {
    answer.tried = most;
    return answer;
  }
  int high = std::max(1, static_cast<int>(least)), low = high - 1;  // low does not meet it, as far as was looked
  for (int i = 0; i < kMostDoublings && !effort.stop.stop_requested(); ++i) {
    if (meets(high)) break;
    low = high;
    if (high * 2 > most) return answer;
    high *= 2;
  }
  if (answer.nodes == 0) return answer;
  while (high - low > 1 && !effort.stop.stop_requested()) {
    const int middle = low + (high - low) / 2;
    (meets(middle) ? high : low) = middle;
  }
  return answer;
}

base::Result<Doublings> parse_doublings(std::string_view text, std::string_view unit) {
  Doublings range;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.least);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto second = colon ? std::from_chars(first.ptr + 1, end, range.most) : first;
  if (!colon || second.ec != std::errc() || second.ptr != end || range.least < 1 || range.most < range.least ||
      range.most > kMostOfARange) {
    return base::Error{base::ErrorKind::kUsage, fmt::format("write LEAST:MOST in {}, like 256:4096, not {}", unit,
                                                            base::quote(std::string(text)))};
  }
  return range;
}

std::vector<BatchPoint> batches(const SearchRequest& request, Doublings range, double critical_batch_tokens,
                                const Effort& effort) {
  std::vector<BatchPoint> points;
  double fastest = 0;
  for (std::int64_t batch = range.least; batch <= range.most && !effort.stop.stop_requested(); batch *= 2) {
    if (effort.says) effort.says(fmt::format("batch {}", batch));
    SearchRequest some = request;
    some.job.training.global_batch = batch;
    BatchPoint point{batch, best_plan(some, effort), 1, 0};
    const double tokens = static_cast<double>(batch * request.job.training.sequence);
    if (critical_batch_tokens > 0) point.tokens_needed = 1 + tokens / critical_batch_tokens;
    if (point.best) {
      point.relative_seconds = point.tokens_needed / point.best->simulation.tokens_per_s;
      fastest = fastest == 0 ? point.relative_seconds : std::min(fastest, point.relative_seconds);
    }
    points.push_back(std::move(point));
  }
  const double smallest = points.empty() ? 1 : points.front().tokens_needed;
  for (BatchPoint& point : points) {
    point.tokens_needed /= smallest;
    if (fastest > 0) point.relative_seconds /= fastest;
  }
  return points;
}

std::vector<SequencePoint> sequences(const SearchRequest& request, Doublings lengths, const Effort& effort) {
  const program::Training& training = request.job.training;
  std::vector<SequencePoint> points;
  for (std::int64_t length = lengths.least; length <= lengths.most && !effort.stop.stop_requested(); length *= 2) {
    if (effort.says) effort.says(fmt::format("sequences of {}", length));
    SearchRequest some = request;
    some.job.training.sequence = length;
    some.job.training.global_batch =
        std::max<std::int64_t>(1, (training.global_batch * training.sequence + length / 2) / length);
    points.push_back({length, some.job.training.global_batch, best_plan(some, effort)});
  }
  return points;
}

}  // namespace trivium::planner
