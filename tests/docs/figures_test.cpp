// Figures of the documentation that a command gives, against what it gives today.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/process.h"
#include "tests/docs/page.h"

namespace trivium::docs {
namespace {

const std::filesystem::path kPlanning = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "docs/guides/planning.md";

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::stringstream text(row.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    const std::size_t begin = cell.find_first_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
  }
  return cells;
}

/// The rows of the table of a section, without its head.
std::vector<std::vector<std::string>> table_of(const std::string& section) {
  std::vector<std::vector<std::string>> rows;
  bool here = false, begun = false;
  for (const std::string& line : lines_of(cli::content_of(kPlanning))) {
    if (line.starts_with("## ")) here = line == section;
    if (!here) continue;
    if (begun && !line.starts_with("|")) break;
    if (line.starts_with("|--") || line.starts_with("|:-")) {
      begun = true;
    } else if (begun) {
      rows.push_back(cells_of(line));
    }
  }
  return rows;
}

/// The names in backticks of the first cell; one empty name where there is none.
std::vector<std::string> trainers_of(const std::string& cell) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = cell.find('`', at)) != std::string::npos;) {
    const std::size_t end = cell.find('`', at + 1);
    names.push_back(cell.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names.empty() ? std::vector<std::string>{""} : names;
}

// The degrees of a plan as the table writes them: "TP8 SP PP2x4 DP8 ZeRO-1".
std::string split_of(const nlohmann::json& plan) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  const int virtual_stages = plan.at("virtual_stages");
  if (plan.at("tensor") > 1) add(fmt::format("TP{}", plan.at("tensor").get<int>()));
  if (plan.at("tensor") > 1 && plan.at("sequence_parallel")) add("SP");
  if (plan.at("context") > 1) add(fmt::format("CP{}", plan.at("context").get<int>()));
  const std::string chunks = virtual_stages > 1 ? fmt::format("x{}", virtual_stages) : "";
  if (plan.at("pipeline") > 1) add(fmt::format("PP{}{}", plan.at("pipeline").get<int>(), chunks));
  if (plan.at("data") > 1) add(fmt::format("DP{}", plan.at("data").get<int>()));
  if (plan.at("zero_stage") > 0) add(fmt::format("ZeRO-{}", plan.at("zero_stage").get<int>()));
  return text;
}

TEST(Figures, ForATrainerAreThoseOfTheProgram) {
  const cli::Workplace workplace;
  const auto rows = table_of("## For a trainer");
  ASSERT_EQ(rows.size(), 5U);
  for (const std::vector<std::string>& row : rows) {
    ASSERT_EQ(row.size(), 4U);
    for (const std::string& trainer : trainers_of(row[0])) {
      const cli::Outcome outcome = workplace.run(
          "trivium plan --model llama3-70b --sequence 8192 --cluster dgx-h100-80gb:16 --global-batch 512 --json" +
          (trainer.empty() ? "" : " --for " + trainer));
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const nlohmann::json best = nlohmann::json::parse(outcome.out).at("best");
      EXPECT_EQ(row[2], fmt::format("{:.1f} s", best.at("iteration_s").get<double>())) << trainer;
      EXPECT_EQ(row[3], fmt::format("{:.1f} %", 100 * best.at("mfu").get<double>())) << trainer;
      EXPECT_TRUE(row[1].starts_with(split_of(best.at("plan")))) << row[1] << "\n" << split_of(best.at("plan"));
      const bool full = best.at("plan").at("recompute") == "full";
      EXPECT_EQ(row[1].find("full recomputation") != std::string::npos, full) << trainer;
    }
  }
}

}  // namespace
}  // namespace trivium::docs
