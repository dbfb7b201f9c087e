// From an ordered Program with its costs to what the engine simulates: a instructions for every role and the topology
// they simulate in.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "simulator/cost/costed_program.h"
#include "simulator/replay/instructions.h"
#include "simulator/replay/topology.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {

/// Who takes part.
enum class Ranks {
  kFolded,  ///< one rank for all of a role that do the same at the same time; where links are not shared, of every role
  kEvery
};

struct ReplayOptions {
  Granularity granularity = Granularity::kOp;
  Ranks ranks = Ranks::kFolded;
  bool contention = false;  ///< flows that overlap on a link share it
  int cores = 0;            ///< that the ranks take turns on, instead of links; needs kEvery. 0: a device each
};

/// A collective of `group` on `lane` is a channel: every rank is a member of one communicator of it.
struct Channel {
  program::Group group{};
  program::Lane lane{};
  bool operator==(const Channel&) const = default;
};

class TopologyCache;

/// Instruction streams by role. Valid as long as nothing of the Program is needed but its names.
struct ReplayProgram {
  ReplayOptions options;
  std::vector<InstructionStreams> streams_by_role;
  std::vector<Channel> channels;
  ReplayTopology topology;
};

/// Errors: kRuntime where a stage's order asks a stream to wait for what it does later itself; the message names the
/// rank and the tasks. Precondition: every role has an order; the cluster holds the program.
/// `topologies`: of this cluster, where topologies may be found and are left.
base::Result<ReplayProgram> compile_replay(const CostedProgram& costed, const ReplayOptions& options,
                                           TopologyCache* topologies = nullptr);

}  // namespace trivium::simulator
