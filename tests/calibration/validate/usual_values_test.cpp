// The counts of the planner's table of usual values, from the rows that they are of.
#include "planner/space/usual_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "calibration/measurements/published_runs.h"
#include "program/plan/job_json.h"

namespace trivium::calibration {
namespace {

const std::filesystem::path kRuns = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "validation" / "runs_modern";

bool is_of(const std::string& stack, std::string_view trainer) {
  if (trainer == "torchtitan") return stack.starts_with("torchtitan");
  if (trainer == "megatron") return stack.starts_with("megatron-core");
  return stack.starts_with(trainer);
}

// Degrees count from 2 on, whatever the table's example; other values as they are.
bool has(const program::Plan& plan, std::string_view field) {
  if (field == "tensor") return plan.tensor > 1;
  if (field == "virtual_stages") return plan.virtual_stages > 1;
  if (field == "expert") return plan.expert > 1;
  if (field == "fp8") return plan.fp8 != program::Fp8::kNone;
  if (field == "recompute" || field == "recompute_modules") return plan.recompute == program::Recompute::kSelective;
  return false;
}

TEST(UsualValues, CountsAreThoseOfThePublishedRuns) {
  std::vector<PublishedRun> runs;
  for (const auto& table : std::filesystem::directory_iterator(kRuns)) {
    if (table.path().filename().string().find("did_not_run") != std::string::npos) continue;
    for (PublishedRun& run : read_published_runs(table.path())) runs.push_back(std::move(run));
  }
  int counted = 0;
  for (const planner::UsualValue& usual : planner::usual_values()) {
    if (usual.in.find(" published runs") == std::string_view::npos) continue;
    int rows = 0, with = 0;
    for (const PublishedRun& run : runs) {
      using Of = planner::UsualValue::Of;
      const bool mixture = run.job.model.experts.has_value();
      if (!is_of(run.job.plan.stack, usual.trainer)) continue;
      if (usual.models != Of::kAll && mixture != (usual.models == Of::kMixtures)) continue;
      ++rows;
      with += has(run.job.plan, usual.values.front().first) ? 1 : 0;
    }
    ++counted;
    EXPECT_TRUE(usual.in.starts_with(fmt::format("{} of {} published runs", with, rows)))
        << usual.trainer << " " << usual.values.front().first << ": " << with << " of " << rows;
    EXPECT_GE(4 * with, rows);
  }
  EXPECT_EQ(counted, 8);
}

}  // namespace
}  // namespace trivium::calibration
