#include "simulator/studies/checkpoint_size.h"

#include <algorithm>

#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

base::Bytes checkpoint_size(const program::Job& job) {
  const auto parameters = static_cast<double>(models::count_parameters(job.model).total);
  const auto kept = static_cast<double>(size_of(job.plan.precision));
  if (job.training.lora.used()) return base::Bytes(parameters * kept);  // adapters are a thousandth of it
  const program::StateArrays arrays{job.plan.precision, job.plan.moment_dtype,
                                    job.training.optimizer.kind == program::Update::kAdamW};
  return base::Bytes(parameters * (kept + static_cast<double>(arrays.offset(arrays.kept(), 1))));
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
