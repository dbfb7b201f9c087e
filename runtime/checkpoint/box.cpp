#include "runtime/checkpoint/box.h"

#include <algorithm>
#include <array>

namespace trivium::runtime::checkpoint {

Box intersection(const Box& a, const Box& b) {
  Box shared{std::max(a.row, b.row), std::max(a.column, b.column), 0, 0};
  shared.rows = std::max<std::int64_t>(0, std::min(a.row + a.rows, b.row + b.rows) - shared.row);
  shared.columns = std::max<std::int64_t>(0, std::min(a.column + a.columns, b.column + b.columns) - shared.column);
  return shared;
}

std::string_view name_of(State state) {
  static constexpr std::array<std::string_view, kStates> kNames{"value", "first_moment", "second_moment", "residual",
                                                                "largest"};
  return kNames.at(static_cast<std::size_t>(state));
}

}  // namespace trivium::runtime::checkpoint
