// Links that flows come to and leave: fair rates kept up to date where something changed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/sharing/max_min.h"

namespace trivium::simulator::sharing {

/// The flows that are under way and their max-min fair rates. Where no link is overbooked every flow runs at exactly
/// its limit; else the flows that overbooked links join are solved anew, and only they. Not for use by several threads.
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
    bool marked = false;
  };
  struct Crossing {
    int flow = 0;
    double amount = 1;
  };
  struct Link {
    double capacity = 0;
    std::vector<Crossing> flows;  // in the order in which they came
    bool overbooked = false;
    bool marked = false;  // its flows are
  };

  void book(Link& link) const;
  void mark(Link& link);
  void solve_marked(std::vector<int>& changed);

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> free_;
  std::vector<int> marked_;                 // flows to be solved anew
  std::vector<std::int32_t> marked_links_;  // whose flows are all marked
  std::vector<std::int32_t> local_;         // by link: its number in the problem being solved, or -1
  int active_ = 0;
};

}  // namespace trivium::simulator::sharing
