// How a forward and a backward that run as a pair (Task::beside) alternate on the compute lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Calls `run(forward, segment)` for all segments of both passes: a turn of the backward, one of the forward, and so
/// on; when one has no turns left, the other runs its rest. By segment: whether a turn begins there. The backward,
/// whose first turn sends gradients to the experts, begins.
template <class Run>
void take_turns(std::span<const char> backward, std::span<const char> forward, const Run& run) {
  std::size_t at[2] = {0, 0};
  const std::span<const char> passes[2] = {backward, forward};
  while (at[0] < backward.size() || at[1] < forward.size()) {
    for (const int which : {0, 1}) {
      const std::span<const char> pass = passes[which];
      std::size_t& segment = at[which];
      if (segment == pass.size()) continue;
      do {
        run(which == 1, static_cast<std::int16_t>(segment++));
      } while (segment < pass.size() && pass[segment] == 0);
    }
  }
}

/// By segment of a body: whether a turn begins there.
inline std::vector<char> turns_of(const Body& body) {
  std::vector<char> turns;
  for (const Segment& segment : body.segments) turns.push_back(segment.turn ? 1 : 0);
  return turns;
}

/// By task: the backward that a forward takes turns with, or -1.
inline std::vector<std::int32_t> backwards_beside(const Role& role) {
  std::vector<std::int32_t> beside(role.tasks.size(), -1);
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    if (role.tasks[t].beside >= 0)
      beside[static_cast<std::size_t>(role.tasks[t].beside)] = static_cast<std::int32_t>(t);
  }
  return beside;
}

}  // namespace trivium::program
