// What pictures of every view showed to be wrong: cut words, two units, two meanings, too little contrast.
#include <QCheckBox>
#include <QHeaderView>
#include <QScrollBar>
#include <QStandardItemModel>
#include <QStyleOptionButton>

#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/plot/band_chart.h"
#include "gui/views/gain_chart.h"
#include "program/plan/fields.h"
#include "tests/gui/colour_vision.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kReadable = 3;  // WCAG 2.2, 1.4.11: of what is not text, and of large text

TEST(Seconds, HaveTheSignOfMicroThatAxesHave) {
  EXPECT_EQ(seconds_words(12.3e-6), "12.3 µs");
  EXPECT_EQ(seconds_words(36), "36.0 s");
  EXPECT_EQ(with_micro_sign("9.1 us to 12 us"), "9.1 µs to 12 µs");
  EXPECT_EQ(with_micro_sign("tell us, 3 users"), "tell us, 3 users");
  EXPECT_EQ(as_figures("783 ms to 1836 ms"), "783 ms to 1,836 ms");
  EXPECT_EQ(as_figures("9.1 us to 12345678 us, 0.12345 s"), "9.1 µs to 12,345,678 µs, 0.12345 s");
  EXPECT_EQ(display_name("bubble costs 12 us (1.0 %)"), "bubble costs 12 µs (1.0 %)");
}

TEST(Contrast, OfFieldsThatCannotBeUsedIsReadable) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    apply_theme(theme);
    const QPalette palette = QApplication::palette();
    for (const auto role : {QPalette::Window, QPalette::Base, QPalette::Button}) {
      EXPECT_GE(contrast(palette.color(QPalette::Disabled, QPalette::Text), palette.color(role)), kReadable) << role;
    }
    EXPECT_GE(contrast(link_colour(palette), palette.color(QPalette::Window)), kReadable);  // grey lines of charts
  }
  apply_theme(Theme::kLight);
}

TEST(Contrast, OfABoxThatIsNotTickedIsReadableInTheDark) {
  apply_theme(Theme::kDark);
  QCheckBox box("a box");
  const QImage drawn = box.grab().toImage();
  QStyleOptionButton option;
  option.initFrom(&box);
  const QRect edge = box.style()->subElementRect(QStyle::SE_CheckBoxIndicator, &option, &box);
  const QColor ground = QApplication::palette().color(QPalette::Window);
  EXPECT_GE(contrast(drawn.pixelColor(edge.center().x(), edge.top()), ground), kReadable);
  apply_theme(Theme::kLight);
}

TEST(Contrast, OfThePredictionsMarkOnItsBandIsReadable) {
  apply_theme(Theme::kDark);
  const QColor yellow = kind_colour(report::Kind::kOptimizer);
  BandChart chart("made up");
  chart.set_colours(yellow, std::nullopt);
  chart.set_band(report::Band{1, 2, 3, 2}, "predicted", [](double s) { return QString::number(s); });
  chart.resize(400, 60);
  const QImage drawn = chart.grab().toImage();
  double most = 1;
  const int middle = QFontMetrics(chart.font()).height() / 2;  // of the band, from above
  for (int x = 180; x < 220; ++x) {
    for (int y = middle - 4; y < middle + 4; ++y) most = std::max(most, contrast(drawn.pixelColor(x, y), yellow));
  }
  EXPECT_GE(most, kReadable);
  apply_theme(Theme::kLight);
}

TEST(Gains, SayWhichPlanSearchesLeaveOut) {
  Sensitivity gain{"micro-batch 1 to 2", -0.1, "", true};
  EXPECT_THAT(plain(GainChart::told(gain)), HasSubstr("below 95 %: searches leave it out"));
  gain.narrow = false;
  EXPECT_EQ(plain(GainChart::told(gain)), "micro-batch 1 to 2");
}

using Pictured = Window;

TEST_F(Pictured, AMeasuredNodeShowsThreeDigitsAndKeepsAll) {
  Scenario scenario = set_constant(small_scenario(), 0, NodeConstant::kDeviceMemory, "12342046 KiB");
  begin(set_constant(std::move(scenario), 0, NodeConstant::kIntraLatency, "3.25423871641303 us"));
  Marked<QLineEdit>& memory = window_.cluster().constant(NodeConstant::kDeviceMemory);
  EXPECT_EQ(plain(memory.text()), "11.8 GiB");
  EXPECT_THAT(plain(memory.toolTip()), HasSubstr("12342046 KiB"));
  EXPECT_EQ(plain(window_.cluster().constant(NodeConstant::kIntraLatency).text()), "3.25 µs");
  Q_EMIT memory.editingFinished();  // left as it was
  EXPECT_FALSE(window_.document().history().canUndo());
  type(window_.cluster().constant(NodeConstant::kIntraLatency), "4 µs");
  const hardware::Node& node = window_.document().scenario().cluster.groups[0].node;
  EXPECT_DOUBLE_EQ(node.intra.latency.value(), 4e-6);
  EXPECT_EQ(node.device.memory.value(), 12342046 * base::kKiB);
}

TEST_F(Pictured, MemoryFarBelowItsLimitSaysWhatADeviceHas) {
  begin(small_scenario());
  window_.show_view(MainWindow::kMemory);
  EXPECT_FALSE(window_.memory().bars().limit_above());
  EXPECT_THAT(plain(window_.memory().reason().text()), HasSubstr("dashed line"));
  window_.document().edit(set_constant(window_.document().scenario(), 0, NodeConstant::kDeviceMemory, "4 TiB"), "m");
  ASSERT_TRUE(settles());
  ASSERT_TRUE(window_.memory().bars().limit_above());
  EXPECT_THAT(plain(window_.memory().reason().text()), HasSubstr("A device has 4.00 TiB, far above the bars"));
  EXPECT_THAT(plain(window_.memory().reason().text()), Not(HasSubstr("dashed line")));
}

