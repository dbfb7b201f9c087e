// What is drawn and said: axes, pictures, searches that go on, fields that cannot be.
#include <QClipboard>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QScrollBar>
#include <QSignalSpy>
#include <limits>

#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/plot/bar_chart.h"
#include "gui/plot/line_chart.h"
#include "gui/views/gain_chart.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

/// How long a chart of so many points takes to paint, at best, where the line has this name.
qint64 nanoseconds_to_paint(const QString& name, int points) {
  LineChart chart("made up");
  chart.resize(900, 400);
  Line line{name, Qt::blue, {}, true};
  for (int i = 0; i < points; ++i) line.points.emplace_back(i, i % 3);
  chart.set_lines({line}, {0, 1, "x", [](double x) { return QString::number(x); }},
                  {0, 1, "y", [](double y) { return QString::number(y); }}, 0, true);
  QImage picture(chart.size(), QImage::Format_RGB32);
  qint64 best = std::numeric_limits<qint64>::max();
  for (int round = 0; round < 5; ++round) {
    QElapsedTimer clock;
    clock.start();
    chart.render(&picture);
    best = std::min(best, clock.nsecsElapsed());
  }
  return best;
}

// Each point once asked how wide the legend is: 9,216 passes of chunks in seven parts took 230 ms.
TEST(LineChart, APointOfALineWithALongNameIsNoDearer) {
  const QString words = QString("activations of micro-batches under way ").repeated(40);
  EXPECT_LT(nanoseconds_to_paint(words, 20'000), 4 * nanoseconds_to_paint("a", 20'000));
}

// What is drawn has as many points as there are pixels to tell them apart: all of a long run's took seconds.
TEST(LineChart, MorePointsThanPixelsCostLittle) {
  EXPECT_LT(nanoseconds_to_paint("a", 64'000), 8 * nanoseconds_to_paint("a", 4'000));
}

TEST(Axes, TimesHaveOneUnit) {
  EXPECT_EQ(seconds_tick(0.8, 1.2, 0.2), "0.8 s");
  EXPECT_EQ(seconds_tick(1, 1.2, 0.2), "1.0 s");
  EXPECT_EQ(seconds_tick(65, 70, 5), "65 s");  // never minutes
  EXPECT_EQ(seconds_tick(0.0125, 0.02, 0.0005), "12.5 ms");
  EXPECT_EQ(seconds_tick(3e-5, 4e-5, 1e-5), "30 µs");
}

// Of 2.4, 5 and 234.5 % the median is 5: bars are drawn up to 30 %, the longest is cut.
TEST(Gains, OneThatIsFarLongerLeavesTheOthersVisible) {
  const std::vector<Sensitivity> gains{{"a", 0.024, ""}, {"b", -0.05, ""}, {"c", 2.345, ""}};
  EXPECT_DOUBLE_EQ(longest_bar(gains), 0.3);
  EXPECT_DOUBLE_EQ(longest_bar({{"a", 0.024, ""}, {"b", -0.05, ""}}), 0.05);
}

TEST(Bars, AreSeenThoughTheirLimitIsFarAbove) {
  EXPECT_DOUBLE_EQ(most_shown({{"a", {1, 2}, 100}, {"b", {4, 0}, 100}}), 4);
  EXPECT_DOUBLE_EQ(most_shown({{"a", {1, 2}, 40}}), 40);
  EXPECT_EQ(label_step(4, 75), 20);  // 19 would do
  EXPECT_EQ(label_step(100, 75), 1);
}

using Shown = Window;

TEST_F(Shown, TheTableFillsWhileASearchGoesOn) {
  begin(staged_scenario());
  QSignalSpy filled(window_.plans().table().model(), &QAbstractItemModel::modelReset);
  window_.plans().search();
  EXPECT_EQ(filled.count(), 1);  // emptied
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  EXPECT_GE(filled.count(), 3);  // and filled before the answer
  for (const PlanRow& row : window_.plans().plans()) EXPECT_FALSE(row.interim);
}

