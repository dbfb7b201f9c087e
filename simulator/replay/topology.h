// Who simulates: ranks, their roles, who communicates with whom, and over which links.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "simulator/sharing/max_min.h"

namespace trivium::simulator {

/// Members of one collective, as a range of ReplayTopology::members.
struct Communicator {
  std::int32_t first = 0, size = 0;
  double limit = std::numeric_limits<double>::infinity();       ///< B/s it can move even when alone with its siblings
  double site_limit = std::numeric_limits<double>::infinity();  ///< likewise of a ring, by the links between sites
};

/// Where an actor sits. Links are numbers of ReplayTopology::capacity; -1: none that could ever be overbooked. Every
/// link is two: out is `x`, in is `x + 1`.
struct Attachment {
  std::int32_t node = 0, leaf = 0, site = 0;
  std::int32_t port = -1;      ///< device to device inside the node
  std::int32_t bus = -1;       ///< device to host and to the adapters
  std::int32_t adapters = -1;  ///< of the node
  std::int32_t uplink = -1;    ///< of the leaf switch
};

/// What joins two sites, a < b: `link` is from a to b, `link + 1` from b to a.
struct SiteConnection {
  std::int32_t a = 0, b = 0, link = -1;
};

enum class FlowKind : std::uint8_t {
  kCollective,
  kExchange,  ///< a collective in which each sends to every other
  kTransfer,
  kCopy,
  kWork  ///< one actor's own, where actors take turns on cores
};

/// What a flow takes of each link, and how fast it may be even when alone with its siblings, B/s.
struct Route {
  std::vector<sharing::Use> uses;
  double limit = std::numeric_limits<double>::infinity();
};

struct ReplayTopology {
  std::vector<std::int32_t> role;   ///< by actor
  std::vector<std::int32_t> rank;   ///< by actor: the rank it is, or stands for
  std::int32_t role_stride = 1;     ///< distance between actors that differ by one in their role alone
  std::vector<std::int32_t> peers;  ///< [actor * roles + role]: whom it sends to and hears from; empty: by the stride
  std::vector<std::int32_t> stands_for;  ///< by actor: how many ranks; empty: one each
  std::int32_t channels = 0;
  std::vector<std::int32_t> communicator;  ///< [actor * channels + channel]
  std::vector<Communicator> communicators;
  std::vector<std::int32_t> members;
  std::vector<double> capacity;         ///< of links, B/s; empty: nothing is shared
  std::vector<Attachment> attachments;  ///< by actor; empty where `capacity` is, and in folded topologies
  std::vector<SiteConnection> between;  ///< sites that links join
  std::vector<double> transfer_limit;   ///< by actor, B/s out of the node, with its siblings
  std::int32_t cores = -1;              ///< the link that stands for the cores actors take turns on; -1: a device each
  std::int64_t wake_up_ps = 0;          ///< with `cores`: what a rendezvous costs each of its members in addition

  /// Where actors stand for classes of ranks, links stand for classes of links, and a flow takes of them what those
  /// that it stands for take together. By kind, then communicator and 0, sender and receiver, or actor and
  /// direction. Empty where actors stand for themselves.
  std::map<std::tuple<FlowKind, std::int32_t, std::int32_t>, Route> folded;

  std::int32_t actors() const { return static_cast<std::int32_t>(role.size()); }
  /// Whom an actor of another role exchanges transfers with.
  std::int32_t peer(std::int32_t actor, std::int32_t of_role) const {
    const auto p = static_cast<std::size_t>(actor);
    if (peers.empty()) return actor + (of_role - role[p]) * role_stride;
    return peers[p * (peers.size() / role.size()) + static_cast<std::size_t>(of_role)];
  }
  /// The link from one site to another; -1: none, or the same site.
  std::int32_t link_between(std::int32_t from, std::int32_t to) const {
    for (const SiteConnection& rendezvous : between) {
      if (rendezvous.a == from && rendezvous.b == to) return rendezvous.link;
      if (rendezvous.b == from && rendezvous.a == to) return rendezvous.link + 1;
    }
    return -1;
  }
};

}  // namespace trivium::simulator