TEST_F(Pictured, TheLegendOfManyStagesTakesAsManyLinesAsItNeeds) {
  Scenario scenario = small_scenario();
  scenario.file.job.plan.data = 1;
  scenario.file.job.plan.pipeline = 6;
  begin(scenario);
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kCluster);
  QTest::qWait(20);
  const ClusterLegend& legend = window_.cluster().legend();
  const int line = legend.sizeHint().height();
  EXPECT_EQ(legend.heightForWidth(2000), line);
  EXPECT_GT(legend.heightForWidth(200), line);
  EXPECT_GE(legend.height(), legend.heightForWidth(legend.width()));
}

TEST_F(Pictured, BestPlansOfWhatIfFitIntoASmallScreen) {
  begin(small_scenario());
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kWhatIf);
  window_.what_if().ask();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.what_if().table().rowCount() > 1; }, kPatienceMs));
  QTest::qWait(20);
  QTableWidget& table = window_.what_if().table();
  EXPECT_LE(table.horizontalHeader()->length(), table.viewport()->width());
  const QString& one = table.item(0, 0)->text();
  EXPECT_EQ(plain(one.section(' ', 1)), one.startsWith("1 ") ? "device" : "devices");
}

TEST_F(Pictured, LinksDoNotCallExposedWhatExplainCallsSo) {
  begin(staged_scenario());
  for (int c = 0; c < window_.links().table().columnCount(); ++c) {
    EXPECT_NE(plain(window_.links().table().horizontalHeaderItem(c)->text()), "Exposed");
  }
}

TEST(CommandLines, AreBrokenBetweenOptionsForAShell) {
  EXPECT_EQ(plain(in_lines("trivium simulate --model a --cluster b:2 --tensor 4", 30)),
            "trivium simulate --model a \\\n  --cluster b:2 --tensor 4");
  EXPECT_EQ(plain(in_lines("trivium simulate plan.json", 5)), "trivium simulate plan.json");
}

// Lines that have no room were cut within a letter, and their tooltip was wider than the screen.
TEST_F(Pictured, ALongCommandEndsWithAnEllipsisAndStandsInItsTooltip) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.sequence_parallel = true;
  scenario.file.job.training.total_tokens = 300'000'000'000;
  begin(scenario);
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kWhatIf);
  QTest::qWait(20);
  for (CommandField* command : {&window_.command(), &window_.what_if().command()}) {
    window_.what_if().question().setFocus();
    ASSERT_GT(command->fontMetrics().horizontalAdvance(command->text()), command->width()) << plain(command->text());
    EXPECT_THAT(plain(command->shown()), testing::EndsWith("…"));
    EXPECT_LE(command->fontMetrics().horizontalAdvance(command->shown()), command->width());
    // That is what is painted: the last letters have left the right edge, the ellipsis is there.
    const QImage drawn = command->grab().toImage();
    const QRgb ground = drawn.pixel(drawn.width() - 1, 0);
    for (int y = 0; y < drawn.height(); ++y) EXPECT_EQ(drawn.pixel(drawn.width() - 2, y), ground) << y;
    for (const QString& line : command->toolTip().split('\n')) EXPECT_LE(line.size(), 100) << plain(line);
    QString whole = command->toolTip().section('\n', 1);
    EXPECT_EQ(plain(whole.replace(" \\\n ", "")), plain(command->text()));
    command->setFocus();
    EXPECT_EQ(plain(command->shown()), plain(command->text()));  // to move along it and to select
  }
}

TEST_F(Pictured, UnlikeNodesAreAskedOnlyWhatCanBeAnswered) {
  begin(small_scenario());
  const auto& questions = *qobject_cast<QStandardItemModel*>(window_.what_if().question().model());
  EXPECT_TRUE(questions.item(static_cast<int>(Question::kDevices))->isEnabled());
  begin(with_cluster(staged_scenario(), "dgx-a100-80gb:1+dgx1-v100-32gb:1"));
  EXPECT_FALSE(questions.item(static_cast<int>(Question::kDevices))->isEnabled());
  EXPECT_TRUE(questions.item(window_.what_if().question().currentIndex())->isEnabled());
  EXPECT_EQ(plain(window_.what_if().refusal().text()).find("one kind of node"), std::string::npos);
}

TEST_F(Pictured, PlansOfEveryWayToUseUnlikeNodesStandInTheTable) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:1+dgx-h100-80gb:1");
  scenario.file.job.training.global_batch = 64;
  begin(scenario);
  window_.plans().search();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  const planner::SearchResult found = planner::search(search_request(scenario, 25), 0, {}, {});
  int listed = 0, found_ways = 0;
  for (const planner::Alternative& one : found.alternatives) {
    if (!one.best) continue;
    ++found_ways;
    const std::string summary = display_name(program::summary(one.best->plan));
    const auto& rows = window_.plans().plans();
    listed += std::any_of(rows.begin(), rows.end(), [&](const PlanRow& row) { return row.summary == summary; });
  }
  EXPECT_GE(found_ways, 2);
  EXPECT_EQ(listed, found_ways);
}

}  // namespace
}  // namespace trivium::gui
