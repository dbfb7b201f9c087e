#include "simulator/replay/world_builder.h"

#include <algorithm>
#include <cmath>

#include "edge/seconds.h"
#include "simulator/placed_cluster.h"
#include "simulator/replay/body_template.h"
#include "simulator/replay/script_writer.h"

namespace trivium::simulator {
namespace {

using edge::kPsPerSecond;

// Whether the role's script ever uses the channel.
std::vector<char> users_of(const std::vector<Script>& scripts, std::size_t channel) {
  std::vector<char> uses(scripts.size(), 0);
  for (std::size_t role = 0; role < scripts.size(); ++role) {
    for (const auto& stream : scripts[role].streams) {
      for (const Instruction& in : stream) {
        if (in.joint == Joint::kCollective && in.partner == static_cast<std::int32_t>(channel)) uses[role] = 1;
      }
    }
  }
  return uses;
}

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

}  // namespace

World make_world(const program::Program& program, const std::vector<Script>& scripts,
                 const std::vector<Channel>& channels, Ranks ranks) {
  World world;
  const bool every = ranks == Ranks::kEvery;
  const int players = every ? program.mesh.size() : static_cast<int>(program.roles.size());
  for (int p = 0; p < players; ++p) {
    world.role.push_back(every ? program.role_index(p) : p);
    world.rank.push_back(every ? p : representative(program, p));
  }
  if (every && program.mesh.pipeline() > 1) world.role_stride = program.mesh.rank({0, 0, 0, 1});
  world.channels = static_cast<std::int32_t>(channels.size());
  world.communicator.assign(static_cast<std::size_t>(players) * channels.size(), -1);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const std::vector<char> used = users_of(scripts, c);
    for (int p = 0; p < players; ++p) {
      const auto slot = [&](int player) -> std::int32_t& {
        return world.communicator[static_cast<std::size_t>(player) * channels.size() + c];
      };
      if (used[static_cast<std::size_t>(world.role[static_cast<std::size_t>(p)])] == 0 || slot(p) >= 0) continue;
      const std::vector<int> members =
          every ? program.mesh.members(channels[c].group, p) : folded_members(program, channels[c].group, p);
      for (const int member : members) slot(member) = static_cast<std::int32_t>(world.communicators.size());
      world.communicators.push_back(
          {static_cast<std::int32_t>(world.members.size()), static_cast<std::int32_t>(members.size())});
      world.members.insert(world.members.end(), members.begin(), members.end());
    }
  }
  return world;
}

void share_cores(World& world, int cores, edge::Seconds wake_up) {
  world.capacity = {static_cast<double>(cores)};
  world.cores = 0;
  world.wake_up_ps = std::llround(wake_up.value() * kPsPerSecond);
}

// n ranks that sleep and are woken for a small all-reduce, none of them late, take turns on C cores: n / C times what
// it takes awake and to be woken.
edge::Seconds wake_up(const hardware::Node& node, int cores) {
  const auto measured = node.allreduce_latency.upper_bound(cores);
  // A futex sleep, its wake-up and the switch to the rank: the usual size of it on Linux.
  if (measured == node.allreduce_latency.end()) return edge::Seconds(5e-6);
  const auto& [ranks, seconds] = *measured;
  return std::max(edge::Seconds(0), seconds * (static_cast<double>(cores) / ranks) - node.intra.latency);
}

edge::Result<Cast> cast(const CostedProgram& costed, const hardware::Cluster& cluster, const CastOptions& options) {
  Cast made;
  made.options = options;
  for (std::size_t role = 0; role < costed.program->roles.size(); ++role) {
    auto script = write_script(costed, static_cast<int>(role), options, made.channels);
    if (!script) return script.error();
    made.scripts.push_back(std::move(script).value());
  }
  made.world = make_world(*costed.program, made.scripts, made.channels, options.ranks);
  if (options.cores > 0) {
    share_cores(made.world, options.cores, wake_up(cluster.groups.front().node, options.cores));
  }
  if (!options.contention) return made;
  const PlacedCluster placed(costed.program->job.plan, cluster);
  if (options.ranks == Ranks::kEvery) {
    add_links(made.world, placed.get(), made.scripts);
  } else {
    World every = make_world(*costed.program, made.scripts, made.channels, Ranks::kEvery);
    add_links(every, placed.get(), made.scripts);
    if (!every.capacity.empty()) made.world = fold(every, made.scripts);
  }
  return made;
}

}  // namespace trivium::simulator
