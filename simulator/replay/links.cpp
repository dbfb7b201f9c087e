// The links of a world: what there is, how much each carries, and which of them can be overbooked at all.
#include <algorithm>
#include <map>
#include <set>

#include "simulator/collectives/network.h"
#include "simulator/collectives/site_links.h"
#include "simulator/replay/world_builder.h"

namespace trivium::simulator {
namespace {

constexpr double kFull = 1 + 1e-9;

/// What one player's stream can take at once of the links it sits at, B/s.
struct Load {
  double port = 0, bus = 0, adapters = 0, uplink = 0;
  void raise_to(const Load& other) {
    port = std::max(port, other.port);
    bus = std::max(bus, other.bus);
    adapters = std::max(adapters, other.adapters);
    uplink = std::max(uplink, other.uplink);
  }
  void add(const Load& other) {
    port += other.port;
    bus += other.bus;
    adapters += other.adapters;
    uplink += other.uplink;
  }
};

/// A link under construction.
struct Candidate {
  double capacity = 0;
  double largest = 0;  // what one user takes alone
  double most = 0;     // what all take together
};

class LinkBuilder {
 public:
  LinkBuilder(World& world, const hardware::Cluster& cluster, const std::vector<Traffic>& traffic)
      : world_(world), cluster_(cluster), traffic_(traffic) {}

  void build() {
    seat();
    limit_groups();
    for (std::int32_t p = 0; p < world_.players(); ++p) count_player(p);
    std::map<std::int32_t, std::int32_t> by_node, by_leaf;
    for (std::int32_t p = 0; p < world_.players(); ++p) {
      Seat& s = seat_of(p);
      const hardware::Node& node = node_of(p);
      s.adapters = keep(by_node, s.node, adapters_[s.node]);
      s.uplink = keep(by_leaf, s.leaf, uplinks_[s.leaf]);
      const auto player = static_cast<std::size_t>(p);
      if (node.topology == hardware::Topology::kPcie) {  // one link to everything
        Candidate both = ports_[player];
        both.capacity = std::max(both.capacity, buses_[player].capacity);
        both.largest = std::max(both.largest, buses_[player].largest);
        both.most += buses_[player].most;
        s.port = s.bus = keep(both);
      } else {
        s.port = keep(ports_[player]);
        s.bus = keep(buses_[player]);
      }
    }
    for (std::size_t i = 0; i < world_.between.size(); ++i) {
      world_.between[i].link = static_cast<std::int32_t>(world_.capacity.size());
      world_.capacity.insert(world_.capacity.end(), 2, site_rates_[i]);
    }
  }

 private:
  Seat& seat_of(std::int32_t p) { return world_.seats[static_cast<std::size_t>(p)]; }
  const hardware::Node& node_of(std::int32_t p) const { return *nodes_[static_cast<std::size_t>(p)]; }

  void seat() {
    for (const hardware::SiteLink& link : cluster_.links) {
      world_.between.push_back({link.a, link.b, -1});
      site_rates_.push_back(rate_of(link).value());
    }
    for (std::int32_t p = 0; p < world_.players(); ++p) {
      const hardware::Node& node = cluster_.node_of_device(p);
      nodes_.push_back(&node);
      Seat s;
      s.node = cluster_.node_index(p);
      s.leaf = node.leaf_nodes > 0 ? s.node / node.leaf_nodes : 0;
      s.site = cluster_.site_of_device(p);
      world_.seats.push_back(s);
      ports_.push_back({(node.intra.bandwidth * node.intra.efficiency).value(), 0, 0});
      buses_.push_back({node.host_link.value(), 0, 0});
      Candidate& adapters = adapters_[s.node];
      adapters.capacity = network_share(node, node.devices, 1).value();
      if (node.leaf_nodes > 0) {
        uplinks_[s.leaf].capacity = adapters.capacity * node.leaf_nodes / node.oversubscription;
      }
    }
  }

