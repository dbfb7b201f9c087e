// What the window tells of a plan: of which job, cluster and space, and how to have it elsewhere.
#include <QClipboard>
#include <QProcess>
#include <QScrollBar>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/model/axis.h"
#include "gui/model/cluster_edit.h"
#include "gui/model/command_line.h"
#include "planner/space/trainers.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

class Told : public Window {
 protected:
  std::string state() { return plain(window_.headline().state().text()); }
  void search() {
    window_.plans().search();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
    ASSERT_FALSE(window_.plans().plans().empty());
  }
};

TEST_F(Told, AnAlteredClusterSaysSoEverywhereAndHasAWayBack) {
  begin(staged_scenario());
  EXPECT_TRUE(window_.start_panel().altered().isHidden());
  Scenario slower = set_constant(window_.document().scenario(), 0, NodeConstant::kIntraBandwidth, "100 GB/s");
  window_.document().edit(slower, "link");
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.headline().plan().text()), HasSubstr("dgx-a100-80gb:1, altered"));
  EXPECT_EQ(plain(window_.start_panel().cluster().currentText()), "dgx-a100-80gb:1, altered");
  QLabel& note = window_.start_panel().altered();
  ASSERT_FALSE(note.isHidden());
  EXPECT_THAT(plain(note.text()), HasSubstr("link inside the node 100 GB/s instead of"));
  EXPECT_THAT(state(), HasSubstr("against the cluster before"));
  ASSERT_TRUE(window_.export_plan(file("p.json")));
  std::ifstream written(file("p.json").toStdString());
  EXPECT_THAT(nlohmann::json::parse(written).dump(), HasSubstr("dgx-a100-80gb:1, altered"));
  Q_EMIT note.linkActivated("dgx-a100-80gb:1");
  ASSERT_TRUE(settles());
  EXPECT_TRUE(window_.start_panel().altered().isHidden());
  EXPECT_THAT(plain(window_.headline().plan().text()), Not(HasSubstr("altered")));
}

TEST_F(Told, AClusterOfAFileIsMarkedWhereItsNodesAreNotAsTheirProfile) {
  Scenario scenario = staged_scenario();
  hardware::Cluster cluster = scenario.cluster;
  cluster.groups[0].node.network.latency = base::Seconds(1e-3);
  begin(with_cluster(scenario, cluster));  // under the stock name, as older files have it
  EXPECT_THAT(plain(window_.headline().plan().text()), HasSubstr("altered"));
  cluster.groups[0].node.name = "my-own-node";
  begin(with_cluster(scenario, cluster));
  EXPECT_THAT(plain(window_.headline().plan().text()), Not(HasSubstr("altered")));
}

// The choices are those of the command line's --for; the answer is its plan, for the same space and the same gap.
TEST_F(Told, ASearchForATrainerFindsWhatTheCommandLineFinds) {
  Scenario small = small_scenario();
  small.file.job.plan.recompute = program::Recompute::kFull;
  begin(small);
  QComboBox& trainer = window_.start_panel().trainer();
  ASSERT_EQ(trainer.count(), static_cast<int>(planner::trainer_spaces().size()) + 1);
  EXPECT_EQ(plain(trainer.currentText()), "Trivium");
  trainer.setCurrentIndex(trainer.findText("torchtitan"));
  window_.start_panel().apply("trainer");
  EXPECT_EQ(plan().stack, "torchtitan-fsdp2");
  ASSERT_TRUE(settles());
  search();
  EXPECT_THAT(plain(window_.plans().status().text()), HasSubstr("plans for torchtitan:"));
  const QString command = text(search_command(window_.document().scenario(), "plan"));
  EXPECT_THAT(plain(command), HasSubstr(" --for torchtitan"));
  QProcess process;
  process.start("sh", {"-c", RunPanel::trivium_program() + command.mid(QString("trivium").size()) + " --json"});
  ASSERT_TRUE(process.waitForFinished(kPatienceMs));
  const auto answer = nlohmann::json::parse(process.readAllStandardOutput().toStdString());
  const PlanRow& first = window_.plans().plans().front();
  EXPECT_EQ(first.iteration_s, answer.at("best").at("iteration_s").get<double>());
  EXPECT_EQ(first.plan.stack, answer.at("best").at("plan").at("stack").get<std::string>());
  window_.document().history().undo();
  EXPECT_EQ(plain(trainer.currentText()), "Trivium");
}

