#include "calibration/measurements/published_runs.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "hardware_profiles/load.h"
#include "program/lower/adapters.h"

namespace trivium::calibration {

std::vector<PublishedRun> read_published_runs(const std::filesystem::path& csv) {
  const CsvTable table(base::read_file(csv), csv.string());
  table.require(published_columns());
  if (table.rows() == 0) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: has a header and no rows; add a line for every run", csv.string()));
  }
  std::vector<PublishedRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) runs.push_back(read_published_run(table.row(i)));
  return runs;
}

PublishedRun read_published_run(const std::filesystem::path& csv, const std::string& case_name) {
  std::vector<std::string> names;
  for (PublishedRun& run : read_published_runs(csv)) {
    if (run.case_name == case_name) return std::move(run);
    names.push_back(run.case_name);
  }
  const std::string near = base::nearest(case_name, names);
  throw base::Failure(base::ErrorKind::kInput,
                      fmt::format("{}: has no case {}; {}", csv.string(), base::quote(case_name),
                                  near.empty() ? "`trivium validate --runs` lists them"
                                               : fmt::format("did you mean {}?", base::quote(near))));
}

program::PlanFile plan_file_of(const PublishedRun& run) { return {run.job, hardware::to_json(run.cluster)}; }

bool is_published_runs(const imports::FileText& file) {
  return file.form() == imports::FileText::Form::kText && imports::has(file.first_line(), "measured_iteration_s");
}

double mfu_of(const PublishedRun& run, double iteration_s) {
  const program::Training& training = run.job.training;
  const auto& peak = run.cluster.groups.front().node.device.peak;
  const auto half = peak.find(hardware::Arithmetic::kFp16);
  if (half == peak.end()) return 0;
  const double tokens = static_cast<double>(training.global_batch) * static_cast<double>(training.sequence);
  const double flops = program::flops_per_token(run.job).model * tokens;
  return flops / (iteration_s * run.job.plan.ranks() * half->second.value());
}

}  // namespace trivium::calibration
