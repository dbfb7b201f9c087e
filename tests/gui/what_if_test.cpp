// What if: questions asked in the window, and what becomes of their answers.
#include <nlohmann/json.hpp>

#include "planner/advice/studies.h"
#include "program/plan/job_json.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WhatIfWindow : public Window {
 protected:
  WhatIfView& what_if() { return window_.what_if(); }
  void SetUp() override {
    Window::SetUp();
    begin(small_scenario());
    window_.show_view(MainWindow::kWhatIf);
  }
  void put(Question question, const QString& value) {
    what_if().question().setCurrentIndex(static_cast<int>(question));
    what_if().value().setText(value);
    Q_EMIT what_if().value().textEdited(value);
  }
  bool answers() {
    QTest::mouseClick(&what_if().ask_button(), Qt::LeftButton);
    return QTest::qWaitFor([&] { return !what_if().is_asking(); }, kPatienceMs);
  }
  QString cell(int row, const char* title) {
    for (int c = 0; c < what_if().table().columnCount(); ++c) {
      if (what_if().table().horizontalHeaderItem(c)->text() == title) return what_if().table().item(row, c)->text();
    }
    return "no such column";
  }
};

TEST_F(WhatIfWindow, AsksForBatchesAndShowsTheBestPlanOfEach) {
  put(Question::kBatch, "8:32");
  ASSERT_TRUE(answers());
  const WhatIfAnswer& answer = what_if().answer();
  ASSERT_EQ(answer.rows.size(), 3U);
  const auto points = planner::batches(search_request(small_scenario(), 1), {8, 32}, 0, {});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answer.rows[i].best->simulation.iteration_ps, points[i].best->simulation.iteration_ps);
    EXPECT_EQ(program::to_json(answer.rows[i].scenario.file.job.plan), program::to_json(points[i].best->plan));
  }
  EXPECT_EQ(plain(cell(1, "What if")), "batch 16");
  EXPECT_THAT(plain(cell(1, "90 % within")), HasSubstr(" to "));
  EXPECT_THAT(plain(what_if().sentence().text()), StartsWith("From batch 8 to batch 32 the training goes from "));
  ASSERT_EQ(what_if().chart().lines().size(), 3U);
  EXPECT_EQ(what_if().chart().lines()[0].points.size(), 3U);
  ASSERT_TRUE(window_.export_table(file("batches.csv")));
  std::ifstream table(file("batches.csv").toStdString());
  const std::string content{std::istreambuf_iterator<char>(table), {}};
  EXPECT_EQ(std::count(content.begin(), content.end(), '\n'), 4);
}

TEST_F(WhatIfWindow, AsksForDevicesBothWays) {
  put(Question::kDevices, "4,8,16");
  ASSERT_TRUE(answers());
  ASSERT_EQ(what_if().answer().rows.size(), 3U);
  EXPECT_LE(what_if().answer().rows[0].efficiency, 1);
  EXPECT_EQ(what_if().answer().rows[2].scenario.cluster.nodes(), 2);
  EXPECT_EQ(what_if().chart().lines().size(), 4U);
  EXPECT_THAT(plain(what_if().sentence().text()), StartsWith("From 4 devices to 16 devices"));
  put(Question::kDevicesAndBatch, "4,8,16");
  ASSERT_TRUE(answers());
  ASSERT_EQ(what_if().answer().rows.size(), 3U);
  EXPECT_EQ(what_if().answer().rows[0].scenario.file.job.training.global_batch, 8);
  EXPECT_EQ(what_if().answer().rows[1].scenario.file.job.training.global_batch, 16);
  EXPECT_EQ(what_if().answer().rows[2].scenario.file.job.training.global_batch, 32);
}

// Such a node is no larger cluster, which was found out only as its name was read.
TEST_F(WhatIfWindow, LeavesNodesWithoutAdaptersAlone) {
  const Scenario alone = with_cluster(small_scenario(), "generic-cpu:1");
  begin(alone);
  window_.show_view(MainWindow::kWhatIf);
  const int devices = alone.cluster.devices();
  put(Question::kDevices, QString("%1,%2").arg(devices).arg(2 * devices));
  ASSERT_TRUE(answers());
  ASSERT_EQ(what_if().answer().rows.size(), 2U);
  EXPECT_FALSE(what_if().answer().rows[1].best.has_value());
  EXPECT_THAT(what_if().answer().rows[1].refused, HasSubstr("no network adapters"));
}

