#include "simulator/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/placed_cluster.h"

namespace trivium::simulator {
namespace {

std::string gib(std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / edge::kGiB); }

// Node kinds that hold ranks of the stage.
std::vector<const hardware::Node*> nodes_of_stage(const program::Program& program, const hardware::Cluster& cluster,
                                                  int stage) {
  if (cluster.homogeneous()) return {&cluster.groups.front().node};
  const program::Mesh mesh(program.job.plan);
  std::vector<const hardware::Node*> nodes;
  const int ranks = std::min(mesh.size(), cluster.devices());
  for (int rank = 0; rank < ranks; ++rank) {
    const hardware::Node* node = &cluster.node_of_device(rank);
    if (mesh.coordinates(rank).pipeline != stage) continue;
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  return nodes;
}

/// What DeepSpeed allocates beside the model's state: flat buckets of 5e8 elements to reduce and to gather with
/// (reduce_bucket_size and allgather_bucket_size, the defaults), and with bf16 the 16-bit gradients that autograd fills
/// before they are added to the fp32 ones (BF16_Optimizer).
std::int64_t framework_bytes(const program::Program& program, const StageMemory& memory) {
  constexpr std::int64_t kBucketElements = 500'000'000;
  if (!program.habits.name.starts_with("megatron-deepspeed")) return 0;
  const program::Plan& plan = program.job.plan;
  const std::int64_t elements = std::min(kBucketElements, memory.parameters / program::size_of(plan.precision));
  const std::int64_t buckets = elements * (program::size_of(plan.reduce_dtype) + program::size_of(plan.precision));
  const bool wide = program::is_half(plan.precision) && !program.habits.keeps_half_gradients(plan.precision);
  return buckets + (wide ? memory.parameters : 0);
}

}  // namespace

std::vector<StageMemory> memory_of(const program::Program& program, const hardware::Cluster& cluster) {
  const PlacedCluster placed(program.job.plan, cluster);
  std::vector<StageMemory> stages;
  for (const program::Role& role : program.roles) {
    const auto bytes = [&](program::Space space) { return role.bytes[static_cast<std::size_t>(space)]; };
    StageMemory memory;
    memory.stage = role.stage;
    memory.parameters = bytes(program::Space::kParameter);
    memory.gradients = bytes(program::Space::kGradient);
    memory.optimizer = bytes(program::Space::kOptimizer);
    memory.activations =
        bytes(program::Space::kFrame) + bytes(program::Space::kTokens) + bytes(program::Space::kDelayed);
    memory.workspace =
        bytes(program::Space::kWorkspace) + bytes(program::Space::kScalar) + bytes(program::Space::kGathered);
    bool first = true;
    for (const hardware::Node* node : nodes_of_stage(program, placed.get(), role.stage)) {
      const auto capacity = static_cast<std::int64_t>(node->device.memory.value());
      const auto reserved = static_cast<std::int64_t>(node->device.reserved.value());
      memory.capacity = first ? capacity : std::min(memory.capacity, capacity);
      memory.reserved = first ? reserved : std::max(memory.reserved, reserved);
      first = false;
    }
    memory.reserved += framework_bytes(program, memory);
    stages.push_back(memory);
  }
  return stages;
}

std::optional<program::Infeasible> out_of_memory(const std::vector<StageMemory>& stages) {
  for (const StageMemory& m : stages) {
    if (m.total() <= m.capacity) continue;
    return program::Infeasible{
        "memory",
        fmt::format(
            "stage {} needs {} GiB of {} GiB: parameters {}, gradients {}, optimizer {}, activations {}, workspace "
            "{}, reserved {}",
            m.stage, gib(m.total()), gib(m.capacity), gib(m.parameters), gib(m.gradients), gib(m.optimizer),
            gib(m.activations), gib(m.workspace), gib(m.reserved))};
  }
  return std::nullopt;
}

}  // namespace trivium::simulator