TEST_F(Told, WhatCannotBeSearchedForATrainerIsSaidAtOnce) {
  Scenario small = small_scenario();
  small.file.job.plan.expert = 1, small.file.job.plan.recompute_layers = 1;
  small.fixed.insert("recompute_layers");
  begin(small);
  QComboBox& trainer = window_.start_panel().trainer();
  trainer.setCurrentIndex(trainer.findText("DeepSpeed"));
  window_.start_panel().apply("trainer");
  EXPECT_THAT(plain(window_.start_panel().wrong("trainer")), HasSubstr("recompute_layers is of full recomputation"));
  EXPECT_EQ(window_.document().scenario().trainer, "");
}

TEST_F(Told, TheTimeOnTopIsTheExpectedOneWithItsInterval) {
  begin(small_scenario());
  const simulator::Certainty& sure = window_.document().evaluation()->figures.certainty;
  EXPECT_EQ(plain(window_.headline().figure(0)), seconds_words(sure.expected_s));
  QString below;
  for (const QLabel* label : window_.headline().findChildren<QLabel*>()) {
    if (label->text().startsWith("expected, 90 %: ")) below = label->text();
  }
  EXPECT_THAT(plain(below), HasSubstr(" to "));
  EXPECT_THAT(state(), HasSubstr("simulated " + seconds_words(window_.document().evaluation()->figures.iteration_s)));
}

TEST_F(Told, NoDifferenceIsToldAcrossJobs) {
  begin(staged_scenario());
  choose(window_.plan_controls().plan_control("recompute"), "full");
  ASSERT_TRUE(settles());
  EXPECT_THAT(state(), HasSubstr("% against the plan before"));
  type(window_.start_panel().field("global_batch"), "64");
  ASSERT_TRUE(settles());
  EXPECT_THAT(state(), Not(HasSubstr("against")));
  window_.begin_example(local_example());
  ASSERT_TRUE(settles());
  EXPECT_THAT(state(), Not(HasSubstr("against")));
}

TEST_F(Told, TheHeadlineSaysOfWhichSpaceThePlanIsTheAnswer) {
  begin(small_scenario());
  type(window_.start_panel().field("fixed"), "tensor parallel, ZeRO stage");
  search();
  EXPECT_THAT(plain(window_.plans().status().text()), HasSubstr("plans with Tensor parallel 1, ZeRO stage 0 held:"));
  window_.plans().use(0);
  ASSERT_TRUE(settles());
  EXPECT_THAT(state(), HasSubstr("the fastest of "));
  EXPECT_THAT(state(), HasSubstr("Tensor parallel 1, ZeRO stage 0 held"));
  choose(window_.plan_controls().plan_control("recompute"), "full");
  ASSERT_TRUE(settles());
  EXPECT_THAT(state(), Not(HasSubstr("the fastest of ")));
}

TEST_F(Told, NothingInTheTableBeatsTheAnswer) {
  begin(staged_scenario());
  search();
  const std::vector<PlanRow>& rows = window_.plans().plans();
  for (const PlanRow& row : rows) EXPECT_LE(rows[0].iteration_s, row.iteration_s);
}

TEST_F(Told, APlanThatBeatsTheAnswerFromOutsideOfItsSpaceIsNamed) {
  begin(small_scenario());
  search();
  window_.plans().use(0);
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.plans().status().text()), Not(HasSubstr("is faster, ")));
  type(window_.start_panel().field("fixed"), "tensor parallel");
  choose(window_.plan_controls().plan_control("tensor"), "4");
  search();  // of plans that split every layer in four
  window_.document().history().undo();
  window_.document().history().undo();
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.plans().status().text()), testing::StartsWith("The current plan is faster, "));
  EXPECT_THAT(plain(window_.plans().status().text()), HasSubstr("outside of the space that was searched"));
}

