#include "calibration/certainty/learn_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "calibration/certainty/held_back.h"

namespace trivium::calibration {
namespace {

/// Sources that ran one stack each on a machine of their own: what each errs by, and noise that grows with the share of
/// exposed communication.
std::vector<TimeRun> drawn(int sources, int runs, double source, double noise, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share(0, 0.5);
  std::vector<TimeRun> all;
  for (int s = 0; s < sources; ++s) {
    const double own = source * normal(engine);
    const std::string name = "source " + std::to_string(s);
    for (int r = 0; r < runs; ++r) {
      TimeRun run{{s % 3 == 0 ? "a100" : "h100", "fsdp", s % 2 == 0 ? "dense" : "experts", name}, {}, name, "", "run"};
      run.made_of.exposed = share(engine);
      run.predicted_s = 1;
      run.error = run.left_out = own + noise * std::exp(3 * run.made_of.exposed) * normal(engine);
      all.push_back(std::move(run));
    }
  }
  return all;
}

// The block formula against the model itself, made of the cells of all other sources.
TEST(HeldBackRuns, AreThoseOfAModelThatNeverSawTheirSource) {
  const std::vector<TimeRun> runs = drawn(6, 4, 0.1, 0.03, 1);
  const simulator::SharedParts parts{0.02, 0.05, 0.03, 0.04, 0.06};
  const simulator::SpreadRule rule{-3, 1, 0};
  const HeldBackRuns held(runs);
  const HeldBackRuns::Result result = held.at(parts, rule);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<simulator::RunCell> others = held.cells(rule);
    std::erase_if(others, [&](const simulator::RunCell& cell) { return cell.source == runs[i].source; });
    const simulator::TimeErrors model(others, parts, rule, result.quantiles, 0, 0);
    const simulator::TimeOutlook outlook = model.at(runs[i].like, runs[i].made_of);
    EXPECT_NEAR(result.runs[i].mean, outlook.mean, 1e-9);
    EXPECT_NEAR(result.runs[i].deviation, outlook.deviation, 1e-9);
    EXPECT_EQ(held.measured()[i], outlook.measured);
  }
}

TEST(LearnTime, CoversNineInTenOfEveryClassWithItsSourcesLeftOut) {
  const LearnedTime learned = learn_time(drawn(24, 15, 0.05, 0.02, 2));
  ASSERT_EQ(learned.classes.size(), 4U);
  for (const ClassCoverage& one : learned.classes) {
    EXPECT_GE(one.within, 0.85) << one.kind << one.device;
    EXPECT_LE(one.within, 0.95) << one.kind << one.device;
    EXPECT_NEAR(one.within + one.below + one.above, 1, 1e-12);
  }
  EXPECT_EQ(learned.all.runs, 360);
}

TEST(LearnTime, FindsThatExposedCommunicationMakesItUnsure) {
  const simulator::SpreadRule rule = learn_time(drawn(24, 15, 0.01, 0.03, 3)).errors.spread();
  EXPECT_NEAR(rule.of({0.5, 0, 0.4}) / rule.of({0, 0, 0.4}), std::exp(1.5), 1.5);
}

// Two sweeps of four plans; the one predicted fastest exceeds the middle of its sweep by 0.05 - 0.015 = 0.035 and by
// 0.02 - 0.005 = 0.015: 0.025 in the middle.
TEST(LearnTime, TellsByHowMuchPlansThatWerePickedExceedTheOthers) {
  std::vector<TimeRun> runs = drawn(6, 4, 0.02, 0.02, 4);
  const auto add = [&](const char* sweep, std::initializer_list<double> errors) {
    double predicted = 1;
    for (const double error : errors) {
      TimeRun run = runs.front();
      run.sweep = sweep, run.predicted_s = predicted++, run.error = run.left_out = error;
      runs.push_back(run);
    }
  };
  add("one", {0.05, 0.01, 0.02, 0.0});
  add("two", {0.02, 0.0, 0.01, -0.01});
  EXPECT_NEAR(learn_time(runs).errors.picked(), 0.025, 1e-12);
}

TEST(LearnTime, PrintsSourcesClassesAndWidths) {
  const std::vector<TimeRun> runs = drawn(6, 10, 0.05, 0.02, 5);
  const LearnedTime learned = learn_time(runs);
  const std::string table = to_table(learned);
  for (const char* of : {"source 3", "dense, a100", "machine and stack measured"}) {
    EXPECT_NE(table.find(of), std::string::npos) << of;
  }
  const std::string rows = rows_csv(runs, learned);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 61);
}

}  // namespace
}  // namespace trivium::calibration
