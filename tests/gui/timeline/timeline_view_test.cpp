#include "gui/timeline/timeline_view.h"

#include <gtest/gtest.h>

#include <QCheckBox>
#include <QHelpEvent>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QToolTip>
#include <QWheelEvent>
#include <fstream>
#include <random>

#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

class TimelineViewTest : public testing::Test {
 protected:
  TimelineViewTest() {
    view.resize(1200, 500);
    view.show();
    show(make_spans({.nodes = 1, .devices_per_node = 3, .spans_per_lane = 500}));
  }

  void show(std::shared_ptr<const SpanStore> spans) {
    store = std::move(spans);
    QSignalSpy shown(&view, &TimelineView::shown);
    view.set_timelines({{"predicted", nullptr, nullptr, nullptr, store}});
    ASSERT_TRUE(shown.wait());
  }

  TimelineCanvas& canvas() { return view.canvas(); }
  QWidget* page() { return canvas().viewport(); }
  std::int64_t length() { return canvas().end_ps() - canvas().begin_ps(); }
  void type(Qt::Key key) { QTest::keyClick(&canvas(), key); }
  void drag(QPoint from, QPoint to, Qt::MouseButton button = Qt::LeftButton,
            Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::mousePress(page(), button, modifiers, from);
    QTest::mouseMove(page(), (from + to) / 2);
    QMouseEvent move(QEvent::MouseMove, QPointF(to), page()->mapToGlobal(QPointF(to)), Qt::NoButton, button, modifiers);
    QApplication::sendEvent(page(), &move);
    QTest::mouseRelease(page(), button, modifiers, to);
  }
  void turn(QPoint at, int notches, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWheelEvent event(QPointF(at), page()->mapToGlobal(QPointF(at)), {}, {0, 120 * notches}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(page(), &event);
  }
  int top_of(std::size_t row) {
    const PlacedRow& placed = canvas().layout_of_rows().rows()[row];
    return canvas().time_area().top() + placed.y - canvas().verticalScrollBar()->value();
  }
  /// The middle of a row in the viewport.
  int y_of(std::size_t row) {
    const PlacedRow& placed = canvas().layout_of_rows().rows()[row];
    return canvas().time_area().top() + placed.y + placed.height / 2 - canvas().verticalScrollBar()->value();
  }

  std::shared_ptr<const SpanStore> store;
  TimelineView view;
};

TEST_F(TimelineViewTest, ShowsEverythingAtFirst) {
  EXPECT_LE(canvas().begin_ps(), store->begin());
  EXPECT_GE(canvas().end_ps(), store->end());
  EXPECT_FALSE(view.is_busy());
}

TEST_F(TimelineViewTest, ZoomsAndPansByKeys) {
  const std::int64_t all = length();
  type(Qt::Key_W);
  type(Qt::Key_Plus);
  EXPECT_LT(length(), all);
  const std::int64_t zoomed = length(), begin = canvas().begin_ps();
  type(Qt::Key_D);
  EXPECT_GT(canvas().begin_ps(), begin);
  EXPECT_EQ(length(), zoomed);
  type(Qt::Key_A);
  EXPECT_NEAR(static_cast<double>(canvas().begin_ps()), static_cast<double>(begin), 2);
  type(Qt::Key_S);
  EXPECT_GT(length(), zoomed);
  type(Qt::Key_F);
  EXPECT_GE(length(), store->end() - store->begin());
}

TEST_F(TimelineViewTest, NeverLeavesTheTimelineOrTheRangeOfZooms) {
  for (int i = 0; i < 200; ++i) type(Qt::Key_W);
  EXPECT_EQ(length(), TimelineCanvas::kShortestView);
  for (int i = 0; i < 200; ++i) type(Qt::Key_D);
  for (int i = 0; i < 200; ++i) type(Qt::Key_S);
  for (int i = 0; i < 50; ++i) type(Qt::Key_A);
  EXPECT_LE(canvas().begin_ps(), store->begin());
  EXPECT_GE(canvas().end_ps(), store->end());
  EXPECT_LE(static_cast<double>(length()), 1.1 * static_cast<double>(store->end()));
}

TEST_F(TimelineViewTest, ZoomsAtThePointerByWheel) {
  const QPoint at(700, 100);
  canvas().zoom(4, 700);
  const TimeScale before{canvas().begin_ps(), canvas().end_ps(), canvas().time_area().width()};
  turn(at, 3, Qt::ControlModifier);
  const TimeScale after{canvas().begin_ps(), canvas().end_ps(), canvas().time_area().width()};
  EXPECT_LT(after.end_ps - after.begin_ps, before.end_ps - before.begin_ps);
  const double x = at.x() - canvas().time_area().left();
  EXPECT_NEAR(static_cast<double>(after.time_at(x)), static_cast<double>(before.time_at(x)), before.column_ps());
  const std::int64_t begin = canvas().begin_ps();
  turn(at, -1, Qt::ShiftModifier);
  EXPECT_GT(canvas().begin_ps(), begin);
}

TEST_F(TimelineViewTest, ScrollsRowsByWheel) {
  view.resize(900, 180);
  QTest::qWait(1);
  ASSERT_GT(canvas().verticalScrollBar()->maximum(), 0);
  turn({500, 80}, -1);
  EXPECT_GT(canvas().verticalScrollBar()->value(), 0);
}

TEST_F(TimelineViewTest, DraggingSelectsARangeWhoseBreakdownIsShown) {
  drag({400, y_of(3)}, {600, y_of(6)});
  ASSERT_TRUE(canvas().range().has_value());
  EXPECT_FALSE(canvas().range()->row.has_value());
  EXPECT_NEAR(canvas().x_of(canvas().range()->begin_ps), 400, 1);
  EXPECT_NEAR(canvas().x_of(canvas().range()->end_ps), 600, 1);
  const QTreeWidget& table = view.panel().table();
  ASSERT_GE(table.topLevelItemCount(), 2);
  double percent = 0;
  for (int i = 0; i < table.topLevelItem(0)->childCount(); ++i) {
    percent += table.topLevelItem(0)->child(i)->text(2).remove(" %").toDouble();
  }
  EXPECT_NEAR(percent, 100, 0.3);  // rounded to tenths
  type(Qt::Key_F);
  EXPECT_NEAR(static_cast<double>(length()),
              1.04 * static_cast<double>(canvas().range()->end_ps - canvas().range()->begin_ps), 4);
  type(Qt::Key_Escape);
  EXPECT_FALSE(canvas().range().has_value());
}

TEST_F(TimelineViewTest, DraggingWithinARowSelectsThatRowAlone) {
  drag({400, y_of(3)}, {600, y_of(3)});
  ASSERT_TRUE(canvas().range() && canvas().range()->row);
  EXPECT_EQ(canvas().range()->row->row, 3);
}

TEST_F(TimelineViewTest, DraggingWithShiftOrTheMiddleButtonPans) {
  canvas().zoom(8, 600);
  for (const bool middle : {true, false}) {
    const std::int64_t begin = canvas().begin_ps(), seen = length();
    drag({700, 100}, {600, 100}, middle ? Qt::MiddleButton : Qt::LeftButton,
         middle ? Qt::NoModifier : Qt::ShiftModifier);
    EXPECT_NEAR(static_cast<double>(canvas().begin_ps() - begin),
                100.0 * static_cast<double>(seen) / canvas().time_area().width(), 2);
    EXPECT_FALSE(canvas().range().has_value());
  }
}

TEST_F(TimelineViewTest, AClickSelectsTheSpanAndArrowsStepOn) {
  const std::uint32_t span = store->tracks()[0].first + 100;
  canvas().show_time(store->start_of(span) - 5000, store->end_of(span) + 5000);
  const int x = (canvas().x_of(store->start_of(span)) + canvas().x_of(store->end_of(span))) / 2;
  QTest::mouseClick(page(), Qt::LeftButton, {}, {x, y_of(3)});
  ASSERT_TRUE(canvas().selected());
  EXPECT_EQ(canvas().selected()->span, span);
  type(Qt::Key_Right);
  EXPECT_EQ(canvas().selected()->span, span + 1);
  type(Qt::Key_Left);
  type(Qt::Key_Down);
  EXPECT_EQ(store->track_of(canvas().selected()->span), 1U);
  QTest::mouseDClick(page(), Qt::LeftButton, {}, {x, y_of(3)});
}

TEST_F(TimelineViewTest, FoldsByAClickOnARowsName) {
  const std::size_t rows = canvas().layout_of_rows().rows().size();
  QTest::mouseClick(page(), Qt::LeftButton, {}, {60, y_of(2)});
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), rows - 2);
  QTest::mouseClick(page(), Qt::LeftButton, {}, {60, y_of(2)});
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), rows);
}

