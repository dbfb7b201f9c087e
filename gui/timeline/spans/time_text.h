// Times in words, and where the ticks of a time axis stand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trivium::gui {

/// Three or four significant digits with a unit that fits: "1.234 ms", "56.7 µs".
std::string time_text(std::int64_t ps);

/// The same with as many decimals as tell apart what lies `resolution_ps` apart: "4.107003127 s". 1 or more.
std::string precise_time_text(std::int64_t ps, std::int64_t resolution_ps);

/// A tick of an axis: round numbers, all in the unit of the latest, with as many decimals as tell them apart.
struct Tick {
  std::int64_t ps = 0;
  std::string text;
};

/// At least `least` apart (ps), within [begin, end].
std::vector<Tick> ticks(std::int64_t begin_ps, std::int64_t end_ps, std::int64_t least_ps);

}  // namespace trivium::gui
