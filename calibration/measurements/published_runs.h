// Tables of published runs.
#pragma once

#include <filesystem>
#include <vector>

#include "calibration/measurements/file_text.h"
#include "calibration/measurements/published_row.h"

namespace trivium::calibration {

/// All rows of a table (validation/README.md has the columns). Errors: Failure(kInput) as `FILE:LINE: column: …`, and
/// for a table without rows.
std::vector<PublishedRun> read_published_runs(const std::filesystem::path& csv);

bool is_published_runs(const imports::FileText& file);

/// Model FLOPs utilisation of a run at that time, over the peak of 16 bits; 0 where the device has none.
double mfu_of(const PublishedRun& run, double iteration_s);

}  // namespace trivium::calibration
