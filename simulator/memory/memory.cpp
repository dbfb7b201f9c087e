#include "simulator/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/lower/chunk_shape.h"
#include "simulator/collectives/places.h"
#include "simulator/memory/limits.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

std::string gib(std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / base::kGiB); }

StageLimits limits_of(const hardware::Node& node, int ranks) {
  const auto share = static_cast<std::int64_t>(node.host_memory.value()) / std::min(node.devices, std::max(1, ranks));
  return {static_cast<std::int64_t>(node.device.memory.value()),
          static_cast<std::int64_t>(node.device.reserved.value()), share};
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

/// Outputs of chunks that were sent and wait for their gradient: the Program keeps them in the frames, where the
/// gradient comes back; a stack that frees them holds one of each chunk, the one being sent.
std::int64_t freed_outputs(const program::Program& program, const program::Role& role) {
  const program::Plan& plan = program.job.plan;
  const bool here = plan.offload.activations == program::Storage::kNone;
  if (!program.habits.frees_sent_outputs || plan.pipeline == 1 || !here) return 0;
  program::Job of_kind = program.job;
  of_kind.plan.micro_batch = micro_batch_of(plan, role.first_replica);
  const program::ChunkShape shape(of_kind);
  const std::int64_t output = shape.own_tokens * shape.hidden * program::size_of(plan.precision);
  std::int64_t freed = 0;
  for (std::size_t v = 0; v < role.chunks.size(); ++v) {
    const bool head = role.stage == plan.pipeline - 1 && v + 1 == role.chunks.size();
    if (!head) freed += output * std::max(0, role.chunks[v].frames - 1);
  }
  return freed;
}

}  // namespace

std::string StageMemory::name() const {
  return micro_batch > 0 ? fmt::format("stage {} (micro-batches of {})", stage, micro_batch)
                         : fmt::format("stage {}", stage);
}

std::vector<StageLimits> limits_of(const program::Plan& plan, const hardware::Cluster& placed) {
  const std::vector<int> sizes = micro_batch_sizes(plan);
  const auto roles = static_cast<std::size_t>(plan.pipeline) * sizes.size();
  if (placed.homogeneous()) return {roles, limits_of(placed.groups.front().node, plan.ranks())};
  const program::Mesh mesh(plan);
  std::vector<StageLimits> limits;
  for (std::size_t role = 0; role < roles; ++role) {
    const int size = sizes[role / static_cast<std::size_t>(plan.pipeline)];
    std::vector<const hardware::Node*> seen;
    for (const int rank : ranks_of_stage(mesh, static_cast<int>(role) % plan.pipeline)) {
      if (rank >= placed.devices()) break;
      if (micro_batch_of(plan, mesh.coordinates(rank).data) != size) continue;
      const hardware::Node* node = &placed.node_of_device(rank);
      if (std::find(seen.begin(), seen.end(), node) != seen.end()) continue;
      const StageLimits here = limits_of(*node, plan.ranks());
      if (seen.empty()) limits.push_back(here);
      seen.push_back(node);
      StageLimits& least = limits.back();
      least.capacity = std::min(least.capacity, here.capacity);
      least.host_capacity = std::min(least.host_capacity, here.host_capacity);
      least.reserved = std::max(least.reserved, here.reserved);
    }
    if (seen.empty()) limits.emplace_back();
  }
  return limits;
}

StageMemory memory_of(const program::Program& program, const program::Role& role, const StageLimits& limits) {
  const auto bytes = [&](program::Space space) { return role.bytes[static_cast<std::size_t>(space)]; };
  const program::Plan& plan = program.job.plan;
  StageMemory memory;
  memory.stage = role.stage;
  memory.role = role.replica_kind * plan.pipeline + role.stage;
  if (!plan.replica_micro_batch.empty()) memory.micro_batch = micro_batch_of(plan, role.first_replica);
  memory.parameters = bytes(program::Space::kParameter);
  memory.gradients = bytes(program::Space::kGradient);
  memory.optimizer = bytes(program::Space::kOptimizer);
  memory.activations = bytes(program::Space::kFrame) + bytes(program::Space::kTokens) +
                       bytes(program::Space::kDelayed) - freed_outputs(program, role);
  memory.workspace = bytes(program::Space::kWorkspace) + bytes(program::Space::kScalar) +
                     bytes(program::Space::kGathered) + bytes(program::Space::kStaging);
  const program::Offload& offload = plan.offload;
  if (offload.optimizer == program::Storage::kHost) memory.host += bytes(program::Space::kAwayState);
  if (offload.gradients == program::Storage::kHost) memory.host += bytes(program::Space::kAwayGradient);
  if (offload.activations == program::Storage::kHost) memory.host += bytes(program::Space::kAwayFrame);
  const bool sharded =
      plan.zero_stage == 3 && program::is_half(plan.precision) && offload.optimizer == program::Storage::kNone;
  if (sharded && program.habits.wide_shards_only) memory.parameters = 0;  // they are the optimizer's fp32 copies
  if (sharded && program.habits.half_gradient_shards) memory.gradients /= 2;
  memory.capacity = limits.capacity;
  memory.host_capacity = limits.host_capacity;
  memory.reserved = limits.reserved + framework_bytes(program, memory);
  return memory;
}

std::vector<StageMemory> memory_of(const program::Program& program, const hardware::Cluster& cluster) {
  const PlacedCluster placed(program.job.plan, cluster);
  const std::vector<StageLimits> limits = limits_of(program.job.plan, placed.get());
  std::vector<StageMemory> stages;
  for (const program::Role& role : program.roles) {
    stages.push_back(memory_of(program, role, limits[stages.size()]));
  }
  return stages;
}

std::optional<program::Infeasible> out_of_memory(const std::vector<StageMemory>& stages) {
  for (const StageMemory& m : stages) {
    if (m.host > m.host_capacity) {
      return program::Infeasible{kHostMemoryRule, fmt::format("{} offloads {} GiB a rank; its share of the host's "
                                                              "memory is {} GiB",
                                                              m.name(), gib(m.host), gib(m.host_capacity))};
    }
    if (m.total() <= m.capacity) continue;
    return program::Infeasible{
        kMemoryRule,
        fmt::format("{} needs {} GiB of {} GiB: parameters {}, gradients {}, optimizer {}, activations {}, workspace "
                    "{}, reserved {}",
                    m.name(), gib(m.total()), gib(m.capacity), gib(m.parameters), gib(m.gradients), gib(m.optimizer),
                    gib(m.activations), gib(m.workspace), gib(m.reserved))};
  }
  return std::nullopt;
}

}  // namespace trivium::simulator