TEST_F(Told, ListsOfThePlanAreNoLimitsOfASearch) {
  begin(staged_scenario());
  search();
  const double best = window_.plans().plans()[0].iteration_s;
  Scenario listed = window_.document().scenario();
  listed.file.job.plan.stage_recompute.assign(4, program::Recompute::kFull);
  listed.file.job.plan.stage_layers = {1, 1, 1, 9};
  window_.document().edit(listed, "lists");
  search();
  EXPECT_EQ(window_.plans().plans()[0].iteration_s, best);
}

TEST_F(Told, TheCommandPredictsTheSame) {
  begin(staged_scenario());
  choose(window_.plan_controls().plan_control("recompute"), "selective");
  choose(window_.plan_controls().plan_control("overlap.pipeline"), "on");
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.command().text()), HasSubstr("--recompute selective"));
  for (QAction* action : window_.findChildren<QAction*>()) {
    if (action->shortcut() == QKeySequence("Ctrl+Shift+C")) action->trigger();
  }
  EXPECT_EQ(QGuiApplication::clipboard()->text(), window_.command().text());
  QProcess shell;
  shell.start(
      "sh", {"-c", window_.command().text().replace("trivium ", RunPanel::trivium_program() + " ", Qt::CaseSensitive) +
                       " --json"});
  ASSERT_TRUE(shell.waitForFinished(kPatienceMs));
  const auto said = nlohmann::json::parse(shell.readAllStandardOutput().toStdString(), nullptr, false);
  ASSERT_TRUE(said.is_object()) << shell.readAllStandardError().toStdString();
  EXPECT_THAT(said.dump(), HasSubstr(nlohmann::json(window_.document().evaluation()->figures.iteration_s).dump()));
}

TEST_F(Told, WhatOptionsCannotSayIsAPlanFile) {
  begin(staged_scenario());
  window_.document().edit(set_constant(window_.document().scenario(), 0, NodeConstant::kDeviceMemory, "40 GiB"), "m");
  EXPECT_EQ(plain(window_.command().text()), "trivium simulate plan.json");
}

TEST_F(Told, ATraceTakesThePlaceOfTheTimelineAtOnceAndIsNamed) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  ASSERT_TRUE(window_.export_trace(file("t.json")));
  ASSERT_TRUE(window_.open(file("t.json")));
  EXPECT_TRUE(window_.timeline().canvas().timelines().empty());
  EXPECT_THAT(plain(window_.timeline().canvas().hint()), HasSubstr("Reading t.json"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.timeline().is_busy(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.timeline().note().text()), HasSubstr("t.json: "));
  EXPECT_THAT(state(), HasSubstr("The timeline shows t.json"));
  choose(window_.plan_controls().plan_control("recompute"), "full");
  ASSERT_TRUE(settles());
  EXPECT_THAT(state(), Not(HasSubstr("t.json")));
}

TEST_F(Told, ABrokenTraceLeavesThePlansTimeline) {
  begin(staged_scenario());
  write("broken.json", "{\"traceEvents\": [{\"ph\"");
  window_.open(file("broken.json"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.timeline().canvas().timelines().empty(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.timeline().note().text()), Not(HasSubstr("broken")));
  EXPECT_THAT(state(), Not(HasSubstr("broken")));
}

TEST_F(Told, ASearchOnASmallScreenLeavesTheWindowAsItIs) {
  begin(small_scenario());
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kPlans);
  search();
  window_.plans().pin(0);
  window_.plans().pin(1);
  QTest::qWait(20);
  EXPECT_EQ(window_.size(), QSize(1280, 720));
  EXPECT_LE(window_.minimumSizeHint().width(), 1280);
  EXPECT_LE(window_.minimumSizeHint().height(), 720);
}

TEST_F(Told, JumpsSayWhichMatchTheyAreAt) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  QLineEdit& field = window_.timeline().search_field();
  field.setFocus();
  QTest::keyClicks(&field, "matmul");
  QTest::keyClick(&field, Qt::Key_Return);
  const std::string all = base::integer(static_cast<double>(window_.timeline().matches()));
  EXPECT_EQ(plain(window_.timeline().search_result().text()), "1 of " + all);
  QTest::keyClick(&field, Qt::Key_Return);
  EXPECT_EQ(plain(window_.timeline().search_result().text()), "2 of " + all);
  QTest::keyClick(&field, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(plain(window_.timeline().search_result().text()), "1 of " + all);
}

}  // namespace
}  // namespace trivium::gui
