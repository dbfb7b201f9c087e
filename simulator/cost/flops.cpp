#include "simulator/cost/flops.h"

#include <algorithm>

#include "program/lower/adapters.h"
#include "program/lower/layout.h"
#include "simulator/cost/gemm.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

double peak_flops(const program::Plan& plan, const hardware::Cluster& cluster) {
  double sum = 0;
  int devices = 0, left = plan.ranks();
  const PlacedCluster placed(plan, cluster);
  for (const auto& group : placed.get().groups) {
    const hardware::Device& device = group.node.device;
    const auto peak = device.peak.find(arithmetic_on(device, plan.precision));
    const int count = std::min(left, group.count * group.node.devices);  // ranks fill the nodes in order
    left -= count;
    if (peak != device.peak.end()) sum += peak->second.value() * count;
    devices += count;
  }
  return devices > 0 ? sum / devices : 0;
}

namespace {

// Of a token, with the attention core as published (models::FlopsPerToken).
double selective_flops(const program::Job& job, const models::FlopsPerToken& per_token) {
  using program::Module;
  const program::ModuleSet modules = modules_of(job.plan);
  const models::ForwardFlops of = models::module_flops(job.model, job.training.sequence);
  double flops = modules.has(Module::kCoreAttention) ? per_token.hardware_selective : per_token.model;
  if (modules.has(Module::kMlp)) flops += of.mlp;
  if (modules.has(Module::kMixture)) {
    flops += of.mixture;
  } else if (modules.has(Module::kSharedExperts)) {
    flops += of.shared;
  }
  return flops + (modules.has(Module::kLatentUp) ? of.latent_heads : 0);
}

}  // namespace

IterationFlops iteration_flops(const program::Job& job) {
  const models::FlopsPerToken per_token = program::flops_per_token(job);
  const double tokens = static_cast<double>(job.training.global_batch) * static_cast<double>(job.training.sequence);
  const std::vector<int> layers = program::chunk_layers(job);
  double extra = 0;  // of the recomputed layers, as a share of all
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto how = job.plan.stage_recompute.empty() ? job.plan.recompute : job.plan.stage_recompute[i];
    const double whole = how == program::Recompute::kFull        ? per_token.hardware_full
                         : how == program::Recompute::kSelective ? selective_flops(job, per_token)
                                                                 : per_token.model;
    const int modules = i + 1 == layers.size() ? job.model.mtp_depth() : 0;  // their layers are recomputed likewise
    const int first = job.plan.recompute_layers;
    const bool some = how == program::Recompute::kFull && first > 0 && first < layers[i];
    const double share = static_cast<double>(some ? first : layers[i] + modules) /
                         static_cast<double>(job.model.layers + job.model.mtp_depth());
    extra += (whole - per_token.model) * share;
  }
  return {per_token.model * tokens, (per_token.model + extra) * tokens};
}

}  // namespace trivium::simulator
