// Units that reports and readers of measurements turn times and shares into.
#pragma once

#include "base/seconds.h"

namespace trivium::calibration {

inline constexpr double kPercent = 100;
inline constexpr double kMilli = 1e-3;
inline constexpr double kMicro = 1e-6;
inline constexpr double kMicroseconds = 1e6;  ///< of a second
using base::kSecondsPerPs;

}  // namespace trivium::calibration