TEST_F(Shown, APictureOfTheTimelineHasEveryRow) {
  begin(staged_scenario());
  window_.resize(1300, 640);
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  const int hidden = window_.timeline().canvas().verticalScrollBar()->maximum();
  ASSERT_GT(hidden, 20);
  const QSize before = window_.timeline().size();
  ASSERT_TRUE(window_.export_picture(file("whole.png")));
  EXPECT_GE(QImage(file("whole.png")).height(), before.height() + hidden);
  EXPECT_EQ(window_.timeline().size(), before);
  ASSERT_TRUE(window_.export_picture(file("whole.svg")));
}

TEST_F(Shown, AllThatASearchFindsIsListed) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  TimelineView& view = window_.timeline();
  view.search_field().setText("matmul");
  ASSERT_TRUE(QTest::qWaitFor([&] { return view.matches() > 0; }, kPatienceMs));
  ASSERT_GT(view.matches(), 40U);
  view.list_button().click();
  HitModel& hits = view.hits().model();
  ASSERT_EQ(static_cast<std::size_t>(hits.rowCount()), view.matches());
  EXPECT_THAT(plain(hits.index(0, 0).data().toString()), HasSubstr("matmul"));
  EXPECT_THAT(plain(hits.index(0, 1).data().toString()), HasSubstr("rank 0"));
  const SpanStore& store = *view.canvas().timelines().at(0).spans;
  for (int row = 1; row < hits.rowCount(); ++row) {
    ASSERT_LE(store.start_of(hits.hit(row - 1).span), store.start_of(hits.hit(row).span));
  }
  const int last = hits.rowCount() - 1;  // far beyond the first that fit on a screen
  view.hits().table().setCurrentIndex(hits.index(last, 0));
  ASSERT_TRUE(view.canvas().selected());
  EXPECT_EQ(view.canvas().selected()->span, hits.hit(last).span);
  view.hits().close();
}

TEST_F(Shown, FiguresOfAPlanThatDoesNotFitStandBack) {
  begin(staged_scenario());
  const auto colour = [&](const char* name) {
    for (QLabel* label : window_.headline().findChildren<QLabel*>()) {
      if (label->accessibleName() == name) return label->palette().color(QPalette::WindowText);
    }
    return QColor();
  };
  const QColor usual = colour("expected iteration");
  window_.document().edit(set_constant(window_.document().scenario(), 0, NodeConstant::kDeviceMemory, "1 GiB"), "m");
  ASSERT_TRUE(settles());
  ASSERT_FALSE(window_.document().evaluation()->fits());
  EXPECT_EQ(colour("peak memory"), alarm_colour());
  EXPECT_NE(colour("expected iteration"), usual);
  window_.document().history().undo();
  ASSERT_TRUE(settles());
  EXPECT_EQ(colour("expected iteration"), usual);
  EXPECT_EQ(colour("peak memory"), usual);
}

TEST_F(Shown, AFieldOfTheClusterThatCannotBeIsMarkedAtOnce) {
  begin(staged_scenario());
  Marked<QLineEdit>& field = window_.cluster().constant(NodeConstant::kDeviceMemory);
  field.selectAll();
  QTest::keyClicks(&field, "3 parsecs");
  EXPECT_TRUE(field.is_wrong());
  EXPECT_THAT(plain(window_.cluster().message().text()), HasSubstr(plain(alarm_colour().name())));
  field.selectAll();
  QTest::keyClicks(&field, "40 GiB");
  EXPECT_FALSE(field.is_wrong());
  EXPECT_EQ(plain(window_.cluster().message().text()), "");
}

