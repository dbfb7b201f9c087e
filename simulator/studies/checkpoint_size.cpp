#include "simulator/studies/checkpoint_size.h"

#include <algorithm>

#include "program/lower/adapters.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

base::Bytes checkpoint_size(const program::Job& job) {
  const models::ParameterCount count = models::count_parameters(job.model);
  const auto parameters = static_cast<double>(count.total);
  const auto kept = static_cast<double>(size_of(job.plan.precision));
  const auto state = [&](bool second_moment) {
    const program::StateArrays arrays{job.plan.precision, job.plan.moment_dtype, second_moment};
    return static_cast<double>(arrays.offset(arrays.kept(), 1));
  };
  if (job.training.lora.used()) {
    const auto adapters = static_cast<double>(program::count_adapters(job));
    return base::Bytes(parameters * kept + adapters * (kept + state(true)));
  }
  const bool muon = job.training.optimizer.kind == program::Update::kMuon;
  const auto by_muon = muon ? static_cast<double>(count.attention + count.mlp + count.mtp) : 0.0;
  return base::Bytes(parameters * kept + by_muon * state(false) + (parameters - by_muon) * state(true));
}

int nodes_of(const program::Plan& plan, const hardware::Cluster& cluster) {
  int left = plan.ranks(), nodes = 0;
  const PlacedCluster placed(plan, cluster);
  for (const hardware::NodeGroup& group : placed.get().groups) {
    const int devices = std::min(left, group.count * group.node.devices);
    nodes += (devices + group.node.devices - 1) / group.node.devices;
    left -= devices;
  }
  return nodes;
}

}  // namespace trivium::simulator
