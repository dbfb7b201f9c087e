#include "gui/model/rank_memory.h"

#include <algorithm>

#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {

std::vector<RankMemory> memory_of_ranks(const Evaluation& evaluation) {
  const program::Plan& plan = evaluation.scenario.file.job.plan;
  const simulator::PlacedCluster placed(plan, evaluation.scenario.cluster);
  const auto node_of = [&](int rank) -> const hardware::Node& { return placed.get().node_of_device(rank); };
  const auto reserved = [&](int rank) { return static_cast<std::int64_t>(node_of(rank).device.reserved.value()); };
  std::vector<RankMemory> ranks;
  std::vector<std::int64_t> most_reserved(evaluation.memory.size(), 0);  // what the role's figures count
  for (int rank = 0; rank < evaluation.program->mesh.size(); ++rank) {
    const auto role = static_cast<std::size_t>(evaluation.program->role_index(rank));
    most_reserved[role] = std::max(most_reserved[role], reserved(rank));
    ranks.push_back({rank, evaluation.memory[role]});
  }
  for (RankMemory& one : ranks) {
    const hardware::Node& node = node_of(one.rank);
    one.memory.capacity = static_cast<std::int64_t>(node.device.memory.value());
    one.memory.host_capacity =
        static_cast<std::int64_t>(node.host_memory.value()) / std::min(node.devices, std::max(1, plan.ranks()));
    one.memory.reserved += reserved(one.rank) - most_reserved[static_cast<std::size_t>(one.memory.role)];
  }
  return ranks;
}

}  // namespace trivium::gui
