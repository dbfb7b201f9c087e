#include "simulator/studies/whole_training.h"

#include <algorithm>

#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

constexpr double kSecondsPerHour = 3600;

}  // namespace

std::optional<WholeTraining> whole_training(const program::Job& job, const hardware::Cluster& cluster,
                                            const Simulation& simulation) {
  if (job.training.total_tokens == 0) return std::nullopt;
  double watts = 0, dollars_per_hour = 0;
  bool priced = true;
  int left = job.plan.ranks();
  const PlacedCluster placed(job.plan, cluster);
  for (const hardware::NodeGroup& group : placed.get().groups) {
    const int devices = std::min(left, group.count * group.node.devices);
    const int nodes = (devices + group.node.devices - 1) / group.node.devices;
    watts += devices * group.node.device.full_power().value() + nodes * group.node.overhead_power.value();
    dollars_per_hour += nodes * group.node.price.value();
    priced = priced && (nodes == 0 || group.node.price.value() > 0);
    left -= devices;
  }
  WholeTraining whole;
  const Certainty& sure = simulation.certainty;
  const bool judged = sure.expected_s > 0 && simulation.iteration_s > 0;
  const double slower = judged ? sure.expected_s / simulation.iteration_s : 1;
  if (judged) {
    whole.least = sure.iteration_s.low / sure.expected_s;
    whole.most = sure.iteration_s.high / sure.expected_s;
  }
  whole.seconds = static_cast<double>(job.training.total_tokens) / simulation.tokens_per_s * slower;
  whole.energy_joules = watts * whole.seconds;
  if (priced) whole.cost_usd = dollars_per_hour * whole.seconds / kSecondsPerHour;
  return whole;
}

}  // namespace trivium::simulator
