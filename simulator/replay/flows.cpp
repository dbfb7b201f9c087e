#include "simulator/replay/flows.h"

#include <algorithm>
#include <cmath>

#include "base/seconds.h"

namespace trivium::simulator {
namespace {

using base::kPsPerSecond;

}  // namespace

Flows::Flows(const ReplayTopology& topology)
    : routes_(topology),
      shared_(!topology.capacity.empty()),
      on_cores_(topology.cores >= 0),
      links_(topology.capacity) {}

bool Flows::enter(const FlowParty& party, std::int64_t begin, std::int64_t ps, double wire) {
  if (!shared_ || (wire <= 0 && !on_cores_) || ps <= 0) return false;
  const Route& route = routes_.of(party);
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
  flow.limit = on_cores_ ? route.limit : std::min(wire * kPsPerSecond / static_cast<double>(ps), route.limit);
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

// An end that moved has left its old event in the queue.
void Flows::drop_stale() {
  while (!events_.empty() && events_.top().version != flows_[static_cast<std::size_t>(events_.top().flow)].version) {
    events_.pop();
  }
}

void Flows::start(std::int32_t id, std::int64_t now) {
  const std::vector<sharing::Use>& uses = routes_.of(flows_[static_cast<std::size_t>(id)].party).uses;
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
