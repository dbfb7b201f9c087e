// The links of a topology: what there is, how much each carries, and which of them can be overbooked at all.
#include <algorithm>
#include <map>
#include <set>

#include "simulator/collectives/network.h"
#include "simulator/collectives/site_links.h"
#include "simulator/replay/topology_builder.h"

namespace trivium::simulator {
namespace {

constexpr double kFull = 1 + 1e-9;

/// What one actor's stream can take at once of the links it sits at, B/s.
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
  LinkBuilder(ReplayTopology& topology, const hardware::Cluster& cluster, const std::vector<Traffic>& traffic)
      : topology_(topology), cluster_(cluster), traffic_(traffic) {}

  void build() {
    attach();
    limit_groups();
    for (std::int32_t p = 0; p < topology_.actors(); ++p) count_actor(p);
    std::map<std::int32_t, std::int32_t> by_node, by_leaf;
    for (std::int32_t p = 0; p < topology_.actors(); ++p) {
      Attachment& s = attachment_of(p);
      const hardware::Node& node = node_of(p);
      s.adapters = keep(by_node, s.node, adapters_[s.node]);
      s.uplink = keep(by_leaf, s.leaf, uplinks_[s.leaf]);
      const auto actor = static_cast<std::size_t>(p);
      if (node.topology == hardware::Topology::kPcie) {  // one link to everything
        Candidate both = ports_[actor];
        both.capacity = std::max(both.capacity, buses_[actor].capacity);
        both.largest = std::max(both.largest, buses_[actor].largest);
        both.most += buses_[actor].most;
        s.port = s.bus = keep(both);
      } else {
        s.port = keep(ports_[actor]);
        s.bus = keep(buses_[actor]);
      }
    }
    for (std::size_t i = 0; i < topology_.between.size(); ++i) {
      topology_.between[i].link = static_cast<std::int32_t>(topology_.capacity.size());
      topology_.capacity.insert(topology_.capacity.end(), 2, site_rates_[i]);
    }
  }

 private:
  Attachment& attachment_of(std::int32_t p) { return topology_.attachments[static_cast<std::size_t>(p)]; }
  const hardware::Node& node_of(std::int32_t p) const { return *nodes_[static_cast<std::size_t>(p)]; }

