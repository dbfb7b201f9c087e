#include "simulator/replay/topology_builder.h"

#include <algorithm>
#include <cmath>

#include "base/seconds.h"
#include "simulator/placement/placed_cluster.h"
#include "simulator/replay/body_template.h"
#include "simulator/replay/instruction_writer.h"
#include "simulator/replay/topology_cache.h"

namespace trivium::simulator {
namespace {

using base::kPsPerSecond;

// Roles whose ranks are members of groups of a rank of this one.
std::vector<int> folded_members(const program::Program& program, program::Group group, int role) {
  const program::Role& mine = program.roles[static_cast<std::size_t>(role)];
  const int last = program.mesh.pipeline() - 1;
  std::vector<int> members;
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    const program::Role& other = program.roles[r];
    const bool ends = group == program::Group::kEmbedding && other.stage != 0 && other.stage != last;
    const bool stage = other.stage == mine.stage || (joins_stages(group) && !ends);
    const bool kind = other.replica_kind == mine.replica_kind || joins_replicas(group);
    if (stage && kind) members.push_back(static_cast<int>(r));
  }
  return members;
}

std::int32_t ranks_of(const program::Program& program, const program::Role& role) {
  const auto& kinds = program.replica_kinds;  // by data coordinate
  const int replicas =
      kinds.empty() ? program.mesh.data() : static_cast<int>(std::count(kinds.begin(), kinds.end(), role.replica_kind));
  return program.mesh.size() / program.mesh.pipeline() / program.mesh.data() * replicas;
}

}  // namespace

ReplayTopology make_topology(const program::Program& program, const std::vector<Traffic>& traffic,
                             const std::vector<Channel>& channels, Ranks ranks) {
  ReplayTopology topology;
  const bool every = ranks == Ranks::kEvery;
  const int actors = every ? program.mesh.size() : static_cast<int>(program.roles.size());
  for (int p = 0; p < actors; ++p) {
    topology.role.push_back(every ? program.role_index(p) : p);
    topology.rank.push_back(every ? p : representative(program, p));
    if (!every) topology.stands_for.push_back(ranks_of(program, program.roles[static_cast<std::size_t>(p)]));
  }
  if (every && program.mesh.pipeline() > 1) topology.role_stride = program.mesh.rank({0, 0, 0, 1});
  topology.channels = static_cast<std::int32_t>(channels.size());
  topology.communicator.assign(static_cast<std::size_t>(actors) * channels.size(), -1);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    std::vector<char> used;  // by role
    for (const Traffic& role : traffic) used.push_back(role.channels.contains(static_cast<std::int32_t>(c)) ? 1 : 0);
    for (int p = 0; p < actors; ++p) {
      const auto slot = [&](int actor) -> std::int32_t& {
        return topology.communicator[static_cast<std::size_t>(actor) * channels.size() + c];
      };
      if (used[static_cast<std::size_t>(topology.role[static_cast<std::size_t>(p)])] == 0 || slot(p) >= 0) continue;
      const std::vector<int> members =
          every ? program.mesh.members(channels[c].group, p) : folded_members(program, channels[c].group, p);
      for (const int member : members) slot(member) = static_cast<std::int32_t>(topology.communicators.size());
      topology.communicators.push_back(
          {static_cast<std::int32_t>(topology.members.size()), static_cast<std::int32_t>(members.size())});
      topology.members.insert(topology.members.end(), members.begin(), members.end());
    }
  }
  return topology;
}

void share_cores(ReplayTopology& topology, int cores, base::Seconds wake_up) {
  topology.capacity = {static_cast<double>(cores)};
  topology.cores = 0;
  topology.wake_up_ps = std::llround(wake_up.value() * kPsPerSecond);
}

// n ranks that sleep and are woken for a small all-reduce, none of them late, take turns on C cores: n / C times what
// it takes awake and to be woken.
base::Seconds wake_up(const hardware::Node& node, int cores) {
  const auto measured = node.allreduce_latency.upper_bound(cores);
  // A futex sleep, its wake-up and the switch to the rank: the usual size of it on Linux.
  if (measured == node.allreduce_latency.end()) return base::Seconds(5e-6);
  const auto& [ranks, seconds] = *measured;
  return std::max(base::Seconds(0), seconds * (static_cast<double>(cores) / ranks) - node.intra.latency);
}

base::Result<ReplayProgram> compile_replay(const CostedProgram& costed, const ReplayOptions& options,
                                           TopologyCache* topologies) {
  ReplayProgram made;
  made.options = options;
  for (std::size_t role = 0; role < costed.program->roles.size(); ++role) {
    auto instructions = write_instructions(costed, static_cast<int>(role), options, made.channels);
    if (!instructions) return instructions.error();
    made.streams_by_role.push_back(std::move(instructions).value());
  }
  const program::Program& program = *costed.program;
  std::vector<Traffic> traffic = traffic_of(made.streams_by_role);
  if (options.cores > 0) {
    made.topology = make_topology(program, traffic, made.channels, options.ranks);
    share_cores(made.topology, options.cores, wake_up(costed.placed->given().groups.front().node, options.cores));
    return made;
  }
  const auto with_links = [&](Ranks ranks) {
    ReplayTopology topology =
        make_topology(program, traffic, made.channels, options.contention ? Ranks::kEvery : ranks);
    if (options.contention) add_links(topology, costed.placed->get(), traffic);
    if (ranks == Ranks::kEvery || !options.contention) return topology;
    return topology.capacity.empty() ? make_topology(program, traffic, made.channels, ranks) : fold(topology, traffic);
  };
  const bool kept = topologies != nullptr && options.contention && options.ranks == Ranks::kFolded;
  if (!kept) {
    made.topology = with_links(options.ranks);
    return made;
  }
  made.topology =
      topologies->of({program.mesh, program.replica_kinds, program.settings.stage_nodes, made.channels, traffic},
                     [&] { return with_links(Ranks::kFolded); });
  return made;
}

}  // namespace trivium::simulator
