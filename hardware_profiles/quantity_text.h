// Quantities written so that reading them gives back the same bits; edge::to_text rounds for people and cannot be used.
#pragma once

#include <string>

#include "edge/units.h"

namespace trivium::hardware {

/// The shortest text, over the units people use for that quantity, that parses back to exactly the same value:
/// "80 GiB" rather than "85899345920 B", "2039 GB/s" rather than "2.039 TB/s".
std::string exact_text(edge::Seconds value);
std::string exact_text(edge::Bytes value);
std::string exact_text(edge::BytesPerSecond value);
std::string exact_text(edge::FlopsPerSecond value);
std::string exact_text(edge::Watts value);
std::string exact_text(edge::DollarsPerHour value);

}  // namespace trivium::hardware
