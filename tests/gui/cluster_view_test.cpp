// Large clusters can be read: labels, links, a legend and scales.
#include <QStandardItemModel>

#include "gui/look/theme.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

class LargeCluster : public Window {
 protected:
  void begin_large() {
    Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:384");
    scenario.file.job.training.global_batch = 384;
    scenario.file.job.plan.data = 384;
    begin(scenario);
    window_.show_view(MainWindow::kCluster);
    QTest::qWait(20);
  }
  ClusterCanvas& canvas() { return window_.cluster().canvas(); }
};

// A rack is a few dozen pixels wide then, and its title would be of four. The wire to it is one pixel at least.
TEST_F(LargeCluster, RacksAreNumberedAndEveryWireIsDrawn) {
  begin_large();
  const ClusterMap& map = canvas().map();
  ASSERT_EQ(map.racks.size(), 96U);
  ASSERT_LT(kRackTitle * canvas().zoom(), 9);
  const QImage picture = canvas().grab().toImage();
  const QRgb wire = link_colour(canvas().palette()).rgb();
  int wires = 0, numbers = 0;
  for (std::size_t r = 0; r < map.racks.size(); ++r) {
    const Box& rack = map.racks[r];
    const QPointF corner = canvas().to_screen(rack.x, rack.y);
    const QPointF above = canvas().to_screen(rack.x + rack.width - 6, rack.y) - QPointF(0, 2);
    bool wired = false, numbered = false;
    for (int dx = -2; dx <= 2; ++dx) {
      wired = wired || picture.pixel(static_cast<int>(above.x()) + dx, static_cast<int>(above.y())) == wire;
    }
    for (int x = 0; x < 12; ++x) {
      for (int y = -9; y < 3; ++y) {
        const QPoint at(static_cast<int>(corner.x()) + x, static_cast<int>(corner.y()) + y);
        numbered = numbered || (picture.rect().contains(at) && qGray(picture.pixel(at)) < 80);  // ink on its plate
      }
    }
    wires += wired ? 1 : 0;
    numbers += numbered ? 1 : 0;
  }
  EXPECT_EQ(wires, 96);
  EXPECT_EQ(numbers, 96);
}

TEST_F(LargeCluster, TheNetworkHasRoomForItsNameAtEverySize) {
  begin_large();
  ClusterCanvas& canvas = window_.cluster().canvas();
  for (const QSize size : {QSize(500, 300), QSize(620, 530), QSize(1500, 400), QSize(1900, 1200)}) {
    canvas.resize(size);
    canvas.fit();
    const Box& bar = canvas.map().spine;
    const double top = canvas.to_screen(0, bar.y).y(), bottom = canvas.to_screen(0, bar.y + bar.height).y();
    EXPECT_TRUE(bottom - top >= 11 || top >= 20) << size.width();  // in it, or above
    const Box& last = canvas.map().racks.back();
    EXPECT_LE(canvas.to_screen(0, last.y + last.height).y(), size.height());
  }
}

TEST_F(LargeCluster, TheLegendSaysWhatColoursAre) {
  begin_large();
  ClusterLegend& legend = window_.cluster().legend();
  EXPECT_EQ(plain(legend.words()), "p0: pipeline stage 0, p1, p2, p3");
  EXPECT_EQ(legend.chips().at(1).colour, series_colour(1));
  QComboBox& colour = window_.cluster().colour();
  colour.setCurrentText("data replica");
  EXPECT_THAT(plain(legend.words()), HasSubstr("d7 … d383, colours repeat after 24"));
  colour.setCurrentText("traffic");
  EXPECT_THAT(plain(legend.words()), HasSubstr("sent an iteration"));
  EXPECT_THAT(plain(legend.words()), HasSubstr("iB"));
  const auto& choices = *qobject_cast<QStandardItemModel*>(colour.model());
  EXPECT_FALSE(choices.item(colour.findText("expert rank"))->isEnabled());  // GPT-2 is dense
}

TEST_F(LargeCluster, AnEditOfOneLinkLeavesTheOthersAsTheyAre) {
  begin(staged_scenario());
  const double bus = canvas().map().nodes[0].bus.height;
  const Scenario slower = set_constant(window_.document().scenario(), 0, NodeConstant::kIntraBandwidth, "100 GB/s");
  window_.document().edit(slower, "link");
  ASSERT_TRUE(settles());
  EXPECT_LT(canvas().map().nodes[0].bus.height, 0.5 * bus);  // a third of the 300 GB/s before
}

TEST(RoundBelow, IsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_DOUBLE_EQ(round_below(7.9e10), 5e10);
  EXPECT_DOUBLE_EQ(round_below(5e10), 5e10);
  EXPECT_DOUBLE_EQ(round_below(3), 2);
  EXPECT_DOUBLE_EQ(round_below(0.19), 0.1);
}

}  // namespace
}  // namespace trivium::gui
