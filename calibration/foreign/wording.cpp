#include "calibration/foreign/wording.h"

#include <fmt/format.h>

namespace trivium::calibration::foreign {

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.1f} ms", 1e3 * seconds) : fmt::format("{:.0f} us", 1e6 * seconds);
}

}  // namespace trivium::calibration::foreign
