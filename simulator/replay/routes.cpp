#include "simulator/replay/routes.h"

#include <algorithm>
#include <limits>
#include <map>

#include "simulator/replay/instructions.h"

namespace trivium::simulator {
namespace {

void use_both_ways(std::vector<sharing::Use>& uses, std::int32_t link, double amount) {
  if (link < 0) return;
  uses.push_back({link, amount});
  uses.push_back({link + 1, amount});
}

void use_one_way(std::vector<sharing::Use>& uses, std::int32_t link, int direction) {
  if (link >= 0) uses.push_back({link + direction, 1});
}

/// Members of a communicator by node, by leaf switch and by site, these in the order of their first members.
struct Neighbours {
  std::map<std::int32_t, std::int32_t> on_node, in_leaf, uplinks;  // the last: leaf -> link
  std::vector<std::pair<std::int32_t, std::int32_t>> at_site;
};

Neighbours neighbours_of(const ReplayTopology& topology, const Communicator& all) {
  Neighbours found;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Attachment& attachment =
        topology.attachments[static_cast<std::size_t>(topology.members[static_cast<std::size_t>(i)])];
    ++found.on_node[attachment.node];
    ++found.in_leaf[attachment.leaf];
    found.uplinks[attachment.leaf] = attachment.uplink;
    if (topology.between.empty()) continue;
    const auto site = std::ranges::find(found.at_site, attachment.site, &std::pair<std::int32_t, std::int32_t>::first);
    if (site == found.at_site.end()) {
      found.at_site.emplace_back(attachment.site, 1);
    } else {
      ++site->second;
    }
  }
  return found;
}

}  // namespace

Routes::Routes(const ReplayTopology& topology) : topology_(topology) {
  if (topology.capacity.empty()) return;
  rings_.resize(topology.communicators.size());
  exchanges_.resize(topology.communicators.size());
}

// A ring enters and leaves every node, leaf, site and device once at the collective's rate; ranks of one node drive
// their own buses, each with its part.
Route Routes::ring(const Communicator& all) const {
  Route route{{}, std::min(all.limit, all.site_limit)};
  const Neighbours neighbours = neighbours_of(topology_, all);
  std::map<std::int32_t, bool> counted;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Attachment& attachment = attachment_of(topology_.members[static_cast<std::size_t>(i)]);
    const int here = neighbours.on_node.at(attachment.node);
    if (here > 1) use_both_ways(route.uses, attachment.port, 1);
    if (here == all.size) continue;
    use_both_ways(route.uses, attachment.bus, 1.0 / here);
    if (counted.try_emplace(attachment.node, true).second) use_both_ways(route.uses, attachment.adapters, 1);
  }
  if (neighbours.in_leaf.size() > 1) {
    for (const auto& [leaf, uplink] : neighbours.uplinks) use_both_ways(route.uses, uplink, 1);
  }
  const auto& sites = neighbours.at_site;
  for (std::size_t at = 0; sites.size() > 1 && at < sites.size(); ++at) {
    use_one_way(route.uses, topology_.link_between(sites[at].first, sites[(at + 1) % sites.size()].first), 0);
  }
  return route;
}

// Each member's rate is spread evenly over all others: what is meant for those of its own node stays there, the rest
// leaves through its bus, its node's adapters and, where they are elsewhere, its leaf's uplinks.
Route Routes::exchange(const Communicator& all) const {
  Route route{{}, all.limit};
  const Neighbours neighbours = neighbours_of(topology_, all);
  const double others = all.size - 1;
  std::map<std::int32_t, bool> counted;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Attachment& attachment = attachment_of(topology_.members[static_cast<std::size_t>(i)]);
    const int here = neighbours.on_node.at(attachment.node);
    if (here > 1) use_both_ways(route.uses, attachment.port, (here - 1) / others);
    if (here == all.size) continue;
    const double leaves = (all.size - here) / others;
    use_both_ways(route.uses, attachment.bus, leaves);
    if (!counted.try_emplace(attachment.node, true).second) continue;
    use_both_ways(route.uses, attachment.adapters, here * leaves);
    route.limit = std::min(route.limit, all.limit / (here * leaves));
  }
  for (const auto& [leaf, uplink] : neighbours.uplinks) {
    const int here = neighbours.in_leaf.at(leaf);
    if (here < all.size) use_both_ways(route.uses, uplink, here * (all.size - here) / others);
  }
  for (const auto& [from, here] : neighbours.at_site) {
    for (const auto& [to, there] : neighbours.at_site) {
      const std::int32_t link = topology_.link_between(from, to);
      if (link >= 0) route.uses.push_back({link, static_cast<double>(here) * there / others});
    }
  }
  return route;
}

void Routes::transfer(std::int32_t from, std::int32_t to) {
  const Attachment& source = attachment_of(from);
  const Attachment& target = attachment_of(to);
  auto& uses = scratch_.uses;
  if (source.node == target.node) {
    use_one_way(uses, source.port, 0);
    use_one_way(uses, target.port, 1);
    return;
  }
  scratch_.limit = topology_.transfer_limit[static_cast<std::size_t>(from)];
  use_one_way(uses, source.bus, 0);
  use_one_way(uses, target.bus, 1);
  use_one_way(uses, source.adapters, 0);
  use_one_way(uses, target.adapters, 1);
  use_one_way(uses, topology_.link_between(source.site, target.site), 0);
  if (source.leaf == target.leaf) return;
  use_one_way(uses, source.uplink, 0);
  use_one_way(uses, target.uplink, 1);
}

const Route& Routes::of(const FlowParty& party) {
  if (topology_.cores >= 0) return on_cores(party);
  if (topology_.attachments.empty()) return folded(party);
  if (party.kind == FlowKind::kCollective || party.kind == FlowKind::kExchange) {
    const bool is_exchange = party.kind == FlowKind::kExchange;
    auto& route = (is_exchange ? exchanges_ : rings_)[static_cast<std::size_t>(party.other)];
    if (!route) {
      const Communicator& all = topology_.communicators[static_cast<std::size_t>(party.other)];
      route = is_exchange ? exchange(all) : ring(all);
    }
    return *route;
  }
  scratch_.uses.clear();
  scratch_.limit = std::numeric_limits<double>::infinity();
  const std::int32_t actor = party.at / kStreams;
  if (party.kind == FlowKind::kTransfer) {
    transfer(actor, party.other / kStreams);
  } else {
    use_one_way(scratch_.uses, attachment_of(actor).bus, party.other);
  }
  return scratch_;
}

// A core for every member.
const Route& Routes::on_cores(const FlowParty& party) {
  const bool joins_many = party.kind == FlowKind::kCollective || party.kind == FlowKind::kExchange;
  const int members = joins_many ? topology_.communicators[static_cast<std::size_t>(party.other)].size : 1;
  scratch_.uses.assign(1, {topology_.cores, static_cast<double>(members)});
  scratch_.limit = 1;
  return scratch_;
}

const Route& Routes::folded(const FlowParty& party) const {
  static const Route kNowhere;
  const bool joins_many = party.kind == FlowKind::kCollective || party.kind == FlowKind::kExchange;
  const std::int32_t from = joins_many ? party.other : party.at / kStreams;
  const std::int32_t to = joins_many ? 0 : party.kind == FlowKind::kCopy ? party.other : party.other / kStreams;
  const auto found = topology_.folded.find({party.kind, from, to});
  return found == topology_.folded.end() ? kNowhere : found->second;
}

}  // namespace trivium::simulator
