#include "simulator/engine/flows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "simulator/engine/script.h"

namespace trivium::simulator {
namespace {

constexpr double kPicoseconds = 1e12;

void use_both_ways(std::vector<sharing::Use>& uses, std::int32_t link, double amount) {
  if (link < 0) return;
  uses.push_back({link, amount});
  uses.push_back({link + 1, amount});
}

void use_one_way(std::vector<sharing::Use>& uses, std::int32_t link, int direction) {
  if (link >= 0) uses.push_back({link + direction, 1});
}

/// Members of a communicator by node and by leaf switch.
struct Neighbours {
  std::map<std::int32_t, std::int32_t> on_node, in_leaf, uplinks;  // the last: leaf -> link
};

Neighbours neighbours_of(const World& world, const Communicator& all) {
  Neighbours found;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Seat& seat = world.seats[static_cast<std::size_t>(world.members[static_cast<std::size_t>(i)])];
    ++found.on_node[seat.node];
    ++found.in_leaf[seat.leaf];
    found.uplinks[seat.leaf] = seat.uplink;
  }
  return found;
}

}  // namespace

Flows::Flows(const World& world) : world_(world), links_(world.capacity) {
  if (world.capacity.empty()) return;
  rings_.resize(world.communicators.size());
  exchanges_.resize(world.communicators.size());
}

// A ring enters and leaves every node, leaf and device once at the collective's rate; ranks of one node drive their own
// buses, each with its part.
Flows::Route Flows::ring(const Communicator& all) const {
  Route route{{}, all.limit};
  const Neighbours neighbours = neighbours_of(world_, all);
  std::map<std::int32_t, bool> counted;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Seat& seat = world_.seats[static_cast<std::size_t>(world_.members[static_cast<std::size_t>(i)])];
    const int here = neighbours.on_node.at(seat.node);
    if (here > 1) use_both_ways(route.uses, seat.port, 1);
    if (here == all.size) continue;
    use_both_ways(route.uses, seat.bus, 1.0 / here);
    if (counted.try_emplace(seat.node, true).second) use_both_ways(route.uses, seat.adapters, 1);
  }
  if (neighbours.in_leaf.size() > 1) {
    for (const auto& [leaf, uplink] : neighbours.uplinks) use_both_ways(route.uses, uplink, 1);
  }
  return route;
}

// Each member's rate is spread evenly over all others: what is meant for those of its own node stays there, the rest
// leaves through its bus, its node's adapters and, where they are elsewhere, its leaf's uplinks.
Flows::Route Flows::exchange(const Communicator& all) const {
  Route route{{}, all.limit};
  const Neighbours neighbours = neighbours_of(world_, all);
  const double others = all.size - 1;
  std::map<std::int32_t, bool> counted;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Seat& seat = world_.seats[static_cast<std::size_t>(world_.members[static_cast<std::size_t>(i)])];
    const int here = neighbours.on_node.at(seat.node);
    if (here > 1) use_both_ways(route.uses, seat.port, (here - 1) / others);
    if (here == all.size) continue;
    const double leaves = (all.size - here) / others;
    use_both_ways(route.uses, seat.bus, leaves);
    if (!counted.try_emplace(seat.node, true).second) continue;
    use_both_ways(route.uses, seat.adapters, here * leaves);
    route.limit = std::min(route.limit, all.limit / (here * leaves));
  }
  for (const auto& [leaf, uplink] : neighbours.uplinks) {
    const int here = neighbours.in_leaf.at(leaf);
    if (here < all.size) use_both_ways(route.uses, uplink, here * (all.size - here) / others);
  }
  return route;
}

void Flows::route_transfer(std::int32_t from, std::int32_t to) {
  const Seat& source = world_.seats[static_cast<std::size_t>(from)];
  const Seat& target = world_.seats[static_cast<std::size_t>(to)];
  auto& uses = scratch_.uses;
  if (source.node == target.node) {
    use_one_way(uses, source.port, 0);
    use_one_way(uses, target.port, 1);
    return;
  }
  scratch_.limit = world_.transfer_limit[static_cast<std::size_t>(from)];
  use_one_way(uses, source.bus, 0);
  use_one_way(uses, target.bus, 1);
  use_one_way(uses, source.adapters, 0);
  use_one_way(uses, target.adapters, 1);
  if (source.leaf == target.leaf) return;
  use_one_way(uses, source.uplink, 0);
  use_one_way(uses, target.uplink, 1);
}

