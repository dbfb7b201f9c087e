#include "simulator/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/collectives/places.h"
#include "simulator/memory/limits.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

std::string gib(std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / base::kGiB); }

StageLimits limits_of(const hardware::Node& node, int ranks) {
  const auto share = static_cast<std::int64_t>(node.host_memory.value()) / std::min(node.devices, std::max(1, ranks));
  return {static_cast<std::int64_t>(node.device.memory.value() * node.device.usable),
          static_cast<std::int64_t>(node.device.reserved.value()), share, node.devices,
          node.device.kind == hardware::DeviceKind::kCpu};
}

/// What stacks allocate in addition to the model's state: 16-bit gradients that autograd fills before they are added to
/// the fp32 ones (nanotron; DeepSpeed's BF16_Optimizer), and DeepSpeed's flat buckets of 5e8 elements to reduce and to
/// gather with (reduce_bucket_size and allgather_bucket_size, the defaults).
std::int64_t framework_bytes(const program::Program& program, const StageMemory& memory) {
  constexpr std::int64_t kBucketElements = 500'000'000;
  const program::Settings& s = program.settings;
  if (s.frozen) return 0;  // what these stacks fill for adapters is not known
  const bool filled = program.stack.fills_half_gradients && program::is_half(s.precision);
  if (!program.stack.flat_buckets) return filled ? memory.parameters : 0;
  const std::int64_t elements = std::min(kBucketElements, memory.parameters / program::size_of(s.precision));
  const std::int64_t buckets = elements * (program::size_of(s.reduce_dtype) + program::size_of(s.precision));
  const bool wide = program::is_half(s.precision) && !program.stack.keeps_half_gradients(s.precision);
  return buckets + (wide || filled ? memory.parameters : 0);
}

/// Chunks of one kind share their frames.
struct Sharing {
  int kind = 0, chunks = 0, frames = 0;
};

std::vector<Sharing> frames_of(const program::Role& role) {
  std::vector<Sharing> kinds;
  for (const program::Chunk& chunk : role.chunks) {
    const auto known = std::ranges::find(kinds, chunk.kind, &Sharing::kind);
    if (known == kinds.end()) {
      kinds.push_back({chunk.kind, 1, chunk.frames});
    } else {
      ++known->chunks;
    }
  }
  return kinds;
}

/// What a stack's layers hold in addition to the Program's buffers: the head's loss, and gathered inputs of products.
std::int64_t held_by_layers(const program::Program& program, const program::Role& role, int node_devices) {
  const program::Settings& s = program.settings;
  const std::int64_t micro_batch = s.batch.micro_batch_of(role.first_replica), tensor = program.mesh.tensor();
  const std::int64_t tokens = micro_batch * s.batch.sequence / program.mesh.context();
  // In outputs of a layer, of which sequence parallelism leaves a rank 1/t, by the Ultra-Scale Playbook's memory: the
  // gate's activation, four times as wide, along with its product, and what else autograd keeps; but in pipelines whose
  // tensor groups span nodes, one and a half gathered inputs of products, as some of those runs kept two of a layer and
  // others none, by a switch that is not printed.
  const bool gathers = tensor <= node_devices || program.mesh.pipeline() == 1;
  const std::int64_t half_outputs = gathers ? 12 + 3 * (tensor - 1) : 16;
  const std::int64_t kept = micro_batch * s.sent_bytes_per_sample * half_outputs / 2;
  std::int64_t bytes = 0;
  for (const Sharing& sharing : frames_of(role)) {
    const program::ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(sharing.kind)];
    if (kind.head) bytes += (1 + kind.mtp) * program.stack.logit_bytes * tokens * s.padded_vocabulary / tensor;
    if (program.stack.saves_gathered_inputs) bytes += kept * (kind.layers + kind.mtp) * sharing.frames;
  }
  return bytes;
}

/// Outputs of chunks that were sent and wait for their gradient: the Program keeps them in the frames, where the
/// gradient comes back; a stack that frees them holds one of each chunk, the one being sent.
std::int64_t freed_outputs(const program::Program& program, const program::Role& role) {
  const program::Settings& s = program.settings;
  const bool here = !s.is_offloaded(program::Space::kOffloadedActivation);
  if (!program.stack.frees_sent_outputs || program.mesh.pipeline() == 1 || !here) return 0;
  const std::int64_t output = s.sent_bytes_per_sample * s.batch.micro_batch_of(role.first_replica);
  std::int64_t freed = 0;
  for (const Sharing& sharing : frames_of(role)) {
    const bool head = program.kinds[static_cast<std::size_t>(sharing.kind)].head;
    if (!head) freed += output * std::max(0, sharing.frames - sharing.chunks);
  }
  return freed;
}

}  // namespace

