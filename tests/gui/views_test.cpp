// Views of the window one by one.
#include <QComboBox>
#include <QPixmapCache>
#include <QScrollBar>
#include <QSplitter>

#include "gui/look/theme.h"
#include "gui/model/cluster_edit.h"
#include "gui/window/row_scroll.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

TEST_F(Window, SaysWhatWillBeListedWhereNothingIsYet) {
  begin(small_scenario());
  const QTableWidget& rejected = window_.plans().rejected();
  ASSERT_EQ(rejected.rowCount(), 1);
  EXPECT_THAT(plain(rejected.item(0, 0)->text()), HasSubstr("what it refuses"));
  EXPECT_EQ(rejected.columnSpan(0, 0), 3);
}

TEST_F(Window, SaysWhatEveryFigureOnTopIsAndWhereItComesFrom) {
  begin(small_scenario());
  int told = 0;
  for (const QLabel* label : window_.headline().findChildren<QLabel*>()) {
    if (label->toolTip().startsWith("Predicted") || label->toolTip().contains("price")) ++told;
  }
  EXPECT_EQ(told, 10);  // five figures and their names
}

TEST_F(Window, TellsTheEnergyOfASmallTrainingToo) {
  Scenario scenario = small_scenario();
  scenario.file.job.training.total_tokens = 300'000'000;
  begin(scenario);
  window_.show_view(MainWindow::kExplain);
  QString costs;
  for (const QLabel* label : window_.explain().findChildren<QLabel*>()) {
    if (label->accessibleName().startsWith("Time, energy")) costs = label->text();
  }
  EXPECT_THAT(plain(costs), testing::ContainsRegex("[1-9][0-9.]* kWh"));
}

// Qt keeps the names of all that its cache ever held, and themes and sizes make new ones without end.
TEST(Theme, KeepsNoPictureUnderAName) {
  apply_theme(Theme::kLight);
  QPixmap picture(8, 8);
  picture.fill(Qt::red);
  EXPECT_FALSE(QPixmapCache::insert("a control in a size and a palette", picture));
}

TEST_F(Window, ShowsMemoryByRankAndOverTimeOfTheChosenOne) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kMemory);
  MemoryView& memory = window_.memory();
  EXPECT_FALSE(memory.rank().isVisible());
  memory.show_ranks(true);
  ASSERT_EQ(memory.bars().bars().size(), 8U);
  EXPECT_EQ(plain(memory.bars().bars().back().label), "rank 7");
  memory.rank().setValue(5);
  EXPECT_EQ(memory.bars().selected(), 5);
  EXPECT_THAT(plain(memory.held().text()), HasSubstr("rank 5: stage 2, replica 0, tensor rank 1"));
  QTest::keyClick(&memory.bars(), Qt::Key_Right);
  EXPECT_EQ(memory.rank().value(), 6);
  EXPECT_THAT(plain(memory.held().text()), HasSubstr("rank 6: stage 3"));
  ASSERT_TRUE(window_.export_table(file("ranks.csv")));
  std::ifstream table(file("ranks.csv").toStdString());
  std::string header;
  std::getline(table, header);
  EXPECT_THAT(header, testing::StartsWith("rank,stage,parameters_bytes"));
  memory.show_ranks(false);
  EXPECT_EQ(memory.bars().bars().size(), 4U);
}

TEST_F(Window, DrawsTheFullestOfMoreRanksThanPixels) {
  BarChart chart("bars");
  chart.resize(300, 200);
  std::vector<Bar> bars(5000, {"rank", {1.0}, 2.0});
  bars[2501].values[0] = 3;  // more than there is
  chart.set_bars({{"memory", Qt::blue}}, bars, "memory", [](double value) { return QString::number(value); });
  const QImage picture = chart.grab().toImage();
  int alarmed = 0;
  for (int x = 0; x < picture.width(); ++x) {
    for (int y = 0; y < picture.height(); ++y) alarmed += picture.pixelColor(x, y) == alarm_colour() ? 1 : 0;
  }
  EXPECT_GT(alarmed, 20);  // a column of it, about a third of the plot's height
}

TEST_F(Window, SelectsARankWhereRanksShareCores) {
  Scenario scenario = local_example();
  scenario.cluster.groups[0].node.devices = 2;
  scenario = with_cluster(scenario, scenario.cluster);
  scenario.file.job.plan.data = 4;
  begin(scenario);
  ASSERT_EQ(window_.document().evaluation()->refusal, "");
  ClusterCanvas& canvas = window_.cluster().canvas();
  canvas.select(3);
  EXPECT_EQ(canvas.selected(), 3);
  EXPECT_NE(canvas.lit_by(0), nullptr);
  EXPECT_THAT(plain(canvas.tip_of(1)), HasSubstr("2 ranks take turns"));
  EXPECT_FALSE(canvas.grab().isNull());
  ASSERT_TRUE(window_.export_table(file("ranks.csv")));
}

TEST_F(Window, SaysWhatWasSimulatedForTheBand) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.explain().sure().text()), HasSubstr("50 random simulations of every rank, op by op"));
  choose(window_.plan_controls().plan_control("tensor"), "1");
  EXPECT_TRUE(window_.explain().sure().text().isEmpty());
}

TEST_F(Window, ItsFormsEndBetweenTwoRows) {
  begin(staged_scenario());
  for (const int height : {620, 655, 700, 743, 900}) {
    window_.resize(1400, height);
    QTest::qWait(20);
    for (const RowScroll* area : window_.findChildren<RowScroll*>()) {
      if (!area->isVisible() || area->widget()->height() <= area->contentsRect().height()) continue;
      area->verticalScrollBar()->setValue(0);
      const int end = area->viewport()->height();
      for (const QWidget* row : area->widget()->findChildren<QWidget*>(Qt::FindDirectChildrenOnly)) {
        if (row->isHidden()) continue;
        EXPECT_FALSE(row->geometry().top() < end && row->geometry().bottom() >= end)
            << plain(row->accessibleName()) << " at a height of " << height;
      }
    }
  }
}

TEST_F(Window, EditsOfLinksAreTypedWithUnitsAndUndone) {
  begin(with_cluster(staged_scenario(), "dgx-a100-80gb:2"));
  QLineEdit& network = window_.cluster().constant(NodeConstant::kNetworkBandwidth);
  const QString before = network.text();
  const double time = window_.document().evaluation()->figures.iteration_s;
  type(network, "1 Gb/s");
  EXPECT_DOUBLE_EQ(window_.document().scenario().cluster.groups[0].node.network.bandwidth.value(), 125e6);
  choose(window_.plan_controls().plan_control("data"), "2");  // gradients cross the network now
  ASSERT_TRUE(settles());
  EXPECT_GT(window_.document().evaluation()->figures.iteration_s, time);
  type(network, "3 parsecs");
  EXPECT_THAT(plain(window_.cluster().message().text()), HasSubstr("Gb/s"));
  window_.document().history().undo();
  window_.document().history().undo();
  EXPECT_EQ(network.text(), before);
}

}  // namespace
}  // namespace trivium::gui
