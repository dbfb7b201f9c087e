#include "simulator/sharing/shared_links.h"

#include <algorithm>

namespace trivium::simulator::sharing {
namespace {

constexpr double kFull = 1 + 1e-9;   // shares that add up to a capacity but for rounding do not overbook it
constexpr double kSame = 1 + 1e-11;  // rates, and loads of links, that differ by rounding alone

}  // namespace

SharedLinks::SharedLinks(std::vector<double> capacity) : links_(capacity.size()) {
  for (std::size_t i = 0; i < capacity.size(); ++i) links_[i].capacity = capacity[i];
}

// Added up anew each time, in the order in which the flows came: flows that are gone leave no rounding error behind.
void SharedLinks::book(Link& link) {
  double wanted = 0;
  for (const Crossing& c : link.flows) wanted += c.amount * flow_at(c.flow).limit;
  link.overbooked = wanted > link.capacity * kFull;
}

int SharedLinks::add(double limit, std::span<const Use> uses, std::vector<int>& changed) {
  changed.clear();
  int id = static_cast<int>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& flow = flow_at(id);
  flow.limit = flow.rate = limit;
  flow.held_by = -1;
  flow.uses.assign(uses.begin(), uses.end());
  ++active_;
  bool crowded = false;
  for (const Use& use : uses) {
    Link& link = link_at(use.link);
    link.flows.push_back({id, use.amount});
    book(link);
    crowded |= link.overbooked;
  }
  if (!crowded) {
    changed.push_back(id);
    return id;
  }
  flow.rate = 0;  // so far
  mark(id);
  solve_marked(changed);
  return id;
}

void SharedLinks::remove(int id, std::vector<int>& changed) {
  changed.clear();
  for (const Use& use : flow_at(id).uses) {
    Link& link = link_at(use.link);
    std::erase_if(link.flows, [id](const Crossing& c) { return c.flow == id; });
    if (!link.overbooked) continue;
    for (const Crossing& c : link.flows) {
      if (flow_at(c.flow).held_by == use.link) mark(c.flow);
    }
    book(link);
  }
  flow_at(id).uses.clear();
  free_.push_back(id);
  --active_;
  if (!marked_.empty()) solve_marked(changed);
}

void SharedLinks::mark(int id) {
  Flow& flow = flow_at(id);
  if (flow.marked) return;
  flow.marked = true;
  marked_.push_back(id);
}

void SharedLinks::solve_marked(std::vector<int>& changed) {
  do {
    pose_problem();
    solver_.solve(capacity_, demands_);
  } while (mark_faster() || mark_wronged());
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    Flow& flow = flow_at(marked_[i]);
    flow.marked = false;
    const std::int32_t held_by = solver_.held_by()[i];
    flow.held_by = held_by < 0 ? -1 : numbered_[static_cast<std::size_t>(held_by)];
    if (flow.rate == solver_.rates()[i]) continue;
    flow.rate = solver_.rates()[i];
    changed.push_back(marked_[i]);
  }
  for (const std::int32_t link : numbered_) link_at(link).number = -1;
  marked_.clear();
  std::sort(changed.begin(), changed.end());
}

// A link that is not overbooked binds nobody.
void SharedLinks::pose_problem() {
  for (const std::int32_t link : numbered_) link_at(link).number = -1;
  capacity_.clear();
  numbered_.clear();
  uses_.clear();
  ends_.clear();
  for (const int f : marked_) {
    for (const Use& use : flow_at(f).uses) {
      Link& link = link_at(use.link);
      if (!link.overbooked) continue;
      if (link.number < 0) {
        link.number = static_cast<std::int32_t>(capacity_.size());
        double left = link.capacity;
        for (const Crossing& c : link.flows) {
          if (!flow_at(c.flow).marked) left -= c.amount * flow_at(c.flow).rate;
        }
        capacity_.push_back(left);
        numbered_.push_back(use.link);
      }
      uses_.push_back({link.number, use.amount});
    }
    ends_.push_back(uses_.size());
  }
  demands_.clear();
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    demands_.push_back({flow_at(marked_[i]).limit, std::span<const Use>(uses_).subspan(begin, ends_[i] - begin)});
  }
}

// On a link that holds a marked flow nobody may be faster than it. Those that are, the fastest first: the others may
// then be left as they are. Whether there were any.
bool SharedLinks::mark_faster() {
  const std::size_t before = marked_.size();
  for (std::size_t i = 0; i < before; ++i) {
    if (solver_.held_by()[i] < 0) continue;
    const Link& link = link_at(numbered_[static_cast<std::size_t>(solver_.held_by()[i])]);
    double fastest = solver_.rates()[i];
    for (const Crossing& c : link.flows) {
      if (!flow_at(c.flow).marked) fastest = std::max(fastest, flow_at(c.flow).rate);
    }
    if (fastest <= solver_.rates()[i] * kSame) continue;
    for (const Crossing& c : link.flows) {
      if (flow_at(c.flow).rate * kSame >= fastest) mark(c.flow);
    }
  }
  return marked_.size() > before;
}

// Where a marked flow's rate changed, a flow that is held by the same link has no reason any more if the link is no
// longer full or somebody on it is faster now. Whether there were any.
bool SharedLinks::mark_wronged() {
  const std::size_t before = marked_.size();
  load_.assign(numbered_.size(), 0);
  fastest_.assign(numbered_.size(), 0);
  touched_.assign(numbered_.size(), 0);
  for (std::size_t i = 0; i < before; ++i) {
    const double rate = solver_.rates()[i];
    for (const Use& use : demands_[i].uses) {
      const auto link = static_cast<std::size_t>(use.link);
      load_[link] += use.amount * rate;
      fastest_[link] = std::max(fastest_[link], rate);
      if (rate != flow_at(marked_[i]).rate) touched_[link] = 1;
    }
  }
  for (std::size_t n = 0; n < numbered_.size(); ++n) {
    if (touched_[n] == 0) continue;
    const Link& link = link_at(numbered_[n]);
    const bool full = capacity_[n] - load_[n] <= link.capacity * (kSame - 1);
    for (const Crossing& c : link.flows) {
      const Flow& flow = flow_at(c.flow);
      if (flow.marked || flow.held_by != numbered_[n]) continue;
      if (!full || fastest_[n] > flow.rate * kSame) mark(c.flow);
    }
  }
  return marked_.size() > before;
}

}  // namespace trivium::simulator::sharing
