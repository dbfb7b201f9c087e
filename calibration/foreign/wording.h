// Words that findings share.
#pragma once

#include <string>

namespace trivium::calibration::foreign {

std::string time_text(double seconds);  ///< "12.3 ms", "1.20 s"

}  // namespace trivium::calibration::foreign
