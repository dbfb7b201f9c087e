// Plans edited chunk by chunk and stage by stage, and what is said of it.
#include <QHeaderView>
#include <QPainter>

#include "gui/model/cluster_edit.h"
#include "gui/model/command_line.h"
#include "models/load.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using program::Recompute;
using testing::ElementsAre;
using testing::HasSubstr;

Scenario mixed() {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2+dgx1-v100-32gb:2");
  program::Plan& plan = scenario.file.job.plan;
  plan.precision = program::DType::kFp16;
  plan.tensor = 4;
  plan.data = 2;
  return scenario;
}

TEST_F(Window, SaysAndTakesWhatEveryChunkRecomputes) {
  begin(staged_scenario());
  QComboBox& plan_control = window_.plan_controls().plan_control("recompute");
  QLineEdit& list = window_.plan_controls().list("stage_recompute");
  EXPECT_EQ(plain(list.placeholderText()), "none in all 4 chunks");
  const double before = window_.document().evaluation()->figures.iteration_s;
  type(list, "full:3, none:1");
  EXPECT_THAT(plan().stage_recompute,
              ElementsAre(Recompute::kFull, Recompute::kFull, Recompute::kFull, Recompute::kNone));
  EXPECT_EQ(plain(plan_control.currentText()), "by chunk");
  EXPECT_EQ(plain(list.text()), "full:3, none:1");
  ASSERT_TRUE(settles());
  EXPECT_GT(window_.document().evaluation()->figures.iteration_s, before);
  type(list, "full:3");
  EXPECT_THAT(plain(window_.plan_controls().message().text()), HasSubstr("3 entries"));
  EXPECT_EQ(plan().stage_recompute.size(), 4U);
  choose(plan_control, "none");
  EXPECT_TRUE(plan().stage_recompute.empty());
  EXPECT_EQ(plain(list.text()), "");
  EXPECT_EQ(plan_control.findText("by chunk"), -1);
  window_.document().history().undo();
  EXPECT_EQ(plain(plan_control.currentText()), "by chunk");
  EXPECT_EQ(plain(list.text()), "full:3, none:1");
}

TEST_F(Window, ShowsListsOnlyWhereThereIsSomethingToTellApart) {
  begin(small_scenario());
  EXPECT_TRUE(window_.plan_controls().list("stage_recompute").isHidden());
  EXPECT_TRUE(window_.plan_controls().list("stage_nodes").isHidden());
  window_.begin_example(mixed());
  EXPECT_FALSE(window_.plan_controls().list("stage_layers").isHidden());
  EXPECT_FALSE(window_.plan_controls().list("stage_nodes").isHidden());
}

TEST_F(Window, SaysAtOnceWhatTheMoveOfAStageCosts) {
  begin(mixed());
  ClusterView& cluster = window_.cluster();
  EXPECT_TRUE(cluster.cost_of_move().isHidden());
  cluster.move_stage(3, 0);
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(cluster.cost_of_move().text()), HasSubstr("Stage 3 to node 0: an iteration takes"));
  EXPECT_THAT(plain(cluster.cost_of_move().text()), HasSubstr("% against"));
  window_.document().history().undo();
  EXPECT_TRUE(cluster.cost_of_move().isHidden());
  cluster.move_stage(3, 3);
  EXPECT_THAT(plain(cluster.cost_of_move().text()), HasSubstr("it stands there"));
}

TEST_F(Window, SaysThatAMoveBetweenLikeNodesChangesNothing) {
  begin(mixed());
  const int steps = window_.document().history().count();
  window_.cluster().move_stage(0, 1);
  EXPECT_THAT(plain(window_.cluster().cost_of_move().text()), HasSubstr("both nodes are alike"));
  EXPECT_EQ(window_.document().history().count(), steps);
}

TEST_F(Window, SaysThatAStageCannotMoveToANodeThatTheClusterLacks) {
  Scenario scenario = mixed();
  scenario.file.job.plan.stage_nodes = {0, 0, 1, 1};
  begin(scenario);
  window_.cluster().move_stage(0, scenario.cluster.nodes());
  EXPECT_THAT(plain(window_.cluster().cost_of_move().text()), HasSubstr("the cluster has no such node"));
  EXPECT_EQ(window_.document().history().count(), 0);
}