  void attach() {
    for (const hardware::SiteLink& link : cluster_.links) {
      topology_.between.push_back({link.a, link.b, -1});
      site_rates_.push_back(rate_of(link).value());
    }
    for (std::int32_t p = 0; p < topology_.actors(); ++p) {
      const hardware::Node& node = cluster_.node_of_device(p);
      nodes_.push_back(&node);
      Attachment s;
      s.node = cluster_.node_index(p);
      s.leaf = node.leaf_nodes > 0 ? s.node / node.leaf_nodes : 0;
      s.site = cluster_.site_of_device(p);
      topology_.attachments.push_back(s);
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
    for (Communicator& all : topology_.communicators) {
      auto& [on_node, in_leaf] = neighbours_.emplace_back();
      for (std::int32_t i = 0; i < all.size; ++i) {
        ++on_node[attachment_of(member(all, i)).node];
        ++in_leaf[attachment_of(member(all, i)).leaf];
      }
      if (on_node.size() == 1) continue;
      int most = 0;
      for (const auto& [node, count] : on_node) most = std::max(most, count);
      const hardware::Node& node = node_of(member(all, 0));
      const int devices = std::min(node.devices, topology_.actors());
      all.limit = network_share(node, most, std::max(1, devices / most)).value();
    }
    limit_rings_between_sites();
    std::map<std::pair<std::int32_t, std::int32_t>, int> of_role;  // (node, role) -> actors
    for (std::int32_t p = 0; p < topology_.actors(); ++p) ++of_role[{attachment_of(p).node, role_of(p)}];
    for (std::int32_t p = 0; p < topology_.actors(); ++p) {
      topology_.transfer_limit.push_back(
          network_share(node_of(p), 1, of_role[{attachment_of(p).node, role_of(p)}]).value());
    }
  }

  // As share_site_links counts them: groups of one channel and stage that touch both ends of a link share it.
  void limit_rings_between_sites() {
    if (topology_.between.empty()) return;
    std::vector<std::int32_t> channel(topology_.communicators.size());
    for (std::size_t at = 0; at < topology_.communicator.size(); ++at) {
      const std::int32_t id = topology_.communicator[at];
      if (id >= 0) channel[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(at) % topology_.channels;
    }
    std::map<std::tuple<std::size_t, std::int32_t, std::int32_t>, int> crossing;  // by link, channel, role
    for (const bool counted : {false, true}) {
      for (std::size_t id = 0; id < topology_.communicators.size(); ++id) {
        Communicator& all = topology_.communicators[id];
        std::set<std::int32_t> sites;
        for (std::int32_t i = 0; i < all.size; ++i) sites.insert(attachment_of(member(all, i)).site);
        for (std::size_t link = 0; sites.size() > 1 && link < topology_.between.size(); ++link) {
          const SiteConnection& connection = topology_.between[link];
          if (!sites.contains(connection.a) || !sites.contains(connection.b)) continue;
          int& groups = crossing[{link, channel[id], role_of(member(all, 0))}];
          if (!counted) ++groups;
          if (counted) all.site_limit = std::min(all.site_limit, site_rates_[link] / groups);
        }
      }
    }
  }

  std::int32_t member(const Communicator& all, std::int32_t i) const {
    return topology_.members[static_cast<std::size_t>(all.first + i)];
  }
  std::int32_t role_of(std::int32_t p) const { return topology_.role[static_cast<std::size_t>(p)]; }

  void count_actor(std::int32_t p) {
    const Attachment here = attachment_of(p);
    Load all;
    for (int stream = 0; stream < kStreams; ++stream) {
      const Traffic::Stream& fastest =
          traffic_[static_cast<std::size_t>(role_of(p))].streams[static_cast<std::size_t>(stream)];
      Load most;
      for (const auto& [channel, rate] : fastest.rings) most.raise_to(of_ring(p, channel, rate));
      for (const auto& [channel, rate] : fastest.exchanges) most.raise_to(of_exchange(p, channel, rate));
      for (const auto& [role, rate] : fastest.peers) {
        const Attachment& there = attachment_of(topology_.peer(p, role));
        const double outside = std::min(rate, topology_.transfer_limit[static_cast<std::size_t>(p)]);
        if (there.node == here.node) most.raise_to({rate, 0, 0, 0});
        if (there.node != here.node) most.raise_to({0, outside, outside, there.leaf != here.leaf ? outside : 0});
      }
      for (const auto& [direction, rate] : fastest.copies) most.raise_to({0, rate, 0, 0});
      all.add(most);
      const auto actor = static_cast<std::size_t>(p);
      ports_[actor].largest = std::max(ports_[actor].largest, most.port);
      buses_[actor].largest = std::max(buses_[actor].largest, most.bus);
    }
    ports_[static_cast<std::size_t>(p)].most = all.port;
    buses_[static_cast<std::size_t>(p)].most = all.bus;
    adapters_[here.node].most += all.adapters;
    uplinks_[here.leaf].most += all.uplink;
  }

  std::size_t communicator_of(std::int32_t p, std::int32_t channel) const {
    return static_cast<std::size_t>(topology_.communicator[static_cast<std::size_t>(p * topology_.channels + channel)]);
  }

  // As Flows routes them: a ring enters and leaves each node once, its members there share the adapters' part.
  Load of_ring(std::int32_t p, std::int32_t channel, double rate) {
    const std::size_t id = communicator_of(p, channel);
    const Communicator& all = topology_.communicators[id];
    const int on_node = neighbours_[id].on_node.at(attachment_of(p).node),
              in_leaf = neighbours_[id].in_leaf.at(attachment_of(p).leaf);
    const double flow = std::min({rate, all.limit, all.site_limit});
    Load load;
    if (on_node > 1) load.port = flow;
    if (on_node == all.size) return load;
    load.bus = load.adapters = flow / on_node;
    adapters_[attachment_of(p).node].largest = std::max(adapters_[attachment_of(p).node].largest, flow);
    if (in_leaf == all.size) return load;
    load.uplink = flow / in_leaf;
    uplinks_[attachment_of(p).leaf].largest = std::max(uplinks_[attachment_of(p).leaf].largest, flow);
    return load;
  }

  // Each member sends to all others alike.
  Load of_exchange(std::int32_t p, std::int32_t channel, double rate) {
    const std::size_t id = communicator_of(p, channel);
    const Communicator& all = topology_.communicators[id];
    const int on_node = neighbours_[id].on_node.at(attachment_of(p).node),
              in_leaf = neighbours_[id].in_leaf.at(attachment_of(p).leaf);
    const double others = all.size - 1, leave = (all.size - on_node) / others;
    const double flow = leave > 0 ? std::min(rate, all.limit / (on_node * leave)) : rate;
    Load load;
    load.port = flow * (on_node - 1) / others;
    load.bus = load.adapters = flow * leave;
    load.uplink = flow * (all.size - in_leaf) / others;
    Candidate& adapters = adapters_[attachment_of(p).node];
    adapters.largest = std::max(adapters.largest, load.adapters * on_node);
    if (in_leaf < all.size) {
      Candidate& uplink = uplinks_[attachment_of(p).leaf];
      uplink.largest = std::max(uplink.largest, load.uplink * in_leaf);
    }
    return load;
  }

  // The number of the link, or -1 where it cannot be overbooked or carries nothing that is known of.
  std::int32_t keep(const Candidate& link) {
    const double capacity = std::max(link.capacity, link.largest);
    if (link.capacity <= 0 || link.most <= capacity * kFull) return -1;
    topology_.capacity.push_back(capacity);
    topology_.capacity.push_back(capacity);
    return static_cast<std::int32_t>(topology_.capacity.size()) - 2;
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

  ReplayTopology& topology_;
  const hardware::Cluster& cluster_;
  const std::vector<Traffic>& traffic_;
  std::vector<const hardware::Node*> nodes_;  // by actor
  std::vector<Candidate> ports_, buses_;      // by actor
  std::vector<Neighbours> neighbours_;        // by communicator
  std::vector<double> site_rates_;            // by link between sites
  std::map<std::int32_t, Candidate> adapters_, uplinks_;
};

}  // namespace

void add_links(ReplayTopology& topology, const hardware::Cluster& cluster, const std::vector<Traffic>& traffic) {
  LinkBuilder(topology, cluster, traffic).build();
}

}  // namespace trivium::simulator
