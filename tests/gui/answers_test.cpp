// Answers of the window to "what now?": what would fit, how sure, what differs.
#include <QFile>
#include <QLineF>
#include <QScrollArea>
#include <QScrollBar>
#include <cmath>

#include "base/files.h"
#include "gui/look/theme.h"
#include "gui/model/cluster_totals.h"
#include "gui/model/sample_text.h"
#include "gui/model/space_words.h"
#include "gui/model/ways_to_fit.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using Answers = Window;

// Of GPT-2 124M on devices of 4 GiB, 4.9 needed: what is offered fits, and one press makes it the plan.
TEST_F(Answers, APlanThatDoesNotFitSaysWhatWouldMakeItFit) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kMemory);
  FitAdvice& advice = window_.memory().advice();
  EXPECT_FALSE(advice.isVisible());
  Scenario small = set_constant(window_.document().scenario(), 0, NodeConstant::kDeviceMemory, "4 GiB");
  small.file.job.plan.micro_batch = 16;
  window_.document().edit(small, "less memory");
  ASSERT_TRUE(settles());
  ASSERT_TRUE(window_.document().evaluation()->runs()) << window_.document().evaluation()->refusal;
  ASSERT_FALSE(window_.document().evaluation()->fits());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !advice.is_busy(); }, kPatienceMs));
  ASSERT_FALSE(advice.ways().empty());
  ASSERT_EQ(advice.buttons().size(), advice.ways().size());
  EXPECT_TRUE(advice.isVisible());
  for (const WayToFit& way : advice.ways()) {
    const Evaluation proved = evaluate(way.scenario, Depth::kFull);
    EXPECT_TRUE(proved.fits()) << way.words << ": " << proved.refusal << proved.overflow;
    EXPECT_NEAR(proved.figures.iteration_s / way.iteration_s, 1, 1e-6) << way.words;
  }
  advice.buttons().front()->click();
  ASSERT_TRUE(settles());
  EXPECT_TRUE(window_.document().evaluation()->fits());
  EXPECT_FALSE(advice.isVisible());
  window_.document().history().undo();
  ASSERT_TRUE(settles());
  EXPECT_FALSE(window_.document().evaluation()->fits());
}

TEST_F(Answers, MemoryOverTimeIsShownByItsParts) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kMemory);
  const std::vector<Line>& lines = window_.memory().curve().lines();
  ASSERT_GE(lines.size(), 5U);
  const simulator::StageMemory& stage = window_.document().evaluation()->memory.at(0);
  const auto upper_end = [&](std::string_view name) {
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return plain(l.name) == name; });
    return line == lines.end() ? 0 : line->points.front().y();
  };
  EXPECT_DOUBLE_EQ(upper_end("parameters"), static_cast<double>(stage.reserved + stage.parameters));
  EXPECT_DOUBLE_EQ(upper_end("gradients") - upper_end("parameters"), static_cast<double>(stage.gradients));
  double most = 0;
  for (const QPointF& point : lines.back().points) most = std::max(most, point.y());
  EXPECT_GT(most, lines.back().points.front().y());                                   // activations come
  EXPECT_DOUBLE_EQ(lines.back().points.back().y(), lines.back().points.front().y());  // and go
  EXPECT_LE(most, static_cast<double>(stage.total()));
  for (const Line& line : lines) EXPECT_TRUE(line.filled);
  // Each part has its colour in the picture.
  const QImage picture = window_.memory().curve().grab().toImage();
  std::set<QRgb> seen;
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) seen.insert(picture.pixel(x, y) | 0xff000000U);
  }
  EXPECT_TRUE(seen.contains(kind_colour(report::kMemoryKinds[0]).rgb()));
  EXPECT_TRUE(seen.contains(kind_colour(report::kMemoryKinds[2]).rgb()));
}

TEST_F(Answers, HowSureShowsWhereMeasurementsAreExpected) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kExplain);
  ExplainView& explain = window_.explain();
  const simulator::Certainty& sure = window_.document().evaluation()->figures.certainty;
  ASSERT_TRUE(explain.measured().band());
  EXPECT_DOUBLE_EQ(explain.measured().band()->low, sure.iteration_s.low);
  EXPECT_DOUBLE_EQ(explain.measured().band()->high, sure.iteration_s.high);
  EXPECT_DOUBLE_EQ(explain.measured().band()->marked, window_.document().evaluation()->figures.iteration_s);
  EXPECT_NE(explain.measured().colour(), explain.band().colour());  // not to be taken for random variation
  EXPECT_THAT(plain(explain.measured_words().text()), HasSubstr(sure.words.substr(1)));
  ASSERT_TRUE(QTest::qWaitFor([&] { return explain.is_current(); }, kPatienceMs));
  ASSERT_TRUE(explain.band().band());
  const double jitter = explain.band().band()->high - explain.band().band()->low;
  EXPECT_GT(sure.iteration_s.high - sure.iteration_s.low, jitter);
}

