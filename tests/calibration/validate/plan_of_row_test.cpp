// Plans of published rows as files.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/json_text.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/validate/validate.h"
#include "hardware_profiles/load.h"
#include "program/plan/job_json.h"
#include "program/plan/plan_file.h"
#include "simulator/predict/predict.h"

namespace trivium::calibration {
namespace {

const std::filesystem::path kRuns = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "validation" / "runs";

// The plan of a published row, written and read again, is predicted as the row is: to the picosecond, and of the same
// job and machine. One row in kStride of every table is predicted, all are written.
TEST(PlanOfRow, IsPredictedAsTheRow) {
  constexpr std::size_t kStride = 37;
  std::size_t rows = 0, predicted = 0;
  for (const auto& folder : {kRuns, kRuns.parent_path() / "runs_modern", kRuns.parent_path() / "runs_2026"}) {
    for (const auto& table : std::filesystem::directory_iterator(folder)) {
      if (table.path().extension() != ".csv") continue;
      for (const PublishedRun& run : read_published_runs(table.path())) {
        if (run.unsupported) continue;
        SCOPED_TRACE(table.path().filename().string() + ", " + run.case_name);
        const std::string text = base::json_text(program::to_json(plan_file_of(run)), 2);
        const program::PlanFile file = program::plan_file_from_json(nlohmann::json::parse(text), "plan.json");
        const hardware::Cluster cluster = hardware::cluster_at(file.cluster, "plan.json#/cluster");
        ASSERT_EQ(file.job.model, run.job.model);
        ASSERT_EQ(program::to_json(file.job.plan), program::to_json(run.job.plan));
        ASSERT_EQ(program::to_json(file.job.training), program::to_json(run.job.training));
        ASSERT_EQ(hardware::to_json(cluster), hardware::to_json(run.cluster));
        if (rows++ % kStride != 0 || !run.ran) continue;
        ++predicted;
        const auto of_file = simulator::predict(file.job, cluster, {.fits = false}),
                   of_row = simulator::predict(run.job, run.cluster, {.fits = false});
        ASSERT_EQ(of_file.ok(), of_row.ok());
        if (!of_row.ok()) continue;
        EXPECT_EQ(of_file.value().simulation.iteration_ps, of_row.value().simulation.iteration_ps);
        EXPECT_EQ(predicted_iteration_s(run), of_file.value().simulation.iteration_s);
      }
    }
  }
  EXPECT_GT(rows, 2000U);
  EXPECT_GT(predicted, 40U);
}

TEST(PlanOfRow, OfACaseThatIsNotThereSuggestsTheNearest) {
  try {
    (void)read_published_run(kRuns / "korthikanti2022.csv", "K-175B-seqse");
    ADD_FAILURE() << "found";
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    EXPECT_NE(failure.error().message.find("did you mean \"K-175B-seqsel\"?"), std::string::npos)
        << failure.error().message;
  }
}

}  // namespace
}  // namespace trivium::calibration
