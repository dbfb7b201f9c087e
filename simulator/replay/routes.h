// Which links a flow crosses, and how much of each it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/replay/topology.h"

namespace trivium::simulator {

/// Who moves data. `at`: actor and stream of a member as actor * kStreams + stream (of a transfer: the sender).
struct FlowParty {
  FlowKind kind{};
  std::int32_t at = 0;
  std::int32_t other = 0;  ///< communicator · the receiver, as `at` · direction of a copy: 0 out, 1 in
};

/// The routes of a topology's flows, worked out as they are asked for. Not for use by several threads.
class Routes {
 public:
  explicit Routes(const ReplayTopology& topology);

  /// Valid until the next call.
  const Route& of(const FlowParty& party);

 private:
  const Attachment& attachment_of(std::int32_t actor) const {
    return topology_.attachments[static_cast<std::size_t>(actor)];
  }
  const Route& on_cores(const FlowParty& party);
  const Route& folded(const FlowParty& party) const;
  Route ring(const Communicator& all) const;
  Route exchange(const Communicator& all) const;
  void transfer(std::int32_t from, std::int32_t to);

  const ReplayTopology& topology_;
  std::vector<std::optional<Route>> rings_, exchanges_;  // by communicator
  Route scratch_;
};

}  // namespace trivium::simulator