TEST_F(TimelineViewTest, SearchCountsMatchesAndWalksThroughThem) {
  QTest::keyClicks(&view.search_field(), "forward mb3");
  QTest::keyClick(&view.search_field(), Qt::Key_Return);
  EXPECT_GT(view.matches(), 10U);
  EXPECT_EQ(view.search_result().text(), QString("1 of %1").arg(view.matches()));
  ASSERT_TRUE(canvas().selected());
  const std::int64_t first = store->start_of(canvas().selected()->span);
  EXPECT_EQ(store->name_of(canvas().selected()->span).substr(0, 11), "forward mb3");
  QTest::keyClick(&view.search_field(), Qt::Key_Return);
  EXPECT_GE(store->start_of(canvas().selected()->span), first);
  view.search_field().setText("no such thing");
  EXPECT_TRUE(QTest::qWaitFor([&] { return view.search_result().text() == "nothing found"; }));
  QTest::keyClick(&view.search_field(), Qt::Key_Return);  // goes nowhere
}

TEST_F(TimelineViewTest, SlashGoesToTheSearchFieldAndCanBeTypedThere) {
  view.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&view));
  canvas().setFocus();
  type(Qt::Key_Slash);
  EXPECT_TRUE(view.search_field().hasFocus());
  QTest::keyClicks(&view.search_field(), "a/b");
  EXPECT_EQ(view.search_field().text(), "a/b");
  QTest::keyClick(&view.search_field(), Qt::Key_Escape);
  EXPECT_EQ(view.search_field().text(), "");
  EXPECT_TRUE(canvas().hasFocus());
}

