// Ticks of an axis at round numbers.
#pragma once

#include <vector>

namespace trivium::gui {

/// Multiples of 1, 2 or 5 times a power of ten within [low, high], about `wanted` of them; at least one where low <
/// high. A range without width gives the value alone.
std::vector<double> ticks(double low, double high, int wanted);

}  // namespace trivium::gui
