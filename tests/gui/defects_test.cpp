// Defects that were seen in the window, each looked for where it was seen.
#include <QFileDialog>
#include <QHelpEvent>
#include <QScrollBar>
#include <QToolTip>
#include <cmath>
#include <regex>
#include <set>

#include "gui/look/theme.h"
#include "gui/views/gain_chart.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

class Seen : public Window {
 protected:
  void show(MainWindow::View view) {
    window_.show_view(view);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
    QTest::qWait(20);
  }
  /// What is written in the picture of the view that is seen.
  std::vector<std::string> written() {
    EXPECT_TRUE(window_.export_picture(file("seen.svg")));
    std::ifstream picture(file("seen.svg").toStdString());
    const std::string svg{std::istreambuf_iterator<char>(picture), {}};
    static const std::regex kText("<text[^>]*>([^<]*)</text>");
    std::vector<std::string> words;
    for (auto match = std::sregex_iterator(svg.begin(), svg.end(), kText); match != std::sregex_iterator(); ++match) {
      words.push_back((*match)[1].str());
    }
    return words;
  }
};

// An iteration of more than a second had 800 ms and 1.00 s on one axis.
TEST_F(Seen, TimesOnAnAxisHaveOneUnit) {
  Scenario scenario = staged_scenario();
  const double one = evaluate(scenario, Depth::kFull).figures.iteration_s;
  scenario.file.job.training.global_batch *= static_cast<std::int64_t>(std::ceil(1.2 / one));
  begin(scenario);
  ASSERT_GT(window_.document().evaluation()->figures.iteration_s, 1);
  show(MainWindow::kMemory);
  std::set<std::string> units;
  int ticks = 0;
  for (const std::string& word : written()) {
    std::smatch found;
    if (!std::regex_match(word, found, std::regex("[0-9.]+ (s|ms|µs|min)"))) continue;
    units.insert(found[1].str());
    ++ticks;
  }
  EXPECT_GE(ticks, 4);
  EXPECT_EQ(units, (std::set<std::string>{"s"}));
}

// +234.5 % made bars of a few percent invisible.
TEST_F(Seen, AGainThatIsFarLongerLeavesTheOthersVisible) {
  begin(staged_scenario());
  show(MainWindow::kExplain);
  GainChart& chart = window_.explain().plans();
  chart.set_gains({{"a", 0.024, ""}, {"b", 0.05, ""}, {"c", 2.345, ""}});
  QTest::qWait(20);
  const QImage picture = chart.grab().toImage();
  const QRgb bar = series_colour(5).rgb();
  const double row = 1.7 * QFontMetricsF(chart.font()).height();
  for (const int r : {0, 1, 2}) {
    const int y = static_cast<int>(row * (r + 0.5));
    int wide = 0;
    for (int x = 0; x < picture.width(); ++x) wide += picture.pixel(x, y) == bar ? 1 : 0;
    EXPECT_GE(wide, 4) << r;
  }
}

// "all reduce" found "forward mb3 reduce scatter, tensor parallel", whose category has an "all" within a word.
TEST_F(Seen, ASearchFindsWordsWhereTheyBegin) {
  begin(staged_scenario());
  show(MainWindow::kTimeline);
  TimelineView& view = window_.timeline();
  view.search_field().setFocus();
  QTest::keyClicks(&view.search_field(), "all reduce mb1");
  ASSERT_TRUE(QTest::qWaitFor([&] { return view.matches() > 0; }, kPatienceMs));
  view.list_button().click();
  HitModel& hits = view.hits().model();
  for (int row = 0; row < hits.rowCount(); ++row) {
    const std::string name = plain(hits.index(row, 0).data().toString());
    EXPECT_TRUE(std::regex_search(name, std::regex("\\ball"))) << name;
    EXPECT_TRUE(std::regex_search(name, std::regex("\\bmb1\\b"))) << name;
  }
  view.hits().close();
  view.search_field().clear();
  QTest::keyClicks(&view.search_field(), "ward");
  EXPECT_TRUE(QTest::qWaitFor([&] { return view.search_result().text() == "nothing found"; }, 5000))
      << plain(view.search_result().text());
}