// Bands and the words above them have the height that they need, and what has no room is scrolled to.
TEST_F(Answers, ExplainCutsNothingOnASmallScreen) {
  begin(staged_scenario());
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kExplain);
  ExplainView& explain = window_.explain();
  ASSERT_TRUE(QTest::qWaitFor([&] { return explain.is_current(); }, kPatienceMs));
  // Until the layout has followed what was said.
  for (const BandChart* band : {&explain.band(), &explain.measured()}) {
    const auto is_whole = [&] { return band->height() >= band->sizeHint().height(); };
    EXPECT_TRUE(QTest::qWaitFor(is_whole)) << plain(band->accessibleName()) << ": " << band->height();
  }
  for (const QLabel* words : {&explain.measured_words(), &explain.sure()}) {
    const auto is_whole = [&] { return words->height() >= words->heightForWidth(words->width()); };
    EXPECT_TRUE(QTest::qWaitFor(is_whole)) << plain(words->text()) << ": " << words->height();
  }
  // The chart below gives way to the words: it is higher than it has to be only where all of them are seen.
  QTextBrowser& said = explain.words();
  for (int line = 0; line < 6; ++line) {  // as much as of large plans
    said.append(said.toPlainText().section('\n', 0, 0));
  }
  const auto* scroll = qobject_cast<QScrollArea*>(said.parentWidget()->parentWidget()->parentWidget());
  ASSERT_NE(scroll, nullptr);
  const BarChart* chart = nullptr;
  for (const QWidget* one : explain.findChildren<QWidget*>()) {
    if (chart == nullptr) chart = dynamic_cast<const BarChart*>(one);
  }
  ASSERT_NE(chart, nullptr);
  const auto gives_way = [&] {
    return scroll->verticalScrollBar()->maximum() == 0 || chart->height() <= chart->minimumHeight();
  };
  QTest::qWait(100);  // all is laid out
  EXPECT_TRUE(gives_way()) << chart->height() << " of " << chart->minimumHeight();
  EXPECT_GE(chart->height(), 140);
}

TEST(SearchWords, TellTheGapToWhatIsLeft) {
  EXPECT_EQ(progress_words({120, 4096, 0, 0, 3.2}), "120 of 4,096 plans, 3.20 s");
  EXPECT_EQ(progress_words({120, 4096, 12.5, 12, 3.2}),
            "120 of 4,096 plans, best so far 12.5 s, none can be faster than 12.0 s (4.0 % below), 3.20 s");
  EXPECT_THAT(progress_words({1, 2, 12.5, 13, 1}), testing::Not(HasSubstr("none")));  // of another space
}

TEST_F(Answers, ASearchTellsWhatNoPlanCanBeFasterThan) {
  begin(staged_scenario());
  window_.plans().search();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  ASSERT_FALSE(window_.plans().plans().empty());
  double best = window_.plans().plans().front().iteration_s;
  for (const PlanRow& row : window_.plans().plans()) best = std::min(best, row.iteration_s);
  EXPECT_GT(window_.plans().bound_s(), 0);
  EXPECT_LE(window_.plans().bound_s(), best * (1 + 1e-9));
}

TEST(ScatterLabels, StandNearTheirPointsAndOffTheFront) {
  ScatterChart chart("plans");
  chart.resize(520, 300);
  std::vector<ScatterPoint> points;
  for (int i = 0; i < 12; ++i) {
    const double x = 1 + i;
    points.push_back(
        {x, 14 - x, QString("TP8 PP%1 DP2 ZeRO-1 recompute=full").arg(i), i % 4 == 0, QString(QChar('A' + i / 4))});
  }
  const auto figure = [](double value) { return QString::number(value); };
  chart.set_points(points, {0, 1, "time", figure}, {0, 1, "memory", figure});
  chart.set_selected(6);
  const auto labels = chart.labels();
  ASSERT_EQ(labels.size(), 4U);
  const QPolygonF front = chart.front_line();
  ASSERT_GT(front.size(), 10);
  for (const ScatterChart::Label& label : labels) {
    const QPointF at = chart.place_of(label.point);
    const QPointF nearest(std::clamp(at.x(), label.box.left(), label.box.right()),
                          std::clamp(at.y(), label.box.top(), label.box.bottom()));
    EXPECT_LT(QLineF(at, nearest).length(), 60) << plain(label.text);
    for (qsizetype i = 1; i < front.size(); ++i) {
      const QRectF piece = QRectF(front[i - 1], front[i]).normalized().adjusted(-0.5, -0.5, 0.5, 0.5);
      EXPECT_FALSE(piece.intersects(label.box)) << plain(label.text) << " lies on the front";
    }
  }
}

