// Runs as children of the window, and what is made of their records.
#include <QFile>
#include <nlohmann/json.hpp>

#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

Scenario runnable() {
  Scenario scenario = local_example();
  scenario.file.job.plan.data = 1;
  return scenario;
}

std::string some_text() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "Three roads meet here: tensor, pipeline and data. ";
  return text;
}

TEST_F(Window, RunsThePlanAndSetsTheRunBesideThePrediction) {
  begin(runnable());
  write("text.txt", some_text());
  window_.runs().start();
  EXPECT_THAT(plain(window_.runs().state().text()), HasSubstr("Choose a text"));
  window_.runs().corpus().setText(file("text.txt"));
  window_.runs().steps().setValue(3);
  window_.runs().start();
  ASSERT_TRUE(window_.runs().is_running());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.runs().state().text()), HasSubstr("3 steps recorded"));
  EXPECT_EQ(window_.runs().loss().lines().at(0).points.size(), 3U);
  EXPECT_EQ(window_.view(), MainWindow::kCompare);
  EXPECT_FALSE(window_.project().record.empty());
  // And judges it.
  window_.validate();
  ValidationPanel& judged = window_.validation();
  ASSERT_TRUE(QTest::qWaitFor([&] { return judged.validation().has_value(); }, kPatienceMs));
  EXPECT_THAT(plain(judged.summary().text()), HasSubstr("measured"));
  EXPECT_THAT(plain(judged.summary().text()), HasSubstr("a thread for every rank"));  // not "cpu-threads run."
  EXPECT_THAT(plain(judged.summary().text()), testing::Not(HasSubstr("cpu-threads")));
  ASSERT_EQ(judged.table().topLevelItemCount(), 2);  // op kinds and ranks
  EXPECT_GT(judged.table().topLevelItem(0)->childCount(), 3);
  EXPECT_EQ(judged.table().topLevelItem(1)->childCount(), 1);
  ASSERT_TRUE(window_.export_validation(file("v.csv")));
  ASSERT_TRUE(window_.export_validation(file("v.json")));
  std::ifstream json(file("v.json").toStdString());
  EXPECT_EQ(nlohmann::json::parse(json).at("schema"), "trivium.validation/1");
  EXPECT_FALSE(window_.export_validation(file("v.txt")));
}

TEST_F(Window, TrainsOnASampleTextAndSaysOfWhichPlanTheCurvesAre) {
  begin(runnable());
  RunPanel& runs = window_.runs();
  window_.show_runs();
  EXPECT_FALSE(runs.whose().isVisible());
  runs.sample().click();
  EXPECT_TRUE(QFileInfo(runs.corpus().text()).size() > 200'000);
  runs.steps().setValue(4);
  runs.start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !runs.is_running(); }, kPatienceMs));
  EXPECT_THAT(plain(runs.state().text()), HasSubstr("4 steps recorded"));
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(runs.whose().text()), HasSubstr("gpt-tiny"));
  EXPECT_THAT(plain(runs.whose().text()), testing::Not(HasSubstr("not the plan")));
  ASSERT_TRUE(QTest::qWaitFor([&] { return runs.speed().lines().size() == 2; }, kPatienceMs));  // and the predicted
  Scenario other = window_.document().scenario();
  other.file.job.training.global_batch *= 2;
  window_.document().edit(other, "another batch");
  EXPECT_TRUE(runs.whose().isVisible());
  EXPECT_THAT(plain(runs.whose().text()), HasSubstr("not the plan on the left"));
  ASSERT_TRUE(settles());
  EXPECT_EQ(runs.speed().lines().size(), 1U);  // what is predicted now is of another plan
  window_.document().history().undo();
  EXPECT_THAT(plain(runs.whose().text()), testing::Not(HasSubstr("not the plan")));
}

TEST_F(Window, ShowsTheStepsOfARecordThatIsLoaded) {
  begin(runnable());
  write("text.txt", some_text());
  window_.runs().corpus().setText(file("text.txt"));
  window_.runs().steps().setValue(3);
  window_.runs().start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
  const QString kept = file("kept.json");
  ASSERT_TRUE(QFile::copy(window_.runs().record_path(), kept));
  MainWindow other;
  ASSERT_TRUE(other.open(kept));
  ASSERT_EQ(other.runs().loss().lines().at(0).points.size(), 3U);
  EXPECT_EQ(other.runs().loss().lines()[0].points, window_.runs().loss().lines()[0].points);
  EXPECT_GT(other.runs().speed().lines().at(0).points[2].y(), 0);
  EXPECT_THAT(plain(other.runs().state().text()), HasSubstr("kept.json: 3 steps"));
}