  // Siblings of a group that are active on a node at once share its adapters (collective_cost counts them): a flow
  // never asks for more than its part, so siblings alone do not overbook them.
  void limit_groups() {
    for (Communicator& all : world_.communicators) {
      auto& [on_node, in_leaf] = neighbours_.emplace_back();
      for (std::int32_t i = 0; i < all.size; ++i) {
        ++on_node[seat_of(member(all, i)).node];
        ++in_leaf[seat_of(member(all, i)).leaf];
      }
      if (on_node.size() == 1) continue;
      int most = 0;
      for (const auto& [node, count] : on_node) most = std::max(most, count);
      const hardware::Node& node = node_of(member(all, 0));
      const int devices = std::min(node.devices, world_.players());
      all.limit = network_share(node, most, std::max(1, devices / most)).value();
    }
    limit_rings_between_sites();
    std::map<std::pair<std::int32_t, std::int32_t>, int> of_role;  // (node, role) -> players
    for (std::int32_t p = 0; p < world_.players(); ++p) ++of_role[{seat_of(p).node, role_of(p)}];
    for (std::int32_t p = 0; p < world_.players(); ++p) {
      world_.transfer_limit.push_back(network_share(node_of(p), 1, of_role[{seat_of(p).node, role_of(p)}]).value());
    }
  }