TEST_F(Shown, ADraggedStageSaysWhereItWouldGo) {
  begin(with_cluster(staged_scenario(), "dgx-a100-80gb:2"));
  window_.show_view(MainWindow::kCluster);
  QTest::qWait(20);
  ClusterCanvas& canvas = window_.cluster().canvas();
  const auto middle = [&](const Box& box) {
    return canvas.to_screen(box.x + box.width / 2, box.y + box.height / 2).toPoint();
  };
  const QPoint from = middle(canvas.map().nodes[0].places[0]), to = middle(canvas.map().nodes[1].places[0]);
  QTest::mousePress(&canvas, Qt::LeftButton, {}, from);
  for (const QPoint& at : {(from + to) / 2, to}) {
    QMouseEvent move(QEvent::MouseMove, QPointF(at), canvas.mapToGlobal(QPointF(at)), Qt::NoButton, Qt::LeftButton, {});
    QApplication::sendEvent(&canvas, &move);
  }
  EXPECT_EQ(plain(canvas.drop_words()), "stage 0 to node 1: a node of the same kind");
  QTest::mouseRelease(&canvas, Qt::LeftButton, {}, to);
}

TEST_F(Shown, EnterStartsARunAndACopiedRowHasItsCells) {
  begin(local_example());
  window_.show_runs();
  QTest::keyClick(&window_.runs().corpus(), Qt::Key_Return);
  EXPECT_THAT(plain(window_.runs().state().text()), HasSubstr("Choose a text"));
  window_.runs().corpus().setText(file("text.txt"));
  EXPECT_EQ(plain(window_.runs().state().text()), "");
  window_.document().edit(staged_scenario(), "another machine");
  ASSERT_TRUE(settles());
  window_.plans().search();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  window_.show_view(MainWindow::kPlans);
  const QList<QAction*> actions = window_.plans().table().actions();
  ASSERT_EQ(actions.size(), 4);
  actions.back()->trigger();
  EXPECT_EQ(QGuiApplication::clipboard()->text().count('\t'), 6);
}

/// Counts what a widget is sent.
class EventCounter : public QObject {
 public:
  EventCounter(QWidget& widget, QEvent::Type type) : type_(type) { widget.installEventFilter(this); }
  int count = 0;

 protected:
  bool eventFilter(QObject* /*watched*/, QEvent* event) override {
    count += event->type() == type_ ? 1 : 0;
    return false;
  }

 private:
  QEvent::Type type_;
};

// Fewer words stood in the headline while a plan was simulated: twice a turn the view below got another size, and the
// cluster was laid out and drawn for it.
TEST_F(Shown, AViewKeepsItsSizeWhileAPlanIsSimulated) {
  begin(staged_scenario());
  window_.resize(1000, 900);
  QTest::qWait(50);
  const QLabel& state = window_.headline().state();
  ASSERT_GE(state.height(), 2 * state.fontMetrics().height());  // words of more than one line
  QComboBox& recompute = window_.plan_controls().plan_control("recompute");
  const auto turn_to = [&](const QString& wanted) {
    choose(recompute, wanted);
    QTest::qWait(20);  // it is drawn while it is simulated
    ASSERT_TRUE(settles());
    QTest::qWait(20);
  };
  turn_to("full");  // from now on there is a plan before
  QWidget& canvas = window_.cluster().canvas();
  const EventCounter resizes(canvas, QEvent::Resize), paints(canvas, QEvent::Paint);
  for (const QString wanted : {"none", "full", "none"}) turn_to(wanted);
  EXPECT_EQ(resizes.count, 0);
  EXPECT_LE(paints.count, 3 * 2);  // of a first look, and op by op
}

TEST_F(Shown, AnEmptyCompareOffersWhatFillsIt) {
  begin(local_example());
  window_.show_view(MainWindow::kCompare);
  EXPECT_TRUE(window_.compare().run_button().isVisible());
  EXPECT_TRUE(window_.compare().load_button().isVisible());
  window_.compare().run_button().click();
  EXPECT_TRUE(window_.runs().isVisible());
}

}  // namespace
}  // namespace trivium::gui
