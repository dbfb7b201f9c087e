// Seconds in what people and timelines count time in.
#pragma once

namespace trivium::base {

inline constexpr double kSecondsPerPs = 1e-12;
inline constexpr double kPsPerSecond = 1e12;
inline constexpr double kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;  ///< in seconds

}  // namespace trivium::base
