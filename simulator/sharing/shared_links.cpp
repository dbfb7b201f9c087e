#include "simulator/sharing/shared_links.h"

#include <algorithm>

namespace trivium::simulator::sharing {
namespace {

constexpr double kFull = 1 + 1e-9;  // shares that add up to a capacity but for rounding do not overbook it

}  // namespace

SharedLinks::SharedLinks(std::vector<double> capacity) : links_(capacity.size()), local_(capacity.size(), -1) {
  for (std::size_t i = 0; i < capacity.size(); ++i) links_[i].capacity = capacity[i];
}

// Added up anew each time, in the order in which the flows came: no rounding is left behind by flows that are gone.
void SharedLinks::book(Link& link) const {
  double wanted = 0;
  for (const Crossing& c : link.flows) wanted += c.amount * flows_[static_cast<std::size_t>(c.flow)].limit;
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
  Flow& flow = flows_[static_cast<std::size_t>(id)];
  flow.limit = flow.rate = limit;
  flow.uses.assign(uses.begin(), uses.end());
  ++active_;
  bool crowded = false;
  for (const Use& use : uses) {
    Link& link = links_[static_cast<std::size_t>(use.link)];
    link.flows.push_back({id, use.amount});
    book(link);
    crowded |= link.overbooked;
  }
  if (!crowded) {
    changed.push_back(id);
    return id;
  }
  for (const Use& use : uses) {
    Link& link = links_[static_cast<std::size_t>(use.link)];
    if (link.overbooked) mark(link);
  }
  solve_marked(changed);
  if (!std::binary_search(changed.begin(), changed.end(), id)) {
    changed.insert(std::lower_bound(changed.begin(), changed.end(), id), id);
  }
  return id;
}

void SharedLinks::remove(int id, std::vector<int>& changed) {
  changed.clear();
  Flow& flow = flows_[static_cast<std::size_t>(id)];
  for (const Use& use : flow.uses) {
    Link& link = links_[static_cast<std::size_t>(use.link)];
    std::erase_if(link.flows, [id](const Crossing& c) { return c.flow == id; });
    if (!link.overbooked) continue;
    mark(link);
    book(link);
  }
  flow.uses.clear();
  free_.push_back(id);
  --active_;
  if (!marked_links_.empty()) solve_marked(changed);
}

void SharedLinks::mark(Link& link) {
  if (link.marked) return;
  link.marked = true;
  marked_links_.push_back(static_cast<std::int32_t>(&link - links_.data()));
  for (const Crossing& c : link.flows) {
    Flow& flow = flows_[static_cast<std::size_t>(c.flow)];
    if (flow.marked) continue;
    flow.marked = true;
    marked_.push_back(c.flow);
  }
}

// Marked flows and all that overbooked links join to them; a link that is not overbooked binds nobody.
void SharedLinks::solve_marked(std::vector<int>& changed) {
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    for (const Use& use : flows_[static_cast<std::size_t>(marked_[i])].uses) {
      Link& link = links_[static_cast<std::size_t>(use.link)];
      if (link.overbooked) mark(link);
    }
  }
  std::vector<double> capacity;
  std::vector<std::int32_t> numbered;
  std::vector<Use> uses;
  std::vector<std::size_t> ends;
  for (const int f : marked_) {
    for (const Use& use : flows_[static_cast<std::size_t>(f)].uses) {
      const Link& link = links_[static_cast<std::size_t>(use.link)];
      if (!link.overbooked) continue;
      std::int32_t& number = local_[static_cast<std::size_t>(use.link)];
      if (number < 0) {
        number = static_cast<std::int32_t>(capacity.size());
        capacity.push_back(link.capacity);
        numbered.push_back(use.link);
      }
      uses.push_back({number, use.amount});
    }
    ends.push_back(uses.size());
  }
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    demands.push_back({flows_[static_cast<std::size_t>(marked_[i])].limit,
                       std::span<const Use>(uses).subspan(begin, ends[i] - begin)});
  }
  const std::vector<double> rates = max_min(capacity, demands);
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    Flow& flow = flows_[static_cast<std::size_t>(marked_[i])];
    flow.marked = false;
    if (flow.rate == rates[i]) continue;
    flow.rate = rates[i];
    changed.push_back(marked_[i]);
  }
  std::sort(changed.begin(), changed.end());
  for (const std::int32_t link : numbered) local_[static_cast<std::size_t>(link)] = -1;
  for (const std::int32_t link : marked_links_) links_[static_cast<std::size_t>(link)].marked = false;
  marked_links_.clear();
  marked_.clear();
}

}  // namespace trivium::simulator::sharing
