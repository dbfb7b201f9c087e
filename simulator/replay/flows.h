// Communication over links that others may be using: progress at max-min fair rates, in order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "simulator/replay/routes.h"
#include "simulator/replay/topology.h"
#include "simulator/sharing/shared_links.h"

namespace trivium::simulator {

struct FlowEnd {
  FlowParty party;
  std::int64_t begin = 0, end = 0;
};

class Flows {
 public:
  explicit Flows(const ReplayTopology& topology);

  /// A rendezvous at `begin` that takes `ps` when nothing hinders it and moves `wire` bytes from each member to the
  /// next. False: it touches no shared link, and nothing is kept of it. Where actors take turns on cores, whatever
  /// takes time needs a core for every member, `wire` or not.
  bool enter(const FlowParty& party, std::int64_t begin, std::int64_t ps, double wire);

  bool idle() const { return events_.empty(); }

  /// Simulates the earliest event, a start or an end; what ended, if it was an end. All that starts before it must have
  /// been entered. Precondition: not idle.
  std::optional<FlowEnd> next();

 private:
  struct Flow {
    FlowParty party;
    std::int64_t begin = 0, ps = 0;
    std::int64_t end = 0;    // as it looks now
    std::int64_t since = 0;  // when its speed last changed
    double left = 0;         // ps of nominal time that it still has to go, at `since`
    double speed = 1;        // of the nominal
    double limit = 0;        // B/s
    int link = -1;           // number in links_; -1: not started
    std::uint32_t version = 0;
  };
  /// Ends come before starts at the same time, so that what follows on without a gap does not overlap; then in the
  /// order of entering.
  struct Event {
    std::int64_t time = 0;
    bool starts = false;
    std::uint64_t order = 0;
    std::int32_t flow = 0;
    std::uint32_t version = 0;
    bool operator>(const Event& other) const {
      if (time != other.time) return time > other.time;
      return starts != other.starts ? starts : order > other.order;
    }
  };

  void start(std::int32_t flow, std::int64_t now);
  void retime(const std::vector<int>& changed, std::int64_t now);
  void drop_stale();

  Routes routes_;
  bool shared_;    // whether there is any link
  bool on_cores_;  // whether links are cores: rates are then in cores
  sharing::SharedLinks links_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> by_link_;  // number in links_ -> flow
  std::vector<int> changed_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t entered_ = 0;
};

}  // namespace trivium::simulator
