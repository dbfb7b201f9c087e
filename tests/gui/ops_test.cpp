// The table of ops below the timeline.
#include <QTreeWidget>

#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

class Ops : public Window {
 protected:
  void show_timeline() {
    begin(staged_scenario());
    window_.show_view(MainWindow::kTimeline);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready() && !ops().is_busy(); }, kPatienceMs));
  }
  OpTable& ops() { return window_.timeline().ops(); }
  QTreeWidgetItem* line(const QString& op) {
    const auto found = ops().table().findItems(op, Qt::MatchExactly, 0);
    return found.isEmpty() ? nullptr : found[0];
  }
};

TEST_F(Ops, AreListedWithTheirSpeedAndTheirShareOfTheRoofline) {
  show_timeline();
  QTreeWidgetItem* matmul = line("forward matmul");
  ASSERT_NE(matmul, nullptr);
  EXPECT_GT(matmul->text(5).toDouble(), 10);  // of the 312 TFLOP/s of an A100
  EXPECT_LT(matmul->text(5).toDouble(), 312);
  const double share = matmul->text(6).remove(" %").toDouble();
  EXPECT_GT(share, 5);
  EXPECT_LE(share, 100);
  for (const OpTotal& op : ops().ops()) EXPECT_LE(op.roofline_share(), 1 + 1e-6) << op.name;
}

// Names are cut in their middle: which pass an op is of stands at their beginning, which op it is at their end.
TEST_F(Ops, ANameThatHasNoRoomKeepsItsBothEnds) {
  show_timeline();
  window_.resize(1280, 720);
  QTest::qWait(50);
  QTreeWidgetItem* matmul = line("forward matmul");
  ASSERT_NE(matmul, nullptr);
  EXPECT_EQ(ops().table().textElideMode(), Qt::ElideMiddle);
  EXPECT_THAT(plain(matmul->toolTip(0)), testing::StartsWith("forward matmul"));
}

TEST_F(Ops, FollowTheSelectionAndAClickGoesToTheNextOccurrence) {
  show_timeline();
  TimelineCanvas& canvas = window_.timeline().canvas();
  const SpanStore& store = *canvas.timelines().at(0).spans;
  const std::size_t before = line("forward matmul")->text(1).remove(',').toULong();
  const std::int64_t middle = (store.begin() + store.end()) / 2;
  canvas.select_range(TimeRange{store.begin(), middle, std::nullopt});
  ASSERT_TRUE(QTest::qWaitFor([&] { return !ops().is_busy(); }, kPatienceMs));
  QTreeWidgetItem* matmul = line("forward matmul");
  ASSERT_NE(matmul, nullptr);
  EXPECT_LT(matmul->text(1).remove(',').toULong(), before);
  const QPoint at = ops().table().visualItemRect(matmul).center();
  std::vector<std::int64_t> starts;
  for (int i = 0; i < 3; ++i) {
    QTest::mouseClick(ops().table().viewport(), Qt::LeftButton, {}, at);
    ASSERT_TRUE(canvas.selected());
    EXPECT_THAT(store.name_of(canvas.selected()->span), testing::EndsWith("matmul"));
    starts.push_back(store.start_of(canvas.selected()->span));
  }
  EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
  ASSERT_TRUE(window_.export_ops(file("ops.csv")));
  std::ifstream csv(file("ops.csv").toStdString());
  std::string header;
  std::getline(csv, header);
  EXPECT_THAT(header, HasSubstr("op,kind,count,total_s"));
}

// Found by random actions: until the ops of another plan are added up, a click on a line of the plan before led to a
// span that is not there.
TEST_F(Ops, OfAnotherTimelineLeaveAtOnce) {
  show_timeline();
  ASSERT_FALSE(ops().ops().empty());
  const auto before = window_.timeline().canvas().timelines().at(0).spans;
  begin(small_scenario());
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready() && !ops().is_busy(); }, kPatienceMs));
  const auto now = window_.timeline().canvas().timelines().at(0).spans;
  ASSERT_NE(before, now);
  ops().show_stretch({before, {before->begin(), before->end(), {}}, {}, "what was shown"});
  EXPECT_TRUE(ops().is_busy());
  EXPECT_TRUE(ops().ops().empty());
  EXPECT_EQ(ops().table().topLevelItemCount(), 0);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !ops().is_busy(); }, kPatienceMs));
  ASSERT_GT(ops().table().topLevelItemCount(), 0);
  const std::uint32_t beyond = static_cast<std::uint32_t>(now->size());
  ops().on_next(beyond);  // of spans that are not those listed, as a table that is hidden may have them
  window_.timeline().flame().on_choose(beyond);
}

}  // namespace
}  // namespace trivium::gui
