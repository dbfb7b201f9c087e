// Which links a flow crosses, and how much of each it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/replay/world.h"

namespace trivium::simulator {

/// Who moves data. `at`: player and stream of a member as player * kStreams + stream (of a transfer: the sender).
struct FlowParty {
  FlowKind kind{};
  std::int32_t at = 0;
  std::int32_t other = 0;  ///< communicator · the receiver, as `at` · direction of a copy: 0 out, 1 in
};

/// The routes of a world's flows, worked out as they are asked for. Not for use by several threads.
class Routes {
 public:
  explicit Routes(const World& world);

  /// Valid until the next call.
  const Route& of(const FlowParty& party);

 private:
  const Seat& seat_of(std::int32_t player) const { return world_.seats[static_cast<std::size_t>(player)]; }
  const Route& on_cores(const FlowParty& party);
  const Route& folded(const FlowParty& party) const;
  Route ring(const Communicator& all) const;
  Route exchange(const Communicator& all) const;
  void transfer(std::int32_t from, std::int32_t to);

  const World& world_;
  std::vector<std::optional<Route>> rings_, exchanges_;  // by communicator
  Route scratch_;
};

}  // namespace trivium::simulator
