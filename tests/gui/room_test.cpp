// What pictures of every view showed of room that is left empty, and of room that is missing.
#include <QDockWidget>
#include <QHeaderView>
#include <QListWidget>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>

#include "gui/window/kept_layout.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

class Room : public Window {
 protected:
  /// Without the panels that another window has left open.
  void SetUp() override {
    Window::SetUp();
    for (QDockWidget* dock : window_.findChildren<QDockWidget*>()) {
      if (window_.dockWidgetArea(dock) == Qt::BottomDockWidgetArea) dock->hide();
    }
  }
  bool ready() {
    return QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs);
  }
  /// Neither scrolled nor higher than its rows.
  static bool is_fitted(const QTableWidget& table) {
    const int below = table.viewport()->height() - table.rowViewportPosition(table.rowCount() - 1) -
                      table.rowHeight(table.rowCount() - 1);
    return table.verticalScrollBar()->maximum() == 0 && below >= 0 && below < 12;
  }
  void ask_of_batches() {
    window_.show_view(MainWindow::kWhatIf);
    WhatIfView& view = window_.what_if();
    view.question().setCurrentIndex(static_cast<int>(Question::kBatch));
    view.value().setText("16:64");
    Q_EMIT view.value().textEdited("16:64");
    view.ask();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !view.is_asking(); }, kPatienceMs));
    ASSERT_GE(view.table().rowCount(), 3);
  }
  bool timeline_is_shown() {
    window_.show_view(MainWindow::kTimeline);
    return ready() && QTest::qWaitFor([&] { return !window_.timeline().ops().is_busy(); }, kPatienceMs);
  }
};

TEST_F(Room, TheTableOfLinksHasWhatItsRowsNeed) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2");
  scenario.file.job.plan.data = 2;
  begin(scenario);
  window_.show_view(MainWindow::kLinks);
  ASSERT_TRUE(ready());
  const QTableWidget& table = window_.links().table();
  ASSERT_GE(table.rowCount(), 7);
  for (const QSize size : {QSize(1600, 900), QSize(2560, 1440)}) {
    window_.resize(size);
    EXPECT_TRUE(QTest::qWaitFor([&] { return is_fitted(table); })) << size.height() << ": " << table.height();
  }
  window_.resize(1280, 720);  // where the pictures below keep their share
  EXPECT_TRUE(QTest::qWaitFor([&] { return window_.height() == 720 && window_.links().height() < 600; }))
      << window_.height() << " " << window_.links().height() << " " << window_.minimumSizeHint().height();
  EXPECT_GE(window_.links().bars().height(), 120);
  for (int column = 0; column < table.columnCount(); ++column) {
    const QString title = table.horizontalHeaderItem(column)->text();
    EXPECT_GE(table.columnWidth(column), table.horizontalHeader()->fontMetrics().horizontalAdvance(title) + 4)
        << plain(title);
  }
}

TEST_F(Room, AnswersOfWhatIfHaveWhatTheirRowsNeed) {
  begin(small_scenario());
  ask_of_batches();
  const QTableWidget& table = window_.what_if().table();
  for (const QSize size : {QSize(1280, 720), QSize(2560, 1440)}) {
    window_.resize(size);
    EXPECT_TRUE(QTest::qWaitFor([&] { return is_fitted(table); })) << size.height() << ": " << table.height();
  }
}

TEST_F(Room, WhatAHandChoseStays) {
  begin(staged_scenario());
  window_.resize(1600, 900);
  window_.show_view(MainWindow::kLinks);
  ASSERT_TRUE(ready());
  FittedSplitter& halves = window_.links().halves();
  EXPECT_FALSE(halves.is_by_hand());
  QWidget* handle = halves.handle(1);
  const QPoint middle = handle->rect().center();
  QTest::mousePress(handle, Qt::LeftButton, {}, middle);
  QTest::mouseMove(handle, middle + QPoint(0, 40));
  QTest::mouseRelease(handle, Qt::LeftButton, {}, middle + QPoint(0, 40));
  ASSERT_TRUE(halves.is_by_hand());
  const QList<int> chosen = halves.sizes();
  halves.fit();
  EXPECT_EQ(halves.sizes(), chosen);
  // Also in the next window; what no hand chose is found anew there.
  keep_layout(window_);
  MainWindow next;
  EXPECT_TRUE(next.links().halves().is_by_hand());
  EXPECT_FALSE(next.timeline().halves().is_by_hand());
  QSettings("trivium", "trivium-gui").remove("splitters");
}

TEST_F(Room, FewRowsOfATimelineFillALargeWindow) {
  Scenario scenario = small_scenario();
  scenario.file.job.plan.data = 1;
  begin(scenario);
  window_.resize(2560, 1440);
  ASSERT_TRUE(timeline_is_shown());
  TimelineCanvas& canvas = window_.timeline().canvas();
  const auto is_full = [&](double share) {
    return QTest::qWaitFor([&] { return canvas.layout_of_rows().height() >= share * canvas.time_area().height(); });
  };
  EXPECT_TRUE(is_full(0.9)) << canvas.layout_of_rows().height() << " of " << canvas.time_area().height();
  scenario.file.job.plan.pipeline = 2;
  window_.document().edit(scenario, "two stages");
  ASSERT_TRUE(settles());
  ASSERT_TRUE(timeline_is_shown());
  EXPECT_TRUE(is_full(0.95)) << canvas.layout_of_rows().height() << " of " << canvas.time_area().height();
  const QTreeWidget& ops = window_.timeline().ops().table();
  EXPECT_TRUE(QTest::qWaitFor([&] { return ops.verticalScrollBar()->maximum() == 0; }));
}

