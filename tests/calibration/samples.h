// The samples of tests/data: small files as other programs write them.
#pragma once

#include <string>

namespace trivium::calibration {

std::string sample_path(const std::string& name);
std::string sample(const std::string& name);

/// The first `share` of a sample, cut wherever that is.
std::string beginning_of(const std::string& name, double share);

}  // namespace trivium::calibration
