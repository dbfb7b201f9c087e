// One meaning for a colour, one name for a thing, and no button that only refuses.
#include <QTreeWidgetItemIterator>

#include "gui/look/theme.h"
#include "gui/timeline/breakdown_panel.h"
#include "gui/views/cluster_legend.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Meaning = Window;

TEST_F(Meaning, GroupsAreRingedInInkNotInColoursOfStages) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2");
  scenario.file.job.plan.data = 2;
  begin(scenario);
  window_.show_view(MainWindow::kCluster);
  ClusterView& view = window_.cluster();
  ClusterCanvas& canvas = view.canvas();
  for (const Theme theme : {Theme::kDark, Theme::kLight}) {
    apply_theme(theme);
    canvas.select(0);
    canvas.fit();
    const QImage picture = canvas.grab().toImage();
    const double ratio = picture.devicePixelRatio();
    std::set<const LitGroup*> seen;
    for (const MapNode& node : canvas.map().nodes) {
      for (std::size_t i = 0; i < node.places.size(); ++i) {
        const LitGroup* lit = canvas.lit_by(node.first_device + static_cast<int>(i));
        if (lit == nullptr) continue;
        seen.insert(lit);
        const QRectF box = canvas.on_screen(node.places[i]);
        for (double x = box.left() + 2; x < box.right() - 2; x += 1) {
          const QColor edge = picture.pixelColor((QPointF(x, box.top() + 0.5) * ratio).toPoint());
          EXPECT_LE(edge.saturation(), 60) << lit->words << " " << plain(edge.name());
        }
      }
    }
    EXPECT_EQ(seen.size(), 3U);  // tensor, data and pipeline
  }
  apply_theme(Theme::kLight);
  const QString said = view.selection().text();
  EXPECT_EQ(said.count("<img"), 3);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(said.contains(series_colour(i).name()));
  std::set<Qt::PenStyle> lines;
  for (const LitGroup& group : lit_groups()) lines.insert(group.line);
  EXPECT_EQ(lines.size(), lit_groups().size());
}

// Of a plan without replicas, whose first and last stage share an embedding.
TEST_F(Meaning, GroupsOfOneAreNotTold) {
  begin(staged_scenario());
  const auto& program = *window_.document().evaluation()->program;
  ASSERT_EQ(program.mesh.group_size(program::Group::kData), 1);
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  std::string kinds;
  const QTreeWidget& table = window_.timeline().panel().table();
  for (QTreeWidgetItemIterator item(const_cast<QTreeWidget*>(&table)); *item != nullptr; ++item) {
    kinds += plain((*item)->text(0)) + ", ";
  }
  EXPECT_THAT(kinds, AllOf(HasSubstr("tied embedding"), Not(HasSubstr("data parallel"))));
  const std::string told = plain(window_.cluster().canvas().tip_of(0));
  EXPECT_THAT(told, HasSubstr("Rank 0: tensor 0, pipeline stage 0\n"));
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.explain().is_current(); }, kPatienceMs));
  for (const BarPart& part : window_.explain().parts().parts()) EXPECT_NE(plain(part.name), "exposed data");
  EXPECT_THAT(plain(window_.explain().words().toPlainText()), Not(HasSubstr("xposed data")));
}

TEST_F(Meaning, TheSameOpHasOneNameInTwoPlans) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.schedule = program::Schedule::kZeroBubble;
  begin(scenario);
  window_.plans().pin_current();
  window_.document().edit(staged_scenario(), "another");
  ASSERT_TRUE(settles());
  window_.show_two_plans();
  TwoPlansView& view = window_.two_plans();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view.is_busy() && !view.difference().ops.empty(); }, kPatienceMs));
  int of_weights = 0;
  for (const OpDifference& op : view.difference().ops) {
    EXPECT_THAT(op.name, Not(HasSubstr("backward weights")));
    if (op.name != "backward matmul wgrad") continue;
    ++of_weights;
    EXPECT_GT(op.seconds[0], 0);
    EXPECT_GT(op.seconds[1], 0);
  }
  EXPECT_EQ(of_weights, 1);
}

TEST_F(Meaning, RunIsOfferedForWhatThisMachineCanRunAlone) {
  begin(staged_scenario());  // for A100s
  window_.show_runs();
  RunPanel& runs = window_.runs();
  for (QPushButton* button : {&runs.run_button(), &runs.resume_button()}) EXPECT_FALSE(button->isEnabled());
  EXPECT_TRUE(runs.refusal().isVisible());
  EXPECT_THAT(plain(runs.refusal().text()), AllOf(HasSubstr("a100"), HasSubstr("this-machine")));
  runs.corpus().setText(file("text.txt"));
  runs.start();  // by its key
  EXPECT_FALSE(runs.is_running());
  window_.document().edit(local_example(), "this machine");
  ASSERT_TRUE(settles());
  EXPECT_TRUE(runs.run_button().isEnabled());
  EXPECT_FALSE(runs.refusal().isVisible());
}

}  // namespace
}  // namespace trivium::gui
