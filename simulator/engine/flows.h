// Communication over links that others may be using: progress at max-min fair rates, in order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "simulator/engine/world.h"
#include "simulator/sharing/shared_links.h"

namespace trivium::simulator {

enum class FlowKind : std::uint8_t {
  kCollective,
  kExchange,  ///< a collective in which each sends to every other
  kTransfer,
  kCopy
};

/// Who moves data. `at`: player and stream of a member as player * kStreams + stream (of a transfer: the sender).
struct FlowParty {
  FlowKind kind{};
  std::int32_t at = 0;
  std::int32_t other = 0;  ///< communicator · the receiver, as `at` · direction of a copy: 0 out, 1 in
};

struct FlowEnd {
  FlowParty party;
  std::int64_t begin = 0, end = 0;
};

class Flows {
 public:
  explicit Flows(const World& world);

  /// A meeting at `begin` that takes `ps` when nothing hinders it and moves `wire` bytes from each member to the next.
  /// False: it touches no shared link, and nothing is kept of it.
  bool enter(const FlowParty& party, std::int64_t begin, std::int64_t ps, double wire);

  bool idle() const { return events_.empty(); }

  /// Plays the earliest event, a start or an end; what ended, if it was an end. All that starts before it must have
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

  /// What a flow uses, and how fast it may be even when alone with its siblings, B/s.
  struct Route {
    std::vector<sharing::Use> uses;
    double limit = 0;
  };

  const Route& route_of(const FlowParty& party);
  Route ring(const Communicator& all) const;
  Route exchange(const Communicator& all) const;
  void route_transfer(std::int32_t from, std::int32_t to);
  void start(std::int32_t flow, std::int64_t now);
  void retime(const std::vector<int>& changed, std::int64_t now);
  void drop_stale();

  const World& world_;
  sharing::SharedLinks links_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> by_link_;                    // number in links_ -> flow
  std::vector<std::optional<Route>> rings_, exchanges_;  // by communicator
  Route scratch_;
  std::vector<int> changed_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t entered_ = 0;
};

}  // namespace trivium::simulator
