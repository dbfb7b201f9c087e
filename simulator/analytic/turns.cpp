#include "simulator/analytic/turns.h"

#include <algorithm>

namespace trivium::simulator {

void append(std::vector<Turn>& turns, const std::vector<Turn>& next) {
  if (next.empty()) return;
  if (turns.empty()) turns.emplace_back();
  Turn& last = turns.back();
  last = {last.before + last.beside + next.front().before, next.front().exchange, next.front().beside};
  turns.insert(turns.end(), next.begin() + 1, next.end());
}

std::int64_t pair_ps(const std::vector<Turn>& forward, const std::vector<Turn>& backward) {
  const std::vector<Turn>* const passes[2] = {&backward, &forward};
  std::int64_t lane = 0, arrives[2] = {0, 0};
  for (std::size_t i = 0; i < std::max(forward.size(), backward.size()); ++i) {
    for (const int which : {0, 1}) {
      if (i >= passes[which]->size()) continue;
      const Turn& turn = (*passes[which])[i];
      const std::int64_t sent = std::max(lane, arrives[which]) + turn.before;
      arrives[which] = sent + turn.exchange;
      lane = sent + turn.beside;
    }
  }
  return lane;
}

}  // namespace trivium::simulator
