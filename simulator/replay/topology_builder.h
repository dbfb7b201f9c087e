// Who simulates a Program's roles, and over which links they reach each other.
#pragma once

#include "simulator/replay/replay_program.h"
#include "simulator/replay/traffic.h"

namespace trivium::simulator {

/// Players, roles and communicators. Every-rank actors are numbered as the ranks are, folded ones as the roles.
ReplayTopology make_topology(const program::Program& program, const std::vector<Traffic>& traffic,
                             const std::vector<Channel>& channels, Ranks ranks);

/// Adds the links of the cluster to a topology of every rank: adapters of nodes, uplinks of leaf switches, ports and
/// buses of devices, and what joins sites. A link of the first four that could not be overbooked even if every stream
/// of every actor used it at once is left out, so what crosses only such links needs no events. A link holds at least
/// what its largest user takes alone. Rank r runs on device r of the cluster.
void add_links(ReplayTopology& topology, const hardware::Cluster& cluster, const std::vector<Traffic>& traffic);

/// The topology of every rank with one actor for every class of ranks that do the same at the same time, and one link
/// for every class of links: the coarsest equitable partition that is found by refining the partition by role. Ranks of
/// a class meet the same classes and send over links of the same classes, and each link of a class carries as much of
/// every class of flows; so flows of a class begin together, their max-min fair rates are equal, and equal to those of
/// one flow that takes of one link of each class what they all take. Precondition: links were added, one at least.
ReplayTopology fold(const ReplayTopology& every, const std::vector<Traffic>& traffic);

/// Makes cores of one machine what all work and communication of the actors needs: each takes one core, or with the
/// others its fair share; ranks that wait for others need none, but each is woken at a price.
void share_cores(ReplayTopology& topology, int cores, base::Seconds wake_up);

/// That price, from the time of a small all-reduce of more ranks than cores (`Node::allreduce_latency`), where the
/// profile has one; else a usual one.
base::Seconds wake_up(const hardware::Node& node, int cores);

}  // namespace trivium::simulator
