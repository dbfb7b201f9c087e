#include "simulator/engine/flows.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

Flows::Flows(const World& world)
    : world_(world),
      links_(world.capacity),
      communicator_uses_(world.capacity.empty() ? 0 : world.communicators.size()),
      known_(communicator_uses_.size(), 0) {}

// A ring enters and leaves every node, leaf and device once at the collective's rate; ranks of one node drive their own
// buses, each with its part.
std::vector<sharing::Use> Flows::collective_uses(const Communicator& all) const {
  std::vector<sharing::Use> uses;
  std::map<std::int32_t, int> on_node;
  std::map<std::int32_t, std::int32_t> leaves;
  const auto seat_of = [&](std::int32_t member) -> const Seat& {
    return world_.seats[static_cast<std::size_t>(world_.members[static_cast<std::size_t>(member)])];
  };
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    ++on_node[seat_of(i).node];
    leaves[seat_of(i).leaf] = seat_of(i).uplink;
  }
  std::map<std::int32_t, bool> counted;
  for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
    const Seat& seat = seat_of(i);
    const int here = on_node[seat.node];
    if (here > 1) use_both_ways(uses, seat.port, 1);
    if (on_node.size() == 1) continue;
    use_both_ways(uses, seat.bus, 1.0 / here);
    if (counted.try_emplace(seat.node, true).second) use_both_ways(uses, seat.adapters, 1);
  }
  if (leaves.size() > 1) {
    for (const auto& [leaf, uplink] : leaves) use_both_ways(uses, uplink, 1);
  }
  return uses;
}

void Flows::transfer_uses(std::int32_t from, std::int32_t to) {
  const Seat& source = world_.seats[static_cast<std::size_t>(from)];
  const Seat& target = world_.seats[static_cast<std::size_t>(to)];
  if (source.node == target.node) {
    use_one_way(scratch_, source.port, 0);
    use_one_way(scratch_, target.port, 1);
    return;
  }
  use_one_way(scratch_, source.bus, 0);
  use_one_way(scratch_, target.bus, 1);
  use_one_way(scratch_, source.adapters, 0);
  use_one_way(scratch_, target.adapters, 1);
  if (source.leaf == target.leaf) return;
  use_one_way(scratch_, source.uplink, 0);
  use_one_way(scratch_, target.uplink, 1);
}

const std::vector<sharing::Use>& Flows::uses_of(const FlowParty& party) {
  if (party.kind == FlowKind::kCollective) {
    const auto id = static_cast<std::size_t>(party.other);
    if (known_[id] == 0) {
      known_[id] = 1;
      communicator_uses_[id] = collective_uses(world_.communicators[id]);
    }
    return communicator_uses_[id];
  }
  scratch_.clear();
  const std::int32_t player = party.at / kStreams;
  if (party.kind == FlowKind::kTransfer) {
    transfer_uses(player, party.other / kStreams);
  } else {
    use_one_way(scratch_, world_.seats[static_cast<std::size_t>(player)].bus, party.other);
  }
  return scratch_;
}

double Flows::limit_of(const FlowParty& party) const {
  if (party.kind == FlowKind::kCollective) return world_.communicators[static_cast<std::size_t>(party.other)].limit;
  const std::int32_t player = party.at / kStreams;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (party.kind == FlowKind::kCopy) return kNone;
  const bool local = world_.seats[static_cast<std::size_t>(player)].node ==
                     world_.seats[static_cast<std::size_t>(party.other / kStreams)].node;
  return local ? kNone : world_.transfer_limit[static_cast<std::size_t>(player)];
}

bool Flows::enter(const FlowParty& party, std::int64_t begin, std::int64_t ps, double wire) {
  if (world_.capacity.empty() || wire <= 0 || ps <= 0) return false;
  if (uses_of(party).empty()) return false;
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
  flow.limit = std::min(wire * kPicoseconds / static_cast<double>(ps), limit_of(party));
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
  const std::vector<sharing::Use>& uses = uses_of(flows_[static_cast<std::size_t>(id)].party);
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