TEST_F(Window, KeepsARunWithTheProjectAndWithUnsavedWork) {
  write("text.txt", some_text());
  const QString project = file("kept.json");
  {
    MainWindow other;
    other.begin_example(runnable());
    other.show();
    other.runs().corpus().setText(file("text.txt"));
    other.runs().steps().setValue(2);
    other.runs().start();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !other.runs().is_running(); }, kPatienceMs));
    ASSERT_FALSE(other.project().record.empty());
    other.plans().pin_current();  // something to keep
    ASSERT_TRUE(QTest::qWaitFor([&] { return other.has_autosave(); }, kPatienceMs));
    ASSERT_TRUE(other.save(project));
    EXPECT_EQ(other.project().record, plain(file("kept.run.json")));
  }
  ASSERT_TRUE(window_.open(project));
  ASSERT_TRUE(settles());
  EXPECT_EQ(window_.view(), MainWindow::kCompare);
  EXPECT_EQ(window_.runs().loss().lines().at(0).points.size(), 2U);
}

TEST_F(Window, KeepsARunThatWasNotSaved) {
  write("text.txt", some_text());
  {
    MainWindow other;
    other.begin_example(runnable());
    other.show();
    other.runs().corpus().setText(file("text.txt"));
    other.runs().steps().setValue(2);
    other.runs().start();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !other.runs().is_running(); }, kPatienceMs));
    other.runs().corpus().setText(file("text.txt"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return other.document().settled(); }, kPatienceMs));
    other.plans().pin_current();
    other.close();
  }
  ASSERT_TRUE(window_.restore_autosave());
  ASSERT_TRUE(settles());
  EXPECT_EQ(window_.runs().loss().lines().at(0).points.size(), 2U);
}

TEST_F(Window, DrawsALongRunWithFewPoints) {
  begin(staged_scenario());
  constexpr int kSteps = 100'000;
  program::RunRecord record;
  for (int s = 0; s < kSteps; ++s) {
    program::StepRecord step;
    step.step = s;
    step.loss = s == kSteps - 1 ? 1.5 : 11 - 9.0 * s / kSteps;
    step.tokens_per_s = 1000;
    record.steps.push_back(step);
  }
  RunPanel& runs = window_.runs();
  runs.show_record(record, "long.json");
  for (const LineChart* chart : {&runs.loss(), &runs.speed()}) {
    const std::vector<QPointF>& points = chart->lines().at(0).points;
    EXPECT_LE(points.size(), RunPanel::kMostPoints);
    EXPECT_GT(points.size(), RunPanel::kMostPoints / 4);
    EXPECT_EQ(points.front().x(), 0);
    EXPECT_EQ(points.back().x(), kSteps - 1);
  }
  EXPECT_THAT(plain(runs.state().text()), HasSubstr("100000 steps, loss from 11.0000 to 1.5000"));
}

TEST_F(Window, SaysWhatIsMissingForAValidationOrAResumedRun) {
  begin(staged_scenario());
  window_.validate();
  EXPECT_THAT(plain(window_.validation().summary().text()), HasSubstr("load a run record"));
  EXPECT_FALSE(window_.export_validation(file("v.csv")));
  window_.runs().resume();
  EXPECT_THAT(plain(window_.runs().state().text()), HasSubstr("checkpoints"));
  EXPECT_FALSE(window_.runs().is_running());
}

TEST_F(Window, StopsARun) {
  begin(runnable());
  write("text.txt", some_text());
  window_.runs().corpus().setText(file("text.txt"));
  window_.runs().steps().setValue(100'000);
  window_.runs().start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().loss().lines().empty(); }, kPatienceMs));
  window_.runs().stop();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.runs().state().text()), HasSubstr("Stopped after"));
}

TEST_F(Window, ResumesARunFromItsCheckpoint) {
  begin(runnable());
  window_.show_runs();
  RunPanel& runs = window_.runs();
  ASSERT_TRUE(QTest::qWaitFor([&] { return runs.keeps_checkpoints(); }, kPatienceMs));
  write("text.txt", some_text());
  runs.corpus().setText(file("text.txt"));
  runs.checkpoint().setText(file("kept"));
  runs.resume();
  EXPECT_THAT(plain(runs.state().text()), HasSubstr("Give the folder"));
  runs.steps().setValue(2);
  runs.start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !runs.is_running(); }, kPatienceMs));
  runs.steps().setValue(5);
  runs.resume();
  ASSERT_TRUE(runs.is_running());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !runs.is_running(); }, kPatienceMs));
  const std::vector<QPointF>& points = runs.loss().lines().at(0).points;
  ASSERT_EQ(points.size(), 5U);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i].x(), static_cast<double>(i));
}

TEST_F(Window, SaysWhyARunEndedAtOnce) {
  begin(runnable());
  window_.runs().corpus().setText(file("none.txt"));
  window_.runs().start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.runs().state().text()),
              testing::AllOf(HasSubstr("Ended with code"), HasSubstr("none.txt")));
}

}  // namespace
}  // namespace trivium::gui