// Forward and backward in one pixel were a teal that the legend did not have.
TEST_F(Seen, LanesHaveColoursOfTheLegendAlone) {
  Scenario scenario = staged_scenario();
  scenario.file.job.training.global_batch = 1024;  // a forward and a backward in every pixel
  begin(scenario);
  show(MainWindow::kTimeline);
  TimelineCanvas& canvas = window_.timeline().canvas();
  const SpanStore& store = *canvas.timelines().at(0).spans;
  canvas.set_path_shown(false);
  canvas.set_arrows_shown(false);
  canvas.fit();
  QTest::qWait(20);
  const TimelineColours grounds(canvas.palette());
  std::set<QRgb> legend;
  for (const CategoryInfo& category : store.categories()) {
    const Colour colour = colour_of(category.hue);
    legend.insert(qRgb(colour.red, colour.green, colour.blue));
  }
  const QImage picture = canvas.viewport()->grab().toImage();
  int of_legend = 0, of_ground = 0, strange = 0;
  for (const PlacedRow& row : canvas.layout_of_rows().rows()) {
    const int y = canvas.time_area().top() + row.y + row.height - 4;  // below the names of spans
    if (!row.lane || y >= picture.height()) continue;
    for (int x = canvas.time_area().left(); x < canvas.time_area().right(); ++x) {
      const QRgb seen = picture.pixel(x, y) | 0xff000000U;
      const bool ground = seen == (grounds.lane | 0xff000000U) || seen == (grounds.ground | 0xff000000U);
      ++(legend.contains(seen) ? of_legend : ground ? of_ground : strange);
    }
  }
  EXPECT_GT(of_legend, 1000);
  EXPECT_LT(strange, of_legend / 20) << of_legend << " of the legend, " << of_ground << " of the ground";
}

// A span of 7 ns lay "from 4.107 s to 4.107 s".
TEST_F(Seen, AShortSpanSaysWhereItBeginsAndEnds) {
  begin(staged_scenario());
  show(MainWindow::kTimeline);
  TimelineCanvas& canvas = window_.timeline().canvas();
  const SpanStore& store = *canvas.timelines().at(0).spans;
  std::uint32_t shortest = 0;
  const auto length = [&](std::uint32_t span) { return store.end_of(span) - store.start_of(span); };
  for (std::uint32_t span = 0; span < store.size(); ++span) {
    const bool late = store.start_of(span) > store.end() / 2;
    if (late && length(span) > 0 && (shortest == 0 || length(span) < length(shortest))) shortest = span;
  }
  ASSERT_LT(length(shortest), store.end() / 10'000);
  canvas.select(SpanId{0, shortest}, true);
  QTest::qWait(20);
  std::smatch found;
  const std::string words = plain(window_.timeline().panel().span_words());
  ASSERT_TRUE(std::regex_search(words, found, std::regex("from ([0-9.]+ [mnµ]*s) to ([0-9.]+ [mnµ]*s)"))) << words;
  EXPECT_NE(found[1].str(), found[2].str());
}

// 49 GiB of "workspace" were a riddle.
TEST_F(Seen, PartsOfMemorySayWhatTheyAre) {
  begin(staged_scenario());
  show(MainWindow::kMemory);
  BarChart& bars = window_.memory().bars();
  std::optional<QPoint> on_bar;
  for (int x = 0; x < bars.width() && !on_bar; x += 3) {
    if (bars.bar_at(QPointF(x, bars.height() - 40))) on_bar = QPoint(x, bars.height() - 40);
  }
  ASSERT_TRUE(on_bar);
  QHelpEvent hover(QEvent::ToolTip, *on_bar, bars.mapToGlobal(*on_bar));
  QApplication::sendEvent(&bars, &hover);
  EXPECT_THAT(plain(QToolTip::text()), testing::HasSubstr("results of ops, while they are used"));
}

// The order of the axes took most of a headline of four lines.
TEST_F(Seen, TheOrderOfAxesIsShort) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.placement = "tensor-context-pipeline-data";
  begin(scenario);
  EXPECT_THAT(plain(window_.headline().plan().text()), testing::HasSubstr("placement=TP-CP-PP-DP"));
}

