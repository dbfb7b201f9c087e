// Turns of passes that run in pairs: how long two of them take the compute lane where each waits for its exchanges.
#pragma once

#include <cstdint>
#include <vector>

namespace trivium::simulator {

/// What a pass computes until it next waits for an exchange with the experts (ps).
struct Turn {
  std::int64_t before = 0;    ///< until its exchange may begin
  std::int64_t exchange = 0;  ///< that the next turn waits for; 0: nothing is claimed of it
  std::int64_t beside = 0;    ///< after that, in this turn
  bool operator==(const Turn&) const = default;
};

/// Of one layer, in the order of the pass.
struct LayerTurns {
  std::vector<Turn> forward, backward;
};

/// Appends what follows a layer without a wait in between, and then takes turns of its own.
void append(std::vector<Turn>& turns, const std::vector<Turn>& next);

/// From the first turn of a pair to its last one's end on the compute lane, at least: turns alternate as
/// program::take_turns says, and each waits for the exchange of its pass's turn before.
std::int64_t pair_ps(const std::vector<Turn>& forward, const std::vector<Turn>& backward);

}  // namespace trivium::simulator