TEST_F(WhatIfWindow, AsksForSequencesOfTheSameTokens) {
  put(Question::kSequence, "256:1024");
  ASSERT_TRUE(answers());
  ASSERT_EQ(what_if().answer().rows.size(), 3U);
  EXPECT_EQ(what_if().answer().rows[0].scenario.file.job.training.global_batch, 64);
  EXPECT_EQ(what_if().answer().rows[2].scenario.file.job.training.global_batch, 16);
}

TEST_F(WhatIfWindow, SaysBesideItWhyAQuestionCannotBeAsked) {
  EXPECT_FALSE(what_if().refusal().isVisible());
  put(Question::kBatch, "many");
  EXPECT_TRUE(what_if().refusal().isVisible());
  EXPECT_THAT(plain(what_if().refusal().text()), HasSubstr("LEAST:MOST in samples"));
  EXPECT_FALSE(what_if().ask_button().isEnabled());
  what_if().ask();
  EXPECT_FALSE(what_if().is_asking());
  what_if().question().setCurrentIndex(static_cast<int>(Question::kDeadline));
  EXPECT_THAT(plain(what_if().refusal().text()), HasSubstr("how many tokens"));
  Scenario scenario = window_.document().scenario();
  scenario.file.job.training.total_tokens = 10'000'000'000;
  window_.document().edit(scenario, "tokens");
  EXPECT_FALSE(what_if().refusal().isVisible());
}

TEST_F(WhatIfWindow, AnswersADeadlineWithNodesAndLessMemoryWithPlans) {
  Scenario scenario = window_.document().scenario();
  scenario.file.job.training.total_tokens = 10'000'000'000;
  window_.document().edit(scenario, "tokens");
  put(Question::kDeadline, "12 h");
  ASSERT_TRUE(answers());
  ASSERT_EQ(what_if().answer().rows.size(), 1U);
  EXPECT_LE(what_if().answer().rows[0].training->seconds, 12 * 3600.0);
  EXPECT_THAT(plain(cell(0, "What if")), HasSubstr("node"));
  put(Question::kMemory, "");
  ASSERT_TRUE(answers());
  ASSERT_GE(what_if().answer().rows.size(), 2U);
  for (std::size_t i = 1; i < what_if().answer().rows.size(); ++i) {
    EXPECT_LT(what_if().answer().rows[i].at, what_if().answer().rows[i - 1].at);
  }
}

TEST_F(WhatIfWindow, TakesARowOverAndTellsOfWhichJobItsAnswersAre) {
  put(Question::kBatch, "8:32");
  ASSERT_TRUE(answers());
  what_if().table().selectRow(2);
  QTest::mouseClick(&what_if().use_button(), Qt::LeftButton);
  EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 32);
  EXPECT_EQ(program::to_json(plan()), program::to_json(what_if().answer().rows[2].best->plan));
  EXPECT_THAT(plain(what_if().sentence().text()), StartsWith("Asked of gpt2-124m on dgx-a100-80gb:1, 16 samples"));
  window_.document().history().undo();
  EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 16);
  EXPECT_THAT(plain(what_if().sentence().text()), StartsWith("From batch 8 to batch 32 the training goes from "));
}

TEST_F(WhatIfWindow, EndsEarlyWithTheRowsSoFar) {
  put(Question::kBatch, "1:16777216");
  QTest::mouseClick(&what_if().ask_button(), Qt::LeftButton);
  ASSERT_TRUE(QTest::qWaitFor([&] { return what_if().sentence().text().contains("batch 8"); }, kPatienceMs));
  what_if().cancel();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !what_if().is_asking(); }, kPatienceMs));
  EXPECT_FALSE(what_if().answer().whole);
  EXPECT_GE(what_if().answer().rows.size(), 1U);
  EXPECT_LT(what_if().answer().rows.size(), 25U);
  EXPECT_THAT(plain(what_if().sentence().text()), StartsWith("Stopped early."));
}

TEST_F(WhatIfWindow, ShowsTheSameQuestionAsACommand) {
  Scenario scenario = window_.document().scenario();
  scenario.fixed = {"tensor"};
  window_.document().edit(scenario, "held");
  put(Question::kBatch, "8:32");
  EXPECT_EQ(plain(what_if().command().text()),
            "trivium plan --model gpt2-124m --cluster dgx-a100-80gb:1 --sequence 1024 --global-batch 16 "
            "--precision bf16 --fix tensor=1 --batch-range 8:32");
  put(Question::kDevicesAndBatch, "4, 8");
  EXPECT_THAT(plain(what_if().command().text()), StartsWith("trivium scale --model"));
  EXPECT_THAT(plain(what_if().command().text()), HasSubstr("--curve weak --devices '4, 8'"));
}

}  // namespace
}  // namespace trivium::gui