TEST_F(Window, DraggingANamedStageSwapsItWithTheOneThere) {
  Scenario scenario = mixed();
  scenario.file.job.plan.stage_nodes = {0, 0, 1, 1};
  begin(scenario);
  ClusterCanvas& canvas = window_.cluster().canvas();
  const auto middle = [&](int device) {
    const Box& box = canvas.map().place_of(device);
    return canvas.to_screen(box.x + box.width / 2, box.y + box.height / 2);
  };
  const auto send = [&](QEvent::Type type, QPointF at, Qt::MouseButton button, Qt::MouseButtons buttons) {
    QMouseEvent event(type, at, canvas.mapToGlobal(at), button, buttons, {});
    QCoreApplication::sendEvent(&canvas, &event);
  };
  send(QEvent::MouseButtonPress, middle(8), Qt::LeftButton, Qt::LeftButton);  // stage 1 on the second A100 node
  send(QEvent::MouseMove, middle(16), Qt::NoButton, Qt::LeftButton);
  send(QEvent::MouseButtonRelease, middle(16), Qt::LeftButton, Qt::NoButton);
  EXPECT_THAT(plan().stage_nodes, ElementsAre(0, 1, 0, 1));
  ASSERT_TRUE(settles());
  EXPECT_EQ(plain(window_.plan_controls().list("stage_nodes").text()), "0x1, 1x1, 0x1, 1x1");
  EXPECT_THAT(plain(window_.cluster().cost_of_move().text()), HasSubstr("Stage 1 to node 2: an iteration takes"));
}

TEST_F(Window, TakesCountsWithUnitsAndNoneForAll) {
  begin(staged_scenario());
  StartPanel& panel = window_.start_panel();
  EXPECT_EQ(plain(panel.field("ranks").text()), "");
  EXPECT_EQ(plain(panel.field("ranks").placeholderText()), "all 8");
  type(panel.field("total_tokens"), "300 B");
  EXPECT_EQ(window_.document().scenario().file.job.training.total_tokens, 300'000'000'000);
  EXPECT_EQ(plain(panel.field("total_tokens").text()), "300,000,000,000");
  panel.field("total_tokens").clear();
  panel.apply("total_tokens");
  EXPECT_EQ(window_.document().scenario().file.job.training.total_tokens, 0);
}

TEST_F(Window, TakesModulesOfMultiTokenPrediction) {
  Scenario scenario = staged_scenario();
  scenario.file.job.model = models::load_model("llama3-8b");
  begin(scenario);
  StartPanel& panel = window_.start_panel();
  EXPECT_EQ(plain(panel.field("mtp").text()), "");
  type(panel.field("mtp"), "2");
  EXPECT_EQ(window_.document().scenario().file.job.model.mtp_depth(), 2);
  EXPECT_THAT(command_line(window_.document().scenario()), HasSubstr("--model llama3-8b --mtp 2 "));
  type(panel.field("mtp"), "65");
  EXPECT_FALSE(panel.wrong("mtp").isEmpty());
  type(panel.field("mtp"), "0");
  EXPECT_EQ(window_.document().scenario().file.job.model, models::load_model("llama3-8b"));
  scenario.file.job.model = models::load_model("gpt3-175b");
  begin(scenario);
  type(panel.field("mtp"), "1");
  EXPECT_THAT(plain(panel.wrong("mtp")), HasSubstr("learned positions"));
}

TEST_F(Window, ItsNamesOfPlansAreNotCutOff) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.placement = "tensor-context-pipeline-data";
  scenario = with_list(std::move(scenario), "stage_recompute", "selective, none, full, selective");
  begin(scenario);
  window_.show_view(MainWindow::kPlans);
  window_.plans().pin_current();
  Scenario other = scenario;
  other.file.job.plan.micro_batch = 2;
  window_.document().edit(other, "another");
  ASSERT_TRUE(settles());
  window_.plans().pin_current();
  QTest::qWait(20);
  const QLabel& name = window_.headline().plan();
  EXPECT_GE(name.height(), name.heightForWidth(name.width()));
  QTableWidget& table = window_.plans().comparison();
  for (int c : {1, 2}) {
    const QTableWidgetItem* title = table.horizontalHeaderItem(c);
    EXPECT_THAT(plain(title->text()), testing::StartsWith(c == 1 ? "A: " : "B: "));
    EXPECT_THAT(plain(title->text().remove('\n').remove(' ')), HasSubstr("recompute=selective:1,none:1,full:1"));
    QFont bold = table.horizontalHeader()->font();
    bold.setBold(true);
    const QSize words = QFontMetrics(bold).size(0, title->text());
    EXPECT_LE(words.width(), table.columnWidth(c));
    EXPECT_LE(words.height(), table.horizontalHeader()->height());
  }
  EXPECT_LE(table.columnWidth(0) + table.columnWidth(1) + table.columnWidth(2), table.viewport()->width());
}

TEST_F(Window, ItsLabelsCoverNoPointWhereThereIsRoom) {
  ScatterChart chart("plans");
  chart.resize(600, 400);
  const auto words = [](double value) { return QString::number(value); };
  chart.set_points({{1, 1, "first", true, "A"}, {1.01, 1.03, "near", false, {}}, {2, 2, "second", true, "B"}},
                   {0, 1, "x", words}, {0, 1, "y", words});
  const auto labels = chart.labels();
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(plain(labels[0].text), "A");
  for (const ScatterChart::Label& label : labels) {
    for (int p = 0; p < 3; ++p) EXPECT_FALSE(label.box.contains(chart.place_of(p)));
  }
  chart.set_selected(1);
  EXPECT_EQ(plain(chart.labels().at(1).text), "near");
}

}  // namespace
}  // namespace trivium::gui
