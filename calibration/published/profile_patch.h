// Fitted constants written into copies of the profiles they belong to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibration/published/published_fit.h"

namespace trivium::calibration {

/// Writes `FOLDER/NAME.json` for every profile of the fit that runs were made on and `FOLDER/devices/NAME.json` for
/// every shipped GPU: the shipped file with the fitted members replaced, each with its source; all else stays as it
/// stands, in its order. So a folder can be compared with, or copied over, the shipped one. Returns the files. Errors:
/// Failure(kUsage) where `folder` is the folder of the shipped profiles.
std::vector<std::filesystem::path> write_profiles(const PublishedFit& fit, const std::filesystem::path& folder);

}  // namespace trivium::calibration
