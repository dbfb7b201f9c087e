// What predictions of measured runs are off by: the table that intervals are made from, and how many runs lie within
// their intervals, with each source's own runs known and left out.
//   trivium-certainty [--rows ROWS.csv] LEFT_OUT.csv OWN.csv MICRO OUT.json RUNS.csv… -- RUNS.csv…
// Before the two dashes stand the tables that `trivium calibrate --runs` fits profiles to: LEFT_OUT.csv is what it says
// of their sources. Machines of the others have a scale each, which is left out here; MICRO: a folder of kernels that
// were measured by themselves, which stay known. ROWS.csv: every run with what its prediction is made of and its
// interval.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "calibration/certainty/run_errors.h"
#include "calibration/measurements/published_runs.h"
#include "simulator/certainty/measured_errors.h"

namespace {

using namespace trivium;

std::vector<calibration::PublishedRun> runs_of(const std::vector<std::filesystem::path>& tables) {
  std::vector<calibration::PublishedRun> runs;
  for (const std::filesystem::path& table : tables) {
    for (calibration::PublishedRun& run : calibration::read_published_runs(table)) runs.push_back(std::move(run));
  }
  return runs;
}

void append(calibration::RunErrors& to, calibration::RunErrors from) {
  to.time.insert(to.time.end(), from.time.begin(), from.time.end());
  to.memory.insert(to.memory.end(), from.memory.begin(), from.memory.end());
}

}  // namespace

int main(int count, char** words) try {
  std::filesystem::path rows;
  if (count > 2 && words[1] == std::string("--rows")) rows = words[2], words += 2, count -= 2;
  char** const end = words + count;
  char** const dashes = std::find(std::min(words + 5, end), end, std::string("--"));
  if (count < 6 || dashes == end) {
    fmt::print(
        stderr,
        "usage: trivium-certainty [--rows ROWS.csv] LEFT_OUT.csv OWN.csv MICRO OUT.json RUNS.csv… -- RUNS.csv…\n");
    return 2;
  }
  const std::vector<std::filesystem::path> fitted(words + 5, dashes), others(dashes + 1, end);
  const std::vector<calibration::PublishedRun> newer = runs_of(others);
  const std::vector<calibration::MachineRuns> machines =
      calibration::leave_out_scales(newer, calibration::read_micro_rows(words[3]));
  calibration::RunErrors runs = calibration::run_errors(fitted, calibration::read_left_out(words[1]), {});
  append(runs, calibration::run_errors(others, {}, machines));
  append(runs, calibration::own_run_errors(words[2]));
  const calibration::LearnedTime time = calibration::learn_time(runs.time);
  const calibration::Learned memory = calibration::learn(runs.memory);
  fmt::print("machines\n{}\nclasses of runs at 10 % MFU and more\n{}\niterations\n{}\nmemory\n{}", to_table(machines),
             to_table(calibration::errors_by_class(machines)), to_table(time), to_table(memory));
  base::write_file_atomically(words[4], base::json_text(simulator::to_json(time.errors, memory.model), 1) + "\n");
  if (!rows.empty()) base::write_file_atomically(rows, calibration::rows_csv(runs.time, time));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
