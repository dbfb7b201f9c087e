// What predictions of measured runs are off by: the table that intervals are made from, and how many runs lie within
// their intervals, with each source's own runs known and left out.
//   trivium-certainty LEFT_OUT.csv OWN.csv OUT.json RUNS.csv…
#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "calibration/certainty/run_errors.h"
#include "simulator/certainty/measured_errors.h"

int main(int count, char** words) try {
  using namespace trivium;
  if (count < 5) {
    fmt::print(stderr, "usage: trivium-certainty LEFT_OUT.csv OWN.csv OUT.json RUNS.csv…\n");
    return 2;
  }
  const std::vector<std::filesystem::path> tables(words + 4, words + count);
  calibration::RunErrors runs = calibration::run_errors(tables, calibration::read_left_out(words[1]));
  for (auto own = calibration::own_run_errors(words[2]); auto* part : {&own.time, &own.memory}) {
    auto& all = part == &own.time ? runs.time : runs.memory;
    all.insert(all.end(), part->begin(), part->end());
  }
  const calibration::Learned time = calibration::learn(runs.time), memory = calibration::learn(runs.memory);
  fmt::print("iterations\n{}\nmemory\n{}", to_table(time), to_table(memory));
  base::write_file_atomically(words[3], base::json_text(simulator::to_json(time.model, memory.model), 1) + "\n");
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
