// The view of links.
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class LinksWindow : public Window {
 protected:
  LinksView& links() { return window_.links(); }
  bool ready() {
    return QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs);
  }
  double gain(const std::string& change) {
    for (const Sensitivity& one : links().gains().gains()) {
      if (one.change == change) return one.gain;
    }
    ADD_FAILURE() << change;
    return 0;
  }
};

TEST_F(LinksWindow, TellsWhatGoesOverWhichWires) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2");
  scenario.file.job.plan.data = 2;
  begin(scenario);
  window_.show_view(MainWindow::kLinks);
  ASSERT_TRUE(ready());
  ASSERT_EQ(links().wires().size(), 2U);
  EXPECT_EQ(plain(links().table().item(0, 0)->text()), "inside nodes");
  EXPECT_THAT(plain(links().words().text()), HasSubstr("Network: "));
  ASSERT_EQ(links().bars().bars().size(), 2U);
  EXPECT_DOUBLE_EQ(links().bars().bars()[0].limit, window_.document().evaluation()->figures.iteration_s);
  EXPECT_LE(gain("network bandwidth +10 %"), 0);
  ASSERT_TRUE(window_.export_table(file("links.csv")));
  std::ifstream table(file("links.csv").toStdString());
  std::string header;
  std::getline(table, header);
  EXPECT_EQ(header, "wires,for,group,operations,bytes,busy_s");
}

// The links of idle V100s stood for those of the A100s at work: "301.0 % of their rate is used".
TEST_F(LinksWindow, NoWiresAreFilledBeyondTheirRate) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2+dgx1-v100-32gb:2");
  scenario.file.job.plan = {};
  scenario.file.job.plan.data = 16;
  begin(scenario);
  window_.show_view(MainWindow::kLinks);
  ASSERT_TRUE(ready());
  ASSERT_EQ(links().wires().size(), 2U) << plain(links().words().text());
  for (int row = 0; row < links().table().rowCount(); ++row) {
    const QTableWidgetItem* filled = links().table().item(row, links().table().columnCount() - 1);
    const QString words = filled == nullptr ? QString() : filled->text();
    EXPECT_LE(words.section(' ', 0, 0).toDouble(), 100) << plain(words);
  }
}

TEST_F(LinksWindow, ShowsNothingOfThePlanBefore) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kLinks);
  ASSERT_TRUE(ready());
  ASSERT_GT(links().table().rowCount(), 0);
  choose(window_.plan_controls().plan_control("micro_batch"), "2");
  EXPECT_EQ(links().table().rowCount(), 0);
  EXPECT_TRUE(links().gains().gains().empty());
  EXPECT_FALSE(window_.view_is_ready());
  ASSERT_TRUE(ready());
  EXPECT_GT(links().table().rowCount(), 0);
}

TEST_F(LinksWindow, SaysThatOneDeviceSendsNothingAndWhyAPlanCannotRun) {
  Scenario scenario = small_scenario();
  scenario.file.job.plan.data = 1;
  begin(scenario);
  window_.show_view(MainWindow::kLinks);
  ASSERT_TRUE(ready());
  EXPECT_EQ(links().table().rowCount(), 0);
  EXPECT_THAT(plain(links().words().text()), StartsWith("Nothing is sent"));
  scenario.file.job.plan.tensor = 5;
  window_.document().edit(scenario, "cannot run");
  ASSERT_TRUE(ready());
  EXPECT_THAT(plain(links().words().text()), StartsWith("The plan cannot run: "));
}

}  // namespace
}  // namespace trivium::gui
