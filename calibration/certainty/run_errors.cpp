#include "calibration/certainty/run_errors.h"

#include <array>
#include <cmath>

#include "base/files.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/validate/validate.h"
#include "program/lower/adapters.h"
#include "simulator/certainty/certainty.h"
#include "simulator/cost/gemm.h"

namespace trivium::calibration {
namespace {

CsvTable table_of(const std::filesystem::path& csv, const std::vector<std::string>& columns) {
  CsvTable table(base::read_file(csv), csv.string());
  table.require(columns);
  return table;
}

// Of a run: by how much its error moves where its source is left out of the fit.
double moved(const PublishedRun& run, const std::map<std::string, SourceShift>& shifts,
             const std::vector<MachineRuns>& machines) {
  const auto shift = shifts.find(run.source);
  if (shift != shifts.end()) return shift->second.left_out - shift->second.fitted;
  for (const MachineRuns& of : machines) {
    if (!of.known() || of.machine != run.hardware || of.publisher != publisher_of(run.source)) continue;
    const ScaleErrors errors = errors_of(of);
    return std::log1p(errors.left_bias) - std::log1p(errors.bias);
  }
  return 0;
}

}  // namespace

std::map<std::string, SourceShift> read_left_out(const std::filesystem::path& csv) {
  const CsvTable table = table_of(csv, {"source", "fitted_bias", "left_out_bias"});
  std::map<std::string, SourceShift> shifts;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvTable::Row row = table.row(i);
    shifts[row.text("source")] = {std::log1p(row.number("fitted_bias")), std::log1p(row.number("left_out_bias"))};
  }
  return shifts;
}

RunErrors run_errors(const std::vector<std::filesystem::path>& tables, const std::map<std::string, SourceShift>& shifts,
                     const std::vector<MachineRuns>& machines) {
  RunErrors errors;
  for (const std::filesystem::path& table : tables) {
    const std::vector<PublishedRun> runs = read_published_runs(table);
    const Validation validation = validate_published(table);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const ValidationRow& row = validation.rows[i];
      if (row.unsupported || !row.ran || row.tier == "C") continue;
      const double off = std::log(row.measured_iteration_s / row.predicted_iteration_s);
      errors.time.push_back({simulator::run_likeness_of(runs[i].job, runs[i].cluster), row.made_of, row.source,
                             runs[i].sweep, row.case_name, row.predicted_iteration_s, off,
                             off - moved(runs[i], shifts, machines)});
      if (runs[i].job.training.lora.used()) continue;  // packed samples that tables do not print
      // Trainers keep different 8-bit weights in addition to the 16-bit ones, and tables print the allocator's total.
      if (runs[i].job.plan.fp8 != program::Fp8::kNone) continue;
      if (!row.measured_peak_bytes || !row.predicted_peak_bytes) continue;
      const auto like =
          simulator::likeness_of(runs[i].job, runs[i].cluster, mfu_of(runs[i], row.predicted_iteration_s));
      RunError memory{like, row.source, runs[i].sweep, std::log(*row.measured_peak_bytes / *row.predicted_peak_bytes)};
      memory.like = simulator::of_memory(memory.like);
      memory.left_out = memory.error;
      errors.memory.push_back(std::move(memory));
    }
  }
  return errors;
}

RunErrors own_run_errors(const std::filesystem::path& csv) {
  const CsvTable table = table_of(csv, {"source", "device", "stack", "kind", "machine", "measured_s", "predicted_s",
                                        "measured_bytes", "predicted_bytes"});
  RunErrors errors;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvTable::Row row = table.row(i);
    const double error = std::log(row.positive("measured_s") / row.positive("predicted_s"));
    const std::string kind = row.text("kind");  // context parallelism is a kind of memory alone
    errors.time.push_back(
        {{row.text("device"), row.text("stack"), kind.substr(0, kind.find(" + long context")), row.text("machine")},
         {},
         row.text("source"),
         "",
         "",
         row.positive("predicted_s"),
         error,
         error});
    if (row.text("measured_bytes").empty()) continue;
    RunError one{
        simulator::of_memory({row.text("device"), row.text("stack"), row.text("kind"), row.text("machine"), 0}),
        row.text("source"), ""};
    one.error = one.left_out = std::log(row.positive("measured_bytes") / row.positive("predicted_bytes"));
    errors.memory.push_back(std::move(one));
  }
  return errors;
}

}  // namespace trivium::calibration
