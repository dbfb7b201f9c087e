// Numbers that a split may take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trivium::planner {

/// All that divide `number` and are `most` or less, the smallest first.
inline std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> found;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) found.push_back(static_cast<int>(d));
  }
  return found;
}

}  // namespace trivium::planner