TEST(ClusterTotals, AddUpWhatNodesHave) {
  const auto totals = cluster_totals(with_cluster(small_scenario(), "dgx-a100-80gb:16").cluster);
  const auto value = [&](const std::string& name) {
    const auto row = std::find_if(totals.begin(), totals.end(), [&](const auto& one) { return one.first == name; });
    return row == totals.end() ? std::string("none") : row->second;
  };
  EXPECT_EQ(value("nodes"), "16");
  EXPECT_EQ(value("devices"), "128");
  EXPECT_EQ(value("peak, 16 bits"), "39.94 PFLOP/s");  // 128 x 312 TFLOP/s
  EXPECT_EQ(value("memory of devices"), "10.0 TiB");
}

TEST_F(Answers, TheClustersColumnSaysWhatAllNodesHave) {
  begin(staged_scenario());
  EXPECT_THAT(plain(window_.cluster().totals().text()), HasSubstr("2.496 PFLOP/s"));
}

class TwoPlans : public Window {
 protected:
  TwoPlansView& view() { return window_.two_plans(); }
  void compare_two(QSize size = {1400, 900}) {
    begin(staged_scenario());
    window_.resize(size);
    window_.plans().pin_current();
    Scenario other = window_.document().scenario();
    other.file.job.plan.pipeline = 2;
    other.file.job.plan.data = 2;
    window_.document().edit(other, "two stages");
    ASSERT_TRUE(settles());
    window_.show_two_plans();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !view().is_busy() && !view().difference().parts.empty(); }, kPatienceMs));
  }
};

TEST_F(TwoPlans, StandOnOneAxisWithWhatMakesTheDifference) {
  compare_two();
  const double from = window_.document().evaluation()->figures.iteration_s;
  const double to = window_.plans().pinned_rows().at(0).iteration_s;
  ASSERT_EQ(view().canvas().timelines().size(), 2U);
  for (const std::size_t w : {0, 1}) {
    const SpanStore& store = *view().canvas().timelines()[w].spans;
    EXPECT_NEAR(static_cast<double>(store.end()) * 1e-12 / (w == 0 ? from : to), 1, 1e-6);
  }
  EXPECT_GE(view().canvas().end_ps(), std::llround(1e12 * std::max(from, to)));
  double change = 0;
  for (const PartDifference& part : view().difference().parts) change += part.change();
  EXPECT_NEAR(change, to - from, 1e-6 * from);
  EXPECT_NEAR(view().waterfall().last(), to, 1e-6 * to);
  ASSERT_FALSE(view().waterfall().steps().empty());
  // Every step begins where the one before ended.
  const auto& steps = view().waterfall().steps();
  for (std::size_t s = 1; s < steps.size(); ++s) {
    const QRectF before = view().waterfall().box_of(s - 1), box = view().waterfall().box_of(s);
    const double joint = steps[s - 1].change < 0 ? before.left() : before.right();
    EXPECT_NEAR(joint, steps[s].change < 0 ? box.right() : box.left(), 1.5);
  }
  EXPECT_GT(view().table().topLevelItemCount(), 5);
  ASSERT_TRUE(window_.export_table(file("difference.csv")));
  std::ifstream csv(file("difference.csv").toStdString());
  std::string header;
  std::getline(csv, header);
  EXPECT_EQ(header, "what,name,first_s,second_s,difference_s");
}

// The second one began below the edge of the first view of them.
TEST_F(TwoPlans, AreBothSeenOnASmallScreen) {
  compare_two({1280, 720});
  TimelineCanvas& canvas = view().canvas();
  const auto nothing_is_scrolled_away = [&] {
    return window_.size() == QSize(1280, 720) && canvas.verticalScrollBar()->maximum() == 0;
  };
  ASSERT_TRUE(QTest::qWaitFor(nothing_is_scrolled_away)) << window_.height();
  for (const int plan : {0, 1}) {
    const PlacedRow* whole = canvas.layout_of_rows().visible_row_of({plan, 0});
    ASSERT_NE(whole, nullptr);
    EXPECT_LE(canvas.time_area().top() + whole->y + whole->height, canvas.viewport()->height()) << plan;
  }
  const WaterfallChart& waterfall = view().waterfall();
  EXPECT_GE(waterfall.box_of(0).height() + 4, QFontMetricsF(waterfall.font()).height());
}

TEST_F(TwoPlans, GoWithAnEditAndSayWhatToDoWithoutASecond) {
  compare_two();
  window_.plans().unpin_all();
  EXPECT_TRUE(view().difference().parts.empty());
  EXPECT_THAT(plain(view().canvas().hint()), HasSubstr("Pin a plan"));
  window_.plans().pin_current();
  window_.document().history().undo();
  EXPECT_TRUE(view().canvas().timelines().empty());  // nothing of the plan before
  ASSERT_TRUE(settles());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view().is_busy() && !view().difference().parts.empty(); }, kPatienceMs));
}

}  // namespace
}  // namespace trivium::gui
