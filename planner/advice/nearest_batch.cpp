#include "planner/advice/nearest_batch.h"

#include <algorithm>
#include <cmath>

#include "planner/search/one_space.h"
#include "planner/space/space.h"

namespace trivium::planner {
namespace {

constexpr double kNoticeable = 0.01;
constexpr double kGapOfABatch = 0.02;  // of the iteration: what counts is that it is faster

// With the fields of `best` that another batch hardly changes.
SearchRequest beside(SearchRequest request, const program::Plan& best) {
  program::Plan& plan = request.job.plan;
  plan.placement = best.placement;
  plan.attention = best.attention;
  plan.overlap.tensor = best.overlap.tensor;
  plan.overlap.expert = best.overlap.expert;
  plan.offload.activations = best.offload.activations;
  plan.compression = best.compression;
  request.fixed.insert(
      {"placement", "attention", "overlap.tensor", "overlap.expert", "offload.activations", "compression"});
  return request;
}

}  // namespace

std::vector<std::int64_t> batches_near(std::int64_t batch, int devices) {
  std::int64_t odd = devices, twos = 1;
  for (; odd % 2 == 0; odd /= 2) {
    if (batch % (2 * twos) == 0) twos *= 2;
  }
  if (batch % odd == 0) return {};
  const std::int64_t step = odd * twos;
  std::vector<std::int64_t> found;
  for (const std::int64_t near : {batch / step * step, (batch / step + 1) * step}) {
    if (near > 0 && 2 * std::abs(near - batch) <= batch) found.push_back(near);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](std::int64_t a, std::int64_t b) { return std::abs(a - batch) < std::abs(b - batch); });
  return found;
}

std::optional<NearestBatch> nearest_batch(const SearchRequest& request, const SearchResult& result,
                                          const Effort& effort) {
  if (!request.cluster.homogeneous() || request.ranks > 0 || result.best.empty()) return std::nullopt;
  // As good on all devices as on those of the answer, they would make this much more.
  const double idle = static_cast<double>(request.cluster.devices()) / result.best.front().plan.ranks() - 1;
  if (idle > 0 && idle < kNoticeable) return std::nullopt;
  const std::int64_t batch = request.job.training.global_batch;
  const auto sample_ps = static_cast<double>(result.best.front().simulation.iteration_ps) / static_cast<double>(batch);
  for (const std::int64_t near : batches_near(batch, request.cluster.devices())) {
    if (effort.stop.stop_requested()) break;
    SearchRequest other = beside(request, result.best.front().plan);
    other.job.training.global_batch = near;
    other.ranks = ranks_of(request);
    other.best = 1;
    other.others = 0;
    other.gap = kGapOfABatch;
    other.limit_ps = std::llround(sample_ps * static_cast<double>(near) / (1 + kNoticeable));
    SearchResult found = search_as_given(other, effort.threads, effort.stop, {});
    if (found.best.empty()) continue;
    const auto ps = static_cast<double>(found.best.front().simulation.iteration_ps) / static_cast<double>(near);
    if (ps * (1 + kNoticeable) > sample_ps) continue;
    return NearestBatch{near, std::move(found.best.front()), sample_ps / ps - 1};
  }
  return std::nullopt;
}

}  // namespace trivium::planner
