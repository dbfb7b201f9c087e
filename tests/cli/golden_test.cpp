// Runs cases/NAME/command, a line of shell, in a folder with copies of the case's other files, and compares its output
// and exit code with the files `stdout`, `stderr` and `exit_code`. TRIVIUM_UPDATE_GOLDENS=1 writes them instead.
#include "tests/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

const fs::path& cases_folder() {
  static const fs::path kFolder = fs::path(TRIVIUM_SOURCE_DIR) / "tests/cli/cases";
  return kFolder;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cases_folder())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void copy_inputs(const fs::path& from, const Workplace& workplace) {
  static const std::set<std::string> kExpectations{"command", "stdout", "stderr", "exit_code"};
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (!kExpectations.contains(name)) workplace.write(name, content_of(entry.path()));
  }
}

class GoldenCase : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCase, PrintsAndExitsAsRecorded) {
  const fs::path folder = cases_folder() / GetParam();
  const Workplace workplace;
  copy_inputs(folder, workplace);
  const Outcome outcome = workplace.run(content_of(folder / "command"));
  const std::string code = std::to_string(outcome.exit_code) + "\n";
  expect_golden(folder / "stdout", outcome.out);
  expect_golden(folder / "stderr", outcome.err);
  expect_golden(folder / "exit_code", code);
}

std::string name_of(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cli, GoldenCase, testing::ValuesIn(case_names()), name_of);

}  // namespace
}  // namespace trivium::cli