TEST_F(Room, TitlesOfRowsHaveWhatTheyNeed) {
  begin(staged_scenario());
  window_.resize(1600, 900);
  ASSERT_TRUE(timeline_is_shown());
  const TimelineCanvas& canvas = window_.timeline().canvas();
  QFont bold = canvas.font();
  bold.setPixelSize(12);
  bold.setBold(true);
  int widest = 0;
  for (const Row& row : canvas.timelines()[0].spans->rows()) {
    const QString name = QString::fromStdString(row.name);
    if (row.kind == RowKind::kDevice) widest = std::max(widest, QFontMetrics(bold).horizontalAdvance(name));
  }
  EXPECT_LT(canvas.time_area().left(), 240);
  EXPECT_GE(canvas.time_area().left(), widest + 40);
  // Names of plans are long: they get more, and leave most of the width to the time.
  window_.plans().pin_current();
  Scenario other = staged_scenario();
  other.file.job.plan.sequence_parallel = true;
  window_.document().edit(other, "another");
  ASSERT_TRUE(settles());
  window_.resize(2560, 1440);
  window_.show_two_plans();
  TimelineCanvas& two = window_.two_plans().canvas();
  ASSERT_TRUE(QTest::qWaitFor([&] { return two.timelines().size() == 2; }, kPatienceMs));
  EXPECT_GT(two.time_area().left(), 300);
  EXPECT_LE(two.time_area().left(), two.viewport()->width() * 3 / 10);
}

TEST_F(Room, EveryLevelOfTheFlameViewIsNamed) {
  begin(staged_scenario());
  window_.resize(1600, 900);
  window_.show_view(MainWindow::kTimeline);
  FlameView& flame = window_.timeline().flame();
  window_.timeline().below().setCurrentWidget(&flame);
  ASSERT_TRUE(QTest::qWaitFor([&] { return flame.flame() != nullptr && !flame.is_busy(); }, kPatienceMs));
  // 16 micro-batches have no room for their names: what they are is written across them.
  std::vector<std::string> written;
  for (const FlameView::Band& band : flame.bands()) {
    EXPECT_GE(band.box.width(), QFontMetrics(flame.font()).horizontalAdvance(band.words));
    written.push_back(plain(band.words));
  }
  EXPECT_THAT(written, testing::Contains("16 micro-batches"));
  EXPECT_THAT(written, testing::Contains("layers"));
  // A name that has room in small letters alone is written in these.
  for (std::uint32_t node = 0; node < flame.flame()->size(); ++node) {
    if (flame.flame()->name(node, *flame.store()) != "mb7") continue;
    EXPECT_EQ(plain(flame.name_on(node, 26)), "mb7");
  }
  // Bars grow into the room there is.
  EXPECT_GE(flame.box_of(0).height(), 2 * QFontMetrics(flame.font()).height());
}

TEST_F(Room, ExplainCutsNothingThatHasRoom) {
  begin(staged_scenario());
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kExplain);
  ExplainView& explain = window_.explain();
  ASSERT_TRUE(QTest::qWaitFor([&] { return explain.is_current(); }, kPatienceMs));
  for (const QSize size : {QSize(1280, 720), QSize(1600, 900), QSize(1600, 1200)}) {
    window_.resize(size);
    for (const int half : {0, 1}) {
      const QScrollArea& area = explain.half(half);
      const auto has_room = [&] {
        return area.verticalScrollBar()->maximum() == 0 ||
               explain.parts().height() <= explain.parts().minimumHeight() + 1;
      };
      EXPECT_TRUE(QTest::qWaitFor(has_room)) << half << ": " << area.verticalScrollBar()->maximum() << " of "
                                             << size.height() << ", chart " << explain.parts().height();
    }
  }
}

TEST_F(Room, TheStartPageUsesALargeWindow) {
  begin(small_scenario());
  window_.show_start_page();
  const StartPage& start = window_.start_page();
  const QWidget& page = start.page();
  const auto resized = [&](int width, int height) {
    window_.resize(width, height);
    return QTest::qWaitFor([&] { return start.width() == width; });
  };
  ASSERT_TRUE(resized(1280, 720));
  const int usual = page.fontMetrics().height();
  ASSERT_TRUE(resized(2560, 1440));
  EXPECT_GT(page.fontMetrics().height(), 1.2 * usual);
  EXPECT_GE(page.width(), 0.6 * start.width());
  const QRect place = page.geometry();
  EXPECT_NEAR(place.left(), start.width() - place.right() - 1, 2);
  const int above = place.top(), below = start.height() - place.bottom() - 1;
  EXPECT_GT(above, 0.5 * below);
  EXPECT_LT(above, below);
  for (const QSize size : {QSize(1600, 900), QSize(2560, 1440)}) {
    ASSERT_TRUE(resized(size.width(), size.height()));
    for (const QWidget* part : page.findChildren<QWidget*>()) {
      const auto* words = qobject_cast<const QLabel*>(part);
      if (!part->isVisible() || words == nullptr) continue;
      EXPECT_GE(words->height(), words->heightForWidth(words->width())) << plain(words->text());
    }
    for (int example = 0; example < 3; ++example) {
      const QPushButton& button = window_.start_page().example(example);
      EXPECT_GE(button.height(), button.sizeHint().height());
    }
    EXPECT_LT(window_.start_page().recent().height(), 0.8 * page.height());
  }
  ASSERT_TRUE(resized(1280, 720));
  EXPECT_EQ(page.fontMetrics().height(), usual);
  EXPECT_TRUE(start.rect().contains(page.geometry()));
}

}  // namespace
}  // namespace trivium::gui