// All that a large window has in addition was the canvas's, white below the rows of a small job.
TEST_F(Seen, ALargeWindowHasRoomForMoreOps) {
  begin(staged_scenario());
  window_.resize(1280, 720);
  show(MainWindow::kTimeline);
  TimelineView& view = window_.timeline();
  const int canvas = view.canvas().height(), below = view.below().height();
  EXPECT_GT(canvas, below);
  window_.resize(2560, 1440);
  QTest::qWait(20);
  EXPECT_GE(view.below().height(), below + 150);
  EXPECT_GE(view.canvas().height(), canvas + 300);
}

TEST_F(Seen, LabelsOfPlansStandNearTheirPoints) {
  begin(staged_scenario());
  window_.resize(1280, 720);
  window_.plans().search();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  show(MainWindow::kPlans);
  window_.plans().pin(0);
  window_.plans().pin(1);
  QTest::qWait(20);
  const ScatterChart& chart = window_.plans().scatter();
  ASSERT_GE(chart.labels().size(), 2U);
  for (const ScatterChart::Label& label : chart.labels()) {
    const QPointF at = chart.place_of(label.point);
    const QPointF nearest(std::clamp(at.x(), label.box.left(), label.box.right()),
                          std::clamp(at.y(), label.box.top(), label.box.bottom()));
    EXPECT_LT(QLineF(at, nearest).length(), 60) << plain(label.text);
    EXPECT_TRUE(QRectF(chart.rect()).contains(label.box)) << plain(label.text);
  }
}

// Ctrl+Z after Enter took back what was typed, which nobody saw, before it took back the edit.
TEST_F(Seen, UndoAfterEnterTakesTheEditBack) {
  begin(staged_scenario());
  show(MainWindow::kCluster);
  window_.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
  QLineEdit& memory = window_.cluster().constant(NodeConstant::kDeviceMemory);
  const std::string before = plain(memory.text());
  type(memory, "40 GiB");
  ASSERT_TRUE(settles());
  ASSERT_EQ(window_.document().scenario().cluster.groups[0].node.device.memory.value(), 40 * base::kGiB);
  QTest::keyClicks(&memory, "7");
  QTest::keyClick(&memory, Qt::Key_Z, Qt::ControlModifier);  // what is typed first
  EXPECT_EQ(window_.document().scenario().cluster.groups[0].node.device.memory.value(), 40 * base::kGiB);
  QTest::keyClick(&memory, Qt::Key_Z, Qt::ControlModifier);
  ASSERT_TRUE(settles());
  EXPECT_EQ(window_.document().scenario().cluster.groups[0].node.device.memory.value(), 80 * base::kGiB);
  EXPECT_EQ(plain(memory.text()), before);
}

TEST_F(Seen, AnEmptyValidationOffersToLoadARun) {
  begin(staged_scenario());
  window_.validate();
  QTest::qWait(20);
  QPushButton* load = nullptr;
  for (QPushButton* button : window_.validation().findChildren<QPushButton*>()) {
    if (button->text().startsWith("Load a run record")) load = button;
  }
  ASSERT_NE(load, nullptr);
  ASSERT_TRUE(load->isVisible());
  bool asked = false;
  QTimer look;
  QObject::connect(&look, &QTimer::timeout, [&] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (dialog == nullptr) return;
    asked = true;
    dialog->reject();
  });
  look.start(5);
  load->click();
  EXPECT_TRUE(QTest::qWaitFor([&] { return asked; }, 2000));
}

}  // namespace
}  // namespace trivium::gui
