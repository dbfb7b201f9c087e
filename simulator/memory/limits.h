// What the devices of a stage have for it, and the memory of one stage alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "simulator/memory/memory.h"

namespace trivium::simulator {

/// What the devices of a stage have: the least of the kinds of nodes that hold its ranks.
struct StageLimits {
  std::int64_t capacity = 0, reserved = 0;  ///< as in StageMemory; `reserved` without the stack's own buffers
  std::int64_t host_capacity = 0;
  int devices = 0;     ///< of a node
  bool cores = false;  ///< which keep parameters in their own type, whatever a stack spares
};

/// By role: by kind of replica, then by stage. `replica_kinds`: as Program::replica_kinds. `placed`: the cluster as the
/// ranks see it.
std::vector<StageLimits> limits_of(const program::Mesh& mesh, std::span<const int> replica_kinds,
                                   const hardware::Cluster& placed);

/// Of a stage alone. Reads of the program its settings, its stack, its mesh, and of its kinds their bytes and `head`.
StageMemory memory_of(const program::Program& program, const program::Role& role, const StageLimits& limits);

}  // namespace trivium::simulator