std::string StageMemory::name() const {
  return micro_batch > 0 ? fmt::format("stage {} (micro-batches of {})", stage, micro_batch)
                         : fmt::format("stage {}", stage);
}

std::vector<StageLimits> limits_of(const program::Mesh& mesh, std::span<const int> replica_kinds,
                                   const hardware::Cluster& placed) {
  const int kinds = replica_kinds.empty() ? 1 : *std::max_element(replica_kinds.begin(), replica_kinds.end()) + 1;
  const int roles = mesh.pipeline() * kinds;
  if (placed.homogeneous()) {
    return {static_cast<std::size_t>(roles), limits_of(placed.groups.front().node, mesh.size())};
  }
  std::vector<StageLimits> limits;
  for (int role = 0; role < roles; ++role) {
    const int kind = role / mesh.pipeline();
    std::vector<const hardware::Node*> seen;
    for (const int rank : ranks_of_stage(mesh, role % mesh.pipeline())) {
      if (rank >= placed.devices()) break;
      const auto data = static_cast<std::size_t>(mesh.coordinates(rank).data);
      if (!replica_kinds.empty() && replica_kinds[data] != kind) continue;
      const hardware::Node* node = &placed.node_of_device(rank);
      if (std::find(seen.begin(), seen.end(), node) != seen.end()) continue;
      const StageLimits here = limits_of(*node, mesh.size());
      if (seen.empty()) limits.push_back(here);
      seen.push_back(node);
      StageLimits& least = limits.back();
      least.capacity = std::min(least.capacity, here.capacity);
      least.host_capacity = std::min(least.host_capacity, here.host_capacity);
      least.reserved = std::max(least.reserved, here.reserved);
      least.devices = std::min(least.devices, here.devices);
      least.cores |= here.cores;
    }
    if (seen.empty()) limits.emplace_back();
  }
  return limits;
}

StageMemory memory_of(const program::Program& program, const program::Role& role, const StageLimits& limits) {
  const auto bytes = [&](program::Space space) { return role.bytes[static_cast<std::size_t>(space)]; };
  const program::Settings& settings = program.settings;
  StageMemory memory;
  memory.stage = role.stage;
  memory.role = role.replica_kind * program.mesh.pipeline() + role.stage;
  if (settings.batch.micro_batch.size() > 1) memory.micro_batch = settings.batch.micro_batch_of(role.first_replica);
  memory.parameters = bytes(program::Space::kParameter);
  memory.gradients = bytes(program::Space::kGradient);
  memory.optimizer = bytes(program::Space::kOptimizer);
  memory.activations = bytes(program::Space::kFrame) + bytes(program::Space::kTokens) +
                       bytes(program::Space::kDeferred) - freed_outputs(program, role) +
                       held_by_layers(program, role, limits.devices);
  memory.workspace = bytes(program::Space::kWorkspace) + bytes(program::Space::kForwardWorkspace) +
                     bytes(program::Space::kScalar) + bytes(program::Space::kGathered) +
                     bytes(program::Space::kStaging);
  for (std::size_t space = 0; space < program::kSpaces; ++space) {
    if (settings.storage[space] == program::Storage::kHost) memory.host += role.bytes[space];
  }
  const bool sharded = settings.shards_parameters && program::is_half(settings.precision) &&
                       !settings.is_offloaded(program::Space::kOffloadedState);
  for (const program::Chunk& chunk : role.chunks) {
    const program::ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    if (!limits.cores) memory.parameters -= settings.spared_of_cast * kind.bytes.cast_numbers;
  }
  if (sharded && program.stack.wide_shards_only && !settings.frozen)
    memory.parameters = 0;  // they are the optimizer's fp32 copies
  if (sharded && program.stack.half_gradient_shards) memory.gradients /= 2;
  const bool in_16_bits = program::is_half(settings.precision) && program::is_half(settings.reduce_dtype) &&
                          !program.stack.keeps_half_gradients(settings.precision);
  if (in_16_bits && program.stack.gradients_as_reduced) memory.gradients /= 2;
  memory.capacity = limits.capacity;
  memory.host_capacity = limits.host_capacity;
  memory.reserved = limits.reserved + framework_bytes(program, memory);
  return memory;
}

std::vector<StageMemory> memory_of(const program::Program& program, const PlacedCluster& placed) {
  const std::vector<StageLimits> limits = limits_of(program.mesh, program.replica_kinds, placed.get());
  std::vector<StageMemory> stages;
  for (const program::Role& role : program.roles) {
    stages.push_back(memory_of(program, role, limits[stages.size()]));
  }
  return stages;
}

std::vector<StageMemory> memory_of(const program::Program& program, const hardware::Cluster& cluster) {
  return memory_of(program, PlacedCluster(program, cluster));
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
