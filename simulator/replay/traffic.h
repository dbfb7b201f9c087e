// What ranks of a role send to whom, whatever they compute in between.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "simulator/replay/instructions.h"

namespace trivium::simulator {

/// Rates are the fastest of any message when nothing hinders it, B/s; what carries no bytes, or takes no time, has
/// none.
struct Traffic {
  struct Stream {
    std::map<std::int32_t, double> rings, exchanges;  ///< by channel
    std::map<std::int32_t, double> peers;             ///< by role, sent or received
    std::map<std::int32_t, double> copies;            ///< by direction: 0 out, 1 in
    bool operator==(const Stream&) const = default;
  };
  std::array<Stream, kStreams> streams;
  std::set<std::int32_t> channels;   ///< on which it meets others, for bytes or none
  std::set<std::int32_t> peers;      ///< roles that it exchanges transfers with, of bytes or none
  std::set<std::int32_t> receivers;  ///< roles that it sends bytes to
  bool operator==(const Traffic&) const = default;

  /// Keys of one of the maps, of all streams.
  std::set<std::int32_t> all(std::map<std::int32_t, double> Stream::*of) const;
};

/// By role.
std::vector<Traffic> traffic_of(const std::vector<InstructionStreams>& streams_by_role);

}  // namespace trivium::simulator