const Flows::Route& Flows::route_of(const FlowParty& party) {
  if (party.kind == FlowKind::kCollective || party.kind == FlowKind::kExchange) {
    const bool is_exchange = party.kind == FlowKind::kExchange;
    auto& route = (is_exchange ? exchanges_ : rings_)[static_cast<std::size_t>(party.other)];
    if (!route) {
      const Communicator& all = world_.communicators[static_cast<std::size_t>(party.other)];
      route = is_exchange ? exchange(all) : ring(all);
    }
    return *route;
  }
  scratch_.uses.clear();
  scratch_.limit = std::numeric_limits<double>::infinity();
  const std::int32_t player = party.at / kStreams;
  if (party.kind == FlowKind::kTransfer) {
    route_transfer(player, party.other / kStreams);
  } else {
    use_one_way(scratch_.uses, world_.seats[static_cast<std::size_t>(player)].bus, party.other);
  }
  return scratch_;
}

bool Flows::enter(const FlowParty& party, std::int64_t begin, std::int64_t ps, double wire) {
  if (world_.capacity.empty() || wire <= 0 || ps <= 0) return false;
  const Route& route = route_of(party);
  if (route.uses.empty()) return false;
  auto id = static_cast<std::int32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[static_cast<std::size_t>(id)];
  const std::uint32_t version = flow.version + 1;
  flow = {};
  flow.version = version;
  flow.party = party;
  flow.begin = begin;
  flow.ps = ps;
  flow.limit = std::min(wire * kPicoseconds / static_cast<double>(ps), route.limit);
  events_.push({begin, true, entered_++, id, version});
  return true;
}

std::optional<FlowEnd> Flows::next() {
  const Event event = events_.top();
  events_.pop();
  if (event.starts) {
    start(event.flow, event.time);
    drop_stale();
    return std::nullopt;
  }
  Flow& flow = flows_[static_cast<std::size_t>(event.flow)];
  const FlowEnd ended{flow.party, flow.begin, event.time};
  links_.remove(flow.link, changed_);
  flow.link = -1;
  ++flow.version;
  free_.push_back(event.flow);
  retime(changed_, event.time);
  drop_stale();
  return ended;
}

// An end that moved left its old event behind.
void Flows::drop_stale() {
  while (!events_.empty() && events_.top().version != flows_[static_cast<std::size_t>(events_.top().flow)].version) {
    events_.pop();
  }
}

void Flows::start(std::int32_t id, std::int64_t now) {
  const std::vector<sharing::Use>& uses = route_of(flows_[static_cast<std::size_t>(id)].party).uses;
  Flow& flow = flows_[static_cast<std::size_t>(id)];
  flow.since = now;
  flow.left = static_cast<double>(flow.ps);
  flow.link = links_.add(flow.limit, uses, changed_);
  if (static_cast<std::size_t>(flow.link) >= by_link_.size()) by_link_.resize(static_cast<std::size_t>(flow.link) + 1);
  by_link_[static_cast<std::size_t>(flow.link)] = id;
  retime(changed_, now);
}

void Flows::retime(const std::vector<int>& changed, std::int64_t now) {
  for (const int link : changed) {
    const std::int32_t id = by_link_[static_cast<std::size_t>(link)];
    Flow& flow = flows_[static_cast<std::size_t>(id)];
    flow.left -= flow.speed * static_cast<double>(now - flow.since);
    flow.since = now;
    flow.speed = links_.rate(link) / flow.limit;
    flow.end = now + std::max<std::int64_t>(0, std::llround(flow.left / flow.speed));
    events_.push({flow.end, false, entered_++, id, ++flow.version});
  }
}

}  // namespace trivium::simulator
