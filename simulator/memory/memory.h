// Memory of every stage's ranks, by part, against what the device has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

/// Bytes of one rank of a stage; of one kind of replica, where their micro-batches differ.
struct StageMemory {
  int stage = 0;
  int role = 0;         ///< place among the Program's
  int micro_batch = 0;  ///< samples, where there are several kinds; else 0
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;
  std::int64_t activations = 0;  ///< frames: micro-batches in flight, with their tokens and what a split backward keeps
  std::int64_t workspace = 0;    ///< with buckets that are whole only while they are used
  std::int64_t reserved = 0;  ///< context, communication buffers, fragmentation: the profile's; the stack's own buffers
  std::int64_t host = 0;      ///< offloaded to the host's memory; not on the device
  std::int64_t host_capacity = 0;  ///< each rank's share of the smallest host
  std::int64_t capacity = 0;       ///< of the smallest device the stage runs on
  std::string name() const;        ///< "stage 2", "stage 2 (micro-batches of 4)"
  std::int64_t total() const { return parameters + gradients + optimizer + activations + workspace + reserved; }
};

/// One entry per role. The map is the one the runtime allocates by, so parts but `reserved` are exact for it.
std::vector<StageMemory> memory_of(const program::Program& program, const PlacedCluster& placed);
/// The same where nothing else has placed the ranks yet.
std::vector<StageMemory> memory_of(const program::Program& program, const hardware::Cluster& cluster);

/// Rules of out_of_memory(): it is the device's memory that does not hold a stage, or the host's what was offloaded.
inline constexpr const char* kMemoryRule = "memory";
inline constexpr const char* kHostMemoryRule = "host-memory";

/// The first stage that does not fit, on the device or in the host's memory, with its parts, or nothing.
std::optional<program::Infeasible> out_of_memory(const std::vector<StageMemory>& stages);

}  // namespace trivium::simulator
