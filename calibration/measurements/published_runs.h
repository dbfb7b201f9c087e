// Tables of published runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibration/measurements/file_text.h"
#include "calibration/measurements/published_row.h"
#include "program/plan/plan_file.h"

namespace trivium::calibration {

/// All rows of a table (validation/README.md has the columns). Errors: Failure(kInput) as `FILE:LINE: column: …`, and
/// for a table without rows.
std::vector<PublishedRun> read_published_runs(const std::filesystem::path& csv);

/// The run of that case. Errors: as above; Failure(kInput) where the table has none, with the nearest name.
PublishedRun read_published_run(const std::filesystem::path& csv, const std::string& case_name);

/// The run's job on its cluster, both whole: what `trivium simulate` takes. Precondition: not `unsupported`.
program::PlanFile plan_file_of(const PublishedRun& run);

bool is_published_runs(const imports::FileText& file);

/// Model FLOPs utilisation of a run at that time, over the peak of 16 bits; 0 where the device has none.
double mfu_of(const PublishedRun& run, double iteration_s);

}  // namespace trivium::calibration