  // As share_site_links counts them: groups of one channel and stage that touch both ends of a link share it.
  void limit_rings_between_sites() {
    if (world_.between.empty()) return;
    std::vector<std::int32_t> channel(world_.communicators.size());
    for (std::size_t at = 0; at < world_.communicator.size(); ++at) {
      const std::int32_t id = world_.communicator[at];
      if (id >= 0) channel[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(at) % world_.channels;
    }
    std::map<std::tuple<std::size_t, std::int32_t, std::int32_t>, int> crossing;  // by link, channel, role
    for (const bool counted : {false, true}) {
      for (std::size_t id = 0; id < world_.communicators.size(); ++id) {
        Communicator& all = world_.communicators[id];
        std::set<std::int32_t> sites;
        for (std::int32_t i = 0; i < all.size; ++i) sites.insert(seat_of(member(all, i)).site);
        for (std::size_t link = 0; sites.size() > 1 && link < world_.between.size(); ++link) {
          const SiteJoint& joint = world_.between[link];
          if (!sites.contains(joint.a) || !sites.contains(joint.b)) continue;
          int& groups = crossing[{link, channel[id], role_of(member(all, 0))}];
          if (!counted) ++groups;
          if (counted) all.site_limit = std::min(all.site_limit, site_rates_[link] / groups);
        }
      }
    }
  }

  std::int32_t member(const Communicator& all, std::int32_t i) const {
    return world_.members[static_cast<std::size_t>(all.first + i)];
  }
  std::int32_t role_of(std::int32_t p) const { return world_.role[static_cast<std::size_t>(p)]; }

  void count_player(std::int32_t p) {
    const Seat here = seat_of(p);
    Load all;
    for (int stream = 0; stream < kStreams; ++stream) {
      const Traffic::Stream& fastest =
          traffic_[static_cast<std::size_t>(role_of(p))].streams[static_cast<std::size_t>(stream)];
      Load most;
      for (const auto& [channel, rate] : fastest.rings) most.raise_to(of_ring(p, channel, rate));
      for (const auto& [channel, rate] : fastest.exchanges) most.raise_to(of_exchange(p, channel, rate));
      for (const auto& [role, rate] : fastest.peers) {
        const Seat& there = seat_of(world_.peer(p, role));
        const double outside = std::min(rate, world_.transfer_limit[static_cast<std::size_t>(p)]);
        if (there.node == here.node) most.raise_to({rate, 0, 0, 0});
        if (there.node != here.node) most.raise_to({0, outside, outside, there.leaf != here.leaf ? outside : 0});
      }
      for (const auto& [direction, rate] : fastest.copies) most.raise_to({0, rate, 0, 0});
      all.add(most);
      const auto player = static_cast<std::size_t>(p);
      ports_[player].largest = std::max(ports_[player].largest, most.port);
      buses_[player].largest = std::max(buses_[player].largest, most.bus);
    }
    ports_[static_cast<std::size_t>(p)].most = all.port;
    buses_[static_cast<std::size_t>(p)].most = all.bus;
    adapters_[here.node].most += all.adapters;
    uplinks_[here.leaf].most += all.uplink;
  }

  std::size_t communicator_of(std::int32_t p, std::int32_t channel) const {
    return static_cast<std::size_t>(world_.communicator[static_cast<std::size_t>(p * world_.channels + channel)]);
  }

  // As Flows routes them: a ring enters and leaves each node once, its members there share the adapters' part.
  Load of_ring(std::int32_t p, std::int32_t channel, double rate) {
    const std::size_t id = communicator_of(p, channel);
    const Communicator& all = world_.communicators[id];
    const int on_node = neighbours_[id].on_node.at(seat_of(p).node),
              in_leaf = neighbours_[id].in_leaf.at(seat_of(p).leaf);
    const double flow = std::min({rate, all.limit, all.site_limit});
    Load load;
    if (on_node > 1) load.port = flow;
    if (on_node == all.size) return load;
    load.bus = load.adapters = flow / on_node;
    adapters_[seat_of(p).node].largest = std::max(adapters_[seat_of(p).node].largest, flow);
    if (in_leaf == all.size) return load;
    load.uplink = flow / in_leaf;
    uplinks_[seat_of(p).leaf].largest = std::max(uplinks_[seat_of(p).leaf].largest, flow);
    return load;
  }

  // Each member sends to all others alike.
  Load of_exchange(std::int32_t p, std::int32_t channel, double rate) {
    const std::size_t id = communicator_of(p, channel);
    const Communicator& all = world_.communicators[id];
    const int on_node = neighbours_[id].on_node.at(seat_of(p).node),
              in_leaf = neighbours_[id].in_leaf.at(seat_of(p).leaf);
    const double others = all.size - 1, leave = (all.size - on_node) / others;
    const double flow = leave > 0 ? std::min(rate, all.limit / (on_node * leave)) : rate;
    Load load;
    load.port = flow * (on_node - 1) / others;
    load.bus = load.adapters = flow * leave;
    load.uplink = flow * (all.size - in_leaf) / others;
    Candidate& adapters = adapters_[seat_of(p).node];
    adapters.largest = std::max(adapters.largest, load.adapters * on_node);
    if (in_leaf < all.size) {
      Candidate& uplink = uplinks_[seat_of(p).leaf];
      uplink.largest = std::max(uplink.largest, load.uplink * in_leaf);
    }
    return load;
  }

  // The number of the link, or -1 where it cannot be overbooked or carries nothing that is known of.
  std::int32_t keep(const Candidate& link) {
    const double capacity = std::max(link.capacity, link.largest);
    if (link.capacity <= 0 || link.most <= capacity * kFull) return -1;
    world_.capacity.push_back(capacity);
    world_.capacity.push_back(capacity);
    return static_cast<std::int32_t>(world_.capacity.size()) - 2;
  }
  std::int32_t keep(std::map<std::int32_t, std::int32_t>& known, std::int32_t id, const Candidate& link) {
    const auto [at, fresh] = known.try_emplace(id, -1);
    if (fresh) at->second = keep(link);
    return at->second;
  }

  /// Members of a communicator by node and by leaf.
  struct Neighbours {
    std::map<std::int32_t, int> on_node, in_leaf;
  };

  World& world_;
  const hardware::Cluster& cluster_;
  const std::vector<Traffic>& traffic_;
  std::vector<const hardware::Node*> nodes_;  // by player
  std::vector<Candidate> ports_, buses_;      // by player
  std::vector<Neighbours> neighbours_;        // by communicator
  std::vector<double> site_rates_;            // by link between sites
  std::map<std::int32_t, Candidate> adapters_, uplinks_;
};

}  // namespace

void add_links(World& world, const hardware::Cluster& cluster, const std::vector<Traffic>& traffic) {
  LinkBuilder(world, cluster, traffic).build();
}

}  // namespace trivium::simulator
