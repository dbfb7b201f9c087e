// Ticks of an axis at round numbers.
#pragma once

#include <string>
#include <vector>

namespace trivium::gui {

/// Multiples of 1, 2 or 5 times a power of ten within [low, high], about `wanted` of them; at least one where low <
/// high. A range without width gives the value alone.
std::vector<double> ticks(double low, double high, int wanted);

/// A time on an axis that reaches to `most` and has ticks `step` apart (s): all ticks in one unit, never in minutes.
std::string seconds_tick(double value, double most, double step);

/// "12.3 us" in a text of the library as axes have it: "12.3 µs".
std::string with_micro_sign(std::string words);

/// The same with separators between thousands: "783 ms to 1,836 ms".
std::string as_figures(const std::string& words);

/// base::seconds with the sign of micro.
std::string seconds_words(double seconds);

}  // namespace trivium::gui
