// Who plays: ranks, their roles, who communicates with whom, and over which links.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "simulator/sharing/max_min.h"

namespace trivium::simulator {

/// Members of one collective, as a range of World::members.
struct Communicator {
  std::int32_t first = 0, size = 0;
  double limit = std::numeric_limits<double>::infinity();       ///< B/s it can move even when alone with its siblings
  double site_limit = std::numeric_limits<double>::infinity();  ///< likewise of a ring, by the links between sites
};

/// Where a player sits. Links are numbers of World::capacity; -1: none that could ever be overbooked. Every link is
/// two: out is `x`, in is `x + 1`.
struct Seat {
  std::int32_t node = 0, leaf = 0, site = 0;
  std::int32_t port = -1;      ///< device to device inside the node
  std::int32_t bus = -1;       ///< device to host and to the adapters
  std::int32_t adapters = -1;  ///< of the node
  std::int32_t uplink = -1;    ///< of the leaf switch
};

/// What joins two sites, a < b: `link` is from a to b, `link + 1` from b to a.
struct SiteJoint {
  std::int32_t a = 0, b = 0, link = -1;
};

enum class FlowKind : std::uint8_t {
  kCollective,
  kExchange,  ///< a collective in which each sends to every other
  kTransfer,
  kCopy,
  kWork  ///< one player's own, where players take turns on cores
};

/// What a flow takes of which links, and how fast it may be even when alone with its siblings, B/s.
struct Route {
  std::vector<sharing::Use> uses;
  double limit = std::numeric_limits<double>::infinity();
};

struct World {
  std::vector<std::int32_t> role;   ///< by player
  std::vector<std::int32_t> rank;   ///< by player: the rank it is, or stands for
  std::int32_t role_stride = 1;     ///< distance between players that differ by one in their role alone
  std::vector<std::int32_t> peers;  ///< [player * roles + role]: whom it sends to and hears from; empty: by the stride
  std::vector<std::int32_t> stands_for;  ///< by player: how many ranks; empty: one each
  std::int32_t channels = 0;
  std::vector<std::int32_t> communicator;  ///< [player * channels + channel]
  std::vector<Communicator> communicators;
  std::vector<std::int32_t> members;
  std::vector<double> capacity;        ///< of links, B/s; empty: nothing is shared
  std::vector<Seat> seats;             ///< by player; empty where `capacity` is, and in folded worlds
  std::vector<SiteJoint> between;      ///< sites that links join
  std::vector<double> transfer_limit;  ///< by player, B/s out of the node, with its siblings
  std::int32_t cores = -1;             ///< the link that stands for the cores players take turns on; -1: a device each
  std::int64_t wake_up_ps = 0;         ///< with `cores`: what a meeting costs each of its members besides

  /// Where players stand for classes of ranks, links stand for classes of links, and a flow takes of them what those
  /// that it stands for take together. By kind, then communicator and 0, sender and receiver, or player and
  /// direction. Empty where players stand for themselves.
  std::map<std::tuple<FlowKind, std::int32_t, std::int32_t>, Route> folded;

  std::int32_t players() const { return static_cast<std::int32_t>(role.size()); }
  /// Whom a player of another role exchanges transfers with.
  std::int32_t peer(std::int32_t player, std::int32_t of_role) const {
    const auto p = static_cast<std::size_t>(player);
    if (peers.empty()) return player + (of_role - role[p]) * role_stride;
    return peers[p * (peers.size() / role.size()) + static_cast<std::size_t>(of_role)];
  }
  /// The link from one site to another; -1: none, or the same site.
  std::int32_t link_between(std::int32_t from, std::int32_t to) const {
    for (const SiteJoint& joint : between) {
      if (joint.a == from && joint.b == to) return joint.link;
      if (joint.b == from && joint.a == to) return joint.link + 1;
    }
    return -1;
  }
};

}  // namespace trivium::simulator
