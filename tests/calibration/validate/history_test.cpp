#include "calibration/validate/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A run on a machine that takes `scale` times as long as the one that predicts.
DatedRun run_of(const std::string& file, const std::string& date, double scale, const std::string& library) {
  DatedRun run{file, synthetic_run(small_job(2, 1, 1, 2), rated_node(scale)), cluster_of(rated_node(1))};
  run.record.host = {{"date", date}, {"library", library}, {"processor", "one"}};
  return run;
}

TEST(History, GoesByDateAndFlagsWhatChanged) {
  const History history = history_of({run_of("c.json", "2026-03-03T00:00:00Z", 2, "Eigen 3.5.0"),
                                      run_of("a.json", "2026-03-01T00:00:00Z", 1, "Eigen 3.4.0"),
                                      run_of("b.json", "2026-03-02T00:00:00Z", 1, "Eigen 3.4.0")});
  ASSERT_EQ(history.entries.size(), 3U);
  EXPECT_EQ(history.entries[0].file, "a.json");
  EXPECT_EQ(history.entries[2].file, "c.json");
  EXPECT_NEAR(history.entries[1].error, 0, 1e-9);
  EXPECT_NEAR(history.entries[2].error, -.5, 1e-6);
  EXPECT_THAT(history.entries[1].changes, IsEmpty());
  EXPECT_THAT(history.entries[2].changes, ElementsAre("library: Eigen 3.4.0 -> Eigen 3.5.0"));
  EXPECT_FALSE(history.drift);  // one run since the change
  EXPECT_THAT(to_table(history), HasSubstr("  * library: Eigen 3.4.0 -> Eigen 3.5.0\n2026-03-03"));
  EXPECT_EQ(to_json(history).at("schema"), "trivium.history/1");
  EXPECT_EQ(to_json(history).at("runs").size(), 3U);
}

// A run on cores between two on GPUs tells no driver, which is compared all the same.
TEST(History, FlagsADriverThatTheRunBetweenDidNotTell) {
  std::vector<DatedRun> runs{run_of("a", "1", 1, "x"), run_of("b", "2", 1, "x"), run_of("c", "3", 1, "x"),
                             run_of("d", "4", 1, "x")};
  const std::map<std::string, std::string> older{{"driver", "550.54.15"}, {"nccl", "2.26.2"}, {"gpu", "H200"}},
      newer{{"driver", "570.86.10"}, {"nccl", "2.28.3"}, {"gpu", "H200"}};
  for (const auto& [i, facts] : {std::pair(0, older), {2, newer}, {3, newer}}) {
    runs[static_cast<std::size_t>(i)].record.host.insert(facts.begin(), facts.end());
  }
  const History history = history_of(runs);
  EXPECT_THAT(history.entries[1].changes, IsEmpty());
  EXPECT_THAT(history.entries[2].changes, ElementsAre("driver: 550.54.15 -> 570.86.10", "nccl: 2.26.2 -> 2.28.3"));
  EXPECT_THAT(history.entries[3].changes, IsEmpty());
}

TEST(History, FlagsAnotherMachineAndAnotherBackend) {
  std::vector<DatedRun> runs{run_of("a", "1", 1, "x"), run_of("b", "2", 1, "x")};
  runs[1].record.backend = "cpu-mpi";
  runs[1].record.host["processor"] = "two";
  runs[1].record.host["mpi"] = "Open MPI v4.1.4";  // told for the first time: no change
  EXPECT_THAT(history_of(runs).entries[1].changes, ElementsAre(HasSubstr("backend: "), "processor: one -> two"));
}

// Errors 0, 0, then 1 / 1.25 - 1 = -20 %.
TEST(History, DriftIsTheLastErrorFromTheMedianBefore) {
  const History history = history_of({run_of("a", "1", 1, "x"), run_of("b", "2", 1, "x"), run_of("c", "3", 1.25, "x")});
  ASSERT_TRUE(history.drift);
  EXPECT_NEAR(*history.drift, -.2, 1e-6);
  EXPECT_THAT(to_table(history), HasSubstr("-20.0 % from the median"));
  EXPECT_THAT(to_table(history), HasSubstr("calibrate again"));
}

}  // namespace
}  // namespace trivium::calibration
