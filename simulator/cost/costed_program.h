// A Program with a duration for every op on the devices that run it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "program/lower/lower.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

/// Durations in picoseconds, by role, body and op. Ranks of a role do the same work at the same pace; on a mixed
/// cluster the slowest node kind that the role touches sets it.
struct CostedProgram {
  const program::Program* program = nullptr;
  std::shared_ptr<const PlacedCluster> placed;  ///< where its ranks run
  std::vector<std::vector<std::vector<std::int64_t>>>
      op_ps;                       ///< [role][body][op]; empty for bodies the role never runs
  bool asynchronous_lanes = true;  ///< false: tensor, data and copy work runs on the compute lane, in host order
};

/// Precondition: unsupported_by (simulator/cost/supported.h) accepts the program's job on the cluster. A transfer
/// between stages is costed at both ends, each with its own node; the engine holds both to the slower. The program and
/// the cluster must outlive the result.
CostedProgram cost(const program::Program& program, std::shared_ptr<const PlacedCluster> placed);

/// The same where nothing else has placed the ranks yet.
CostedProgram cost(const program::Program& program, const hardware::Cluster& cluster);

/// Why the program cannot be simulated in whole picoseconds: all that its roles do, one op after the other, takes
/// longer than is surely told apart, `times` over. Rule `iteration-in-range`. Nothing where it can.
std::optional<program::Infeasible> too_long(const CostedProgram& costed, double times = 1);

/// The rank that stands for all ranks of a role (Program::representative).
int representative(const program::Program& program, int role);

}  // namespace trivium::simulator
