#include "planner/bound/site_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/seconds.h"
#include "models/model.h"
#include "simulator/collectives/places.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::planner {
namespace {

constexpr double kLeastBytes = 2;  // of a gradient: fp16 or bf16

/// Matrices that every replica has of a layer, in the mean.
double parameters_of_layer(const models::Model& model) {
  const models::ParameterCount count = models::count_parameters(model);
  const std::int64_t shared = count.attention + (model.experts ? 0 : count.mlp);
  return static_cast<double>(shared) / static_cast<double>(model.layers);
}

}  // namespace

// A reduce-scatter of S bytes moves (n-1)/n S between neighbours of its ring, an all-reduce no less. A stage of l
// layers takes l c; the slowest of stages with l_1 + ... = L layers takes L / (1/c_1 + ...) or more.
std::int64_t least_reduction_ps(const program::Job& job, const hardware::Cluster& cluster) {
  const program::Plan& plan = job.plan;
  if (cluster.links.empty() || plan.data * plan.context == 1) return 0;
  if (plan.compression == program::Compression::kTopK) return 0;
  if (job.training.lora.used()) return 0;  // of the layers' matrices nothing is reduced
  const simulator::PlacedCluster placed(plan, cluster);
  const program::Mesh mesh(plan);
  const double sent = kLeastBytes * parameters_of_layer(job.model) / plan.tensor;
  double layers_a_second = 0;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    double slowest = 0;
    const int rank = mesh.rank({0, 0, 0, stage});
    for (const auto& group : simulator::placements_of(mesh, placed.get(), program::Group::kData, rank)) {
      const double n = group.ranks;
      slowest = std::max(slowest, sent * (n - 1) / n / group.between.bandwidth.value());
    }
    if (slowest == 0) return 0;  // it may hold as good as all layers
    layers_a_second += 1 / slowest;
  }
  constexpr double kRounding = 1 - 1e-9;
  return static_cast<std::int64_t>(static_cast<double>(job.model.layers) / layers_a_second * base::kPsPerSecond *
                                   kRounding);
}

}  // namespace trivium::planner