TEST_F(TimelineViewTest, FoundSpansOpenWhatHidesThem) {
  canvas().layout_of_rows().set_all_folded(RowKind::kNode, true);
  canvas().rows_changed();
  canvas().select(SpanId{0, 10}, true);
  EXPECT_FALSE(canvas().layout_of_rows().is_folded({0, 1}));
}

TEST_F(TimelineViewTest, TooltipsTellSpansAndWhatPixelsAreMadeOf) {
  show(make_spans({.nodes = 1, .devices_per_node = 1, .spans_per_lane = 20'000}));
  const QString many = canvas().describe({600, y_of(3)});
  EXPECT_TRUE(many.contains("a pixel")) << many.toStdString();
  EXPECT_TRUE(many.contains("idle")) << many.toStdString();
  const std::uint32_t span = store->tracks()[0].first + 7;
  canvas().show_time(store->start_of(span), store->end_of(span));
  const QString one = canvas().describe({canvas().time_area().center().x(), y_of(3)});
  EXPECT_TRUE(one.startsWith(QString::fromStdString(store->name_of(span)))) << one.toStdString();
  QHelpEvent help(QEvent::ToolTip, {600, y_of(3)}, page()->mapToGlobal(QPoint(600, y_of(3))));
  QApplication::sendEvent(page(), &help);
  EXPECT_EQ(QToolTip::text(), canvas().describe({600, y_of(3)}));
  EXPECT_EQ(canvas().describe({600, 5}), "");
}

TEST_F(TimelineViewTest, IdleTimeShowsHoweverLittleItIs) {
  // Every column idles for a hundredth: the topmost pixel is not as full as one that never idles.
  std::vector<Given> spans;
  for (std::int64_t i = 0; i < 100'000; ++i) spans.push_back({i * 100, i * 100 + 99});
  show(given_spans({spans, {{0, 10'000'000}}}));
  canvas().select(std::nullopt, false);
  canvas().show_time(0, 10'000'000);
  const QImage image = page()->grab().toImage();
  const int x = canvas().time_area().center().x();
  const QRgb idles = image.pixel(x, top_of(2)), full = image.pixel(x, top_of(4));
  EXPECT_NE(idles, full);
  EXPECT_NE(image.pixel(x, top_of(1)), image.pixel(x, top_of(3)));  // folded rows too, at their top
}

TEST_F(TimelineViewTest, SaysWhenTransfersAreTooManyForArrows) {
  StoreBuilder builder;
  const auto a = builder.add_row(kNoRow, RowKind::kLane, "a", 0), b = builder.add_row(kNoRow, RowKind::kLane, "b", 1);
  for (int i = 0; i < 2000; ++i) {
    NewSpan span;
    span.row = a;
    span.start_ps = i * 10'000;
    span.end_ps = span.start_ps + 5'000;
    const auto from = builder.add(span);
    span.row = b;
    builder.add_flow(from, builder.add(span), true);
  }
  show(builder.build());
  const auto says_so = [&] {
    const auto boxes = view.findChildren<QCheckBox*>();
    return std::any_of(boxes.begin(), boxes.end(),
                       [](const QCheckBox* box) { return box->text() == "Transfers (zoom in)"; });
  };
  EXPECT_TRUE(QTest::qWaitFor(says_so, 10'000));
  canvas().show_time(0, 200'000);
  EXPECT_TRUE(QTest::qWaitFor([&] { return !says_so(); }, 10'000));
}

TEST_F(TimelineViewTest, PaintsInTheColoursOfTheDarkPalette) {
  QPalette dark;
  dark.setColor(QPalette::Base, QColor(25, 25, 25));
  dark.setColor(QPalette::Text, QColor(230, 230, 230));
  canvas().setPalette(dark);
  const QImage image = page()->grab().toImage();
  EXPECT_LT(qGray(image.pixel(2, image.height() - 2)), 60);
}

// Another plan's timeline comes: a range of one row is kept where that row is still there, and only there.
TEST_F(TimelineViewTest, ARangeOfARowGoesWithItsRow) {
  constexpr std::size_t kOfThirdDevice = 6;
  canvas().zoom(4, 600);  // a view of everything begins anew
  drag({400, y_of(kOfThirdDevice)}, {600, y_of(kOfThirdDevice)});
  ASSERT_TRUE(canvas().range() && canvas().range()->row);
  const RowId row = *canvas().range()->row;
  show(make_spans({.nodes = 1, .devices_per_node = 3, .spans_per_lane = 500, .seed = 2}));
  ASSERT_TRUE(canvas().range() && canvas().range()->row);
  EXPECT_EQ(*canvas().range()->row, row);
  show(make_spans({.nodes = 1, .devices_per_node = 1, .spans_per_lane = 5000}));
  ASSERT_GE(static_cast<std::size_t>(row.row), store->rows().size());
  EXPECT_FALSE(canvas().range().has_value());
}

TEST_F(TimelineViewTest, SaysWhatToDoWithoutATimeline) {
  QSignalSpy shown(&view, &TimelineView::shown);
  view.set_timelines({});
  ASSERT_TRUE(shown.wait());
  EXPECT_FALSE(page()->grab().isNull());
  for (const Qt::Key key : {Qt::Key_W, Qt::Key_A, Qt::Key_F, Qt::Key_Right, Qt::Key_Escape}) type(key);
  drag({400, 100}, {600, 100});
  turn({400, 100}, 3, Qt::ControlModifier);
  EXPECT_FALSE(canvas().range().has_value());
}

TEST_F(TimelineViewTest, OpensTracesAndRefusesBrokenOnes) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "small-trace.json";
  std::ofstream(path) << R"([{"ph":"X","name":"a","pid":0,"tid":0,"ts":0,"dur":5}])";
  QSignalSpy shown(&view, &TimelineView::shown), failed(&view, &TimelineView::failed);
  view.open_trace(path);
  ASSERT_TRUE(shown.wait());
  EXPECT_EQ(canvas().timelines()[0].spans->size(), 1U);
  std::ofstream(path) << R"([{"ph":"X","name":"a")";
  view.open_trace(path);
  ASSERT_TRUE(failed.wait());
  EXPECT_TRUE(failed[0][0].toString().contains("small-trace.json"));
  EXPECT_TRUE(canvas().timelines().empty());  // nothing of what was shown stays as if it were this
  std::filesystem::remove(path);
}

TEST_F(TimelineViewTest, ClosesWhileItLaysOut) {
  for (int i = 0; i < 5; ++i) {
    TimelineView other;
    other.set_timelines({{"predicted", nullptr, nullptr, nullptr, store}});
    other.open_trace("/nowhere.json");
  }
}

TEST_F(TimelineViewTest, HasNamesForAssistiveTechnology) {
  EXPECT_FALSE(view.accessibleName().isEmpty());
  EXPECT_FALSE(canvas().accessibleName().isEmpty());
  EXPECT_FALSE(view.search_field().accessibleName().isEmpty());
}

TEST_F(TimelineViewTest, SurvivesRandomActions) {
  std::mt19937 random(2026);
  const auto at = [&] {
    return QPoint(static_cast<int>(random() % static_cast<unsigned>(page()->width() + 40)) - 20,
                  static_cast<int>(random() % static_cast<unsigned>(page()->height() + 40)) - 20);
  };
  const std::vector<Qt::Key> keys{Qt::Key_W,    Qt::Key_A,     Qt::Key_S,  Qt::Key_D,    Qt::Key_F,
                                  Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Escape};
  for (int i = 0; i < 600; ++i) {
    switch (random() % 9) {
      case 0:
      case 1:
        type(keys[random() % keys.size()]);
        break;
      case 2:
        turn(at(), static_cast<int>(random() % 9) - 4, random() % 2 == 0 ? Qt::ControlModifier : Qt::NoModifier);
        break;
      case 3:
        drag(at(), at(), random() % 2 == 0 ? Qt::LeftButton : Qt::MiddleButton);
        break;
      case 4:
        QTest::mouseClick(page(), Qt::LeftButton, {}, at());
        break;
      case 5:
        QTest::mouseDClick(page(), Qt::LeftButton, {}, at());
        break;
      case 6:
        canvas().describe(at());
        break;
      case 7:
        view.search_field().setText(random() % 2 == 0 ? "mb3" : "");
        QTest::keyClick(&view.search_field(), Qt::Key_Return);
        break;
      default:
        if (random() % 8 == 0) {
          show(make_spans({.devices_per_node = 1 + static_cast<int>(random() % 4),
                           .spans_per_lane = static_cast<int>(random() % 300),
                           .seed = static_cast<unsigned>(i)}));
        }
        view.resize(500 + static_cast<int>(random() % 900), 150 + static_cast<int>(random() % 500));
    }
    if (i % 4 == 0) page()->grab();
    ASSERT_LT(canvas().begin_ps(), canvas().end_ps());
  }
}

TEST_F(TimelineViewTest, BackspaceLeadsBackToWhatWasSeen) {
  const std::int64_t all = length();
  EXPECT_FALSE(canvas().can_go_back());
  drag({400, y_of(3)}, {500, y_of(3)});
  type(Qt::Key_F);
  const std::int64_t zoomed = length();
  EXPECT_LT(zoomed, all);
  EXPECT_TRUE(canvas().can_go_back());
  type(Qt::Key_Backspace);
  EXPECT_EQ(length(), all);
  EXPECT_FALSE(canvas().can_go_back());
  QTest::keyClick(&canvas(), Qt::Key_Backspace, Qt::ShiftModifier);
  EXPECT_EQ(length(), zoomed);
  EXPECT_FALSE(canvas().can_go_forward());
}

TEST_F(TimelineViewTest, MarksComeAndGoAndLeadFromOneToTheNext) {
  drag({400, y_of(3)}, {500, y_of(3)});
  ASSERT_TRUE(canvas().range());
  const std::int64_t begin = canvas().range()->begin_ps, end = canvas().range()->end_ps;
  type(Qt::Key_M);
  EXPECT_EQ(canvas().marks(), (std::vector<std::int64_t>{begin, end}));
  type(Qt::Key_M);
  EXPECT_TRUE(canvas().marks().empty());
  type(Qt::Key_M);
  type(Qt::Key_Escape);
  canvas().mark(begin - 1'000'000'000'000'000);  // before everything: where it begins
  ASSERT_EQ(canvas().marks().size(), 3U);
  canvas().zoom(20, 700);
  const auto middle = [&] { return canvas().begin_ps() + (canvas().end_ps() - canvas().begin_ps()) / 2; };
  const auto pixel = (canvas().end_ps() - canvas().begin_ps()) / canvas().time_area().width() + 1;
  while (middle() > begin + pixel) type(Qt::Key_Comma);
  EXPECT_NEAR(static_cast<double>(middle()), static_cast<double>(begin), static_cast<double>(pixel));
  type(Qt::Key_Period);
  EXPECT_NEAR(static_cast<double>(middle()), static_cast<double>(end), static_cast<double>(pixel));
  EXPECT_TRUE(canvas().can_go_back());
  QTest::keyClick(&canvas(), Qt::Key_M, Qt::ShiftModifier);
  EXPECT_TRUE(canvas().marks().empty());
}

TEST_F(TimelineViewTest, ShowsOneRankAloneAndAllAgain) {
  const std::size_t rows = canvas().layout_of_rows().rows().size();
  const RowId rank = canvas().layout_of_rows().rows()[5].id;
  canvas().show_only(rank);
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), 3U);
  EXPECT_EQ(canvas().layout_of_rows().rows()[0].id, rank);
  canvas().select(SpanId{0, 0}, true);  // of another rank: brought into view all the same
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), rows);
  canvas().back();
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), 3U);
  canvas().show_only(std::nullopt);
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), rows);
}

}  // namespace
}  // namespace trivium::gui
