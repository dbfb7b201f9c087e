// Quantities written so that reading them gives back the same bits; base::to_text rounds for people and cannot be used.
#pragma once

#include <string>

#include "base/units.h"

namespace trivium::hardware {

/// The shortest text, over the units people use for that quantity, that parses back to exactly the same value:
/// "80 GiB" rather than "85899345920 B", "2039 GB/s" rather than "2.039 TB/s".
std::string exact_text(base::Seconds value);
std::string exact_text(base::Bytes value);
std::string exact_text(base::BytesPerSecond value);
std::string exact_text(base::FlopsPerSecond value);
std::string exact_text(base::Watts value);
std::string exact_text(base::DollarsPerHour value);

}  // namespace trivium::hardware
