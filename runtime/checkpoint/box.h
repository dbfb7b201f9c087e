// Rectangles of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace trivium::runtime::checkpoint {

/// Rows [row, row + rows) and columns [column, column + columns) of a tensor.
struct Box {
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  bool operator==(const Box&) const = default;
  std::int64_t elements() const { return rows * columns; }
};

/// What two boxes share; without elements where they do not meet.
Box intersection(const Box& a, const Box& b);

/// What of a parameter is kept: its value (of 16-bit parameters the fp32 master copy), AdamW's two moments, and with
/// compression top_k what each replica has not sent of its gradients; with fp8 delayed, of a matrix, the largest
/// numbers of its products' operands, (steps + 1, operands): of the window, then of its steps.
enum class State : std::uint8_t { kValue, kFirstMoment, kSecondMoment, kResidual, kLargest };
constexpr int kStates = 5;
std::string_view name_of(State state);  ///< "value", "first_moment", "second_moment", "residual", "largest"

}  // namespace trivium::runtime::checkpoint
