// Links that flows come to and leave: fair rates kept up to date where something changed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/sharing/max_min.h"

namespace trivium::simulator::sharing {

/// The flows that are under way and their max-min fair rates. Where no link is overbooked every flow runs at exactly
/// its limit; else only what a change reaches is solved anew: beginning with the flow that came, or with those that the
/// one that left held back, a set of flows is solved while all others keep their rates, and grows by the flows that the
/// new rates wrong, until nobody is wronged. An allocation that wrongs nobody is the only one (max_min.h), so the
/// result is that of the whole problem but for rounding. Not for use by several threads.
class SharedLinks {
 public:
  /// `capacity` by link, in the unit of the rates.
  explicit SharedLinks(std::vector<double> capacity);

  /// A new flow; its number may be one that was removed before. `changed`: the flows whose rate is another now, the new
  /// one among them, in ascending order. The uses are copied.
  int add(double limit, std::span<const Use> uses, std::vector<int>& changed);

  /// Ends a flow. `changed`: the others whose rate is another now, in ascending order.
  void remove(int flow, std::vector<int>& changed);

  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  double limit(int flow) const { return flows_[static_cast<std::size_t>(flow)].limit; }
  int active() const { return active_; }

 private:
  struct Flow {
    double limit = 0, rate = 0;
    std::vector<Use> uses;
    std::int32_t held_by = -1;  // the full link on which nobody is faster; -1: it runs at its limit
    bool marked = false;        // one of marked_
  };
  struct Crossing {
    int flow = 0;
    double amount = 1;
  };
  struct Link {
    double capacity = 0;
    std::vector<Crossing> flows;  // in the order in which they came
    bool overbooked = false;
    std::int32_t number = -1;  // in the problem being solved
  };

  Flow& flow_at(int flow) { return flows_[static_cast<std::size_t>(flow)]; }
  Link& link_at(std::int32_t link) { return links_[static_cast<std::size_t>(link)]; }

  void book(Link& link);
  void mark(int flow);
  void solve_marked(std::vector<int>& changed);
  void pose_problem();
  bool mark_faster();
  bool mark_wronged();

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> free_;
  std::vector<int> marked_;  // flows to be solved anew
  int active_ = 0;

  // The problem of the marked flows.
  MaxMin solver_;
  std::vector<double> capacity_;        // by link: what the flows that are not marked leave of it
  std::vector<std::int32_t> numbered_;  // by link: its number in links_
  std::vector<Use> uses_;
  std::vector<std::size_t> ends_;  // by flow: the end of its part of uses_
  std::vector<Demand> demands_;
  std::vector<double> load_, fastest_;  // by link: of the marked flows
  std::vector<char> touched_;           // by link: whether a marked flow on it has another rate now
};

}  // namespace trivium::simulator::sharing
