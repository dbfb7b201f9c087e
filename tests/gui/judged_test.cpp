// What pictures of every view for five jobs, at three sizes, showed to be wrong to whoever reads them word by word.
#include <QHeaderView>

#include "gui/look/theme.h"
#include "gui/timeline/breakdown_panel.h"
#include "gui/timeline/spans/program_spans.h"
#include "gui/timeline/timeline_painter.h"
#include "gui/views/cluster_legend.h"
#include "tests/gui/colour_vision.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

using Judged = Window;

/// Rows of a strip that have ink, as runs from the first to the last: lines of text, where it holds nothing else.
std::vector<std::pair<int, int>> lines_of_text(const QImage& picture, QRect strip) {
  constexpr int kInk = 90;
  const int ground = qGray(picture.pixel(strip.topLeft()));
  std::vector<std::pair<int, int>> lines;
  for (int y = strip.top(); y <= strip.bottom(); ++y) {
    bool ink = false;
    for (int x = strip.left(); x <= strip.right(); ++x)
      ink = ink || std::abs(qGray(picture.pixel(x, y)) - ground) > kInk;
    if (!ink) continue;
    if (lines.empty() || lines.back().second < y - 1) lines.emplace_back(y, y);
    lines.back().second = y;
  }
  return lines;
}

Axis axis(const char* title, const char* unit) {
  Axis made;
  made.title = title;
  made.text = [unit](double value) { return QString("%1%2").arg(value).arg(unit); };
  return made;
}

/// The curve of a run in a panel as low as a small screen makes it.
LineChart& low_chart(MainWindow& window, bool from_zero) {
  window.show_runs();
  LineChart& chart = window.runs().loss();
  chart.setFixedSize(300, 140);
  QTest::qWait(20);
  chart.set_lines({{"loss", Qt::blue, {{0, 5.6}, {19, 4.4}}}}, axis("step", " ms"), axis("loss", ""), 0, from_zero);
  return chart;
}

TEST_F(Judged, ALowChartHasTwoValuesOnItsAxis) {
  begin(small_scenario());
  LineChart& chart = low_chart(window_, false);
  const QRectF inside = chart.area();
  const int left = static_cast<int>(QFontMetricsF(chart.font()).height() * 1.4) + 1;
  const QRect strip(left, 0, static_cast<int>(inside.left()) - 2 - left, static_cast<int>(inside.bottom()) + 1);
  EXPECT_GE(lines_of_text(chart.grab().toImage(), strip).size(), 2U);
}

TEST_F(Judged, TheLowestValuesOfBothAxesKeepApart) {
  begin(small_scenario());
  LineChart& chart = low_chart(window_, true);
  const QPoint corner = chart.area().bottomLeft().toPoint();
  const auto lines = lines_of_text(chart.grab().toImage(), QRect(corner.x() - 13, corner.y() - 10, 9, 36));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_GE(lines[1].first - lines[0].second, 4);
}

TEST_F(Judged, OnlyValuesThatAreNamedHaveALine) {
  begin(small_scenario());
  LineChart& chart = window_.what_if().chart();
  Axis doubling = axis("devices", "");
  doubling.text = [](double power) { return power == std::round(power) ? QString::number(power) : QString(); };
  chart.setFixedSize(700, 300);
  chart.set_lines({{"tokens/s", Qt::blue, {{0, 4}, {1, 5}}}}, doubling, axis("tokens/s", ""), 0, true);
  const QImage picture = chart.grab().toImage();
  const int y = static_cast<int>(chart.area().bottom()) - 5;
  const QRgb ground = picture.pixel(3, 3);
  int lines = 0;
  for (int x = static_cast<int>(chart.area().left()) + 2; x < picture.width(); ++x) {
    lines += picture.pixel(x, y) != ground && picture.pixel(x - 1, y) == ground ? 1 : 0;
  }
  EXPECT_LE(lines, 1);  // at 1; that at 0 is the edge
}

TEST_F(Judged, SentencesOfExplainStandAsOtherFigures) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:128");
  scenario.file.job.training.global_batch = 1024;
  scenario.file.job.plan.data = 128;
  begin(scenario);
  window_.show_view(MainWindow::kExplain);
  const QTextBrowser& words = window_.explain().words();
  ASSERT_TRUE(QTest::qWaitFor([&] { return words.toPlainText().contains("An iteration takes"); }, kPatienceMs));
  const QString raw = words.document()->toRawText();
  EXPECT_THAT(plain(raw), HasSubstr("1,024 devices"));
  EXPECT_THAT(plain(raw), HasSubstr("\u00A0%"));
  EXPECT_THAT(plain(raw), Not(HasSubstr(" %")));  // the line would break before it
  EXPECT_THAT(plain(raw), Not(testing::ContainsRegex("\\(-[0-9]")));
}

TEST_F(Judged, GroupsOfManyRanksAreToldWithSeparators) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:128");
  scenario.file.job.training.global_batch = 1024;
  scenario.file.job.plan.data = 128;
  scenario.file.job.plan.zero_stage = 1;  // whose norm all ranks add up
  begin(scenario);
  window_.show_view(MainWindow::kCluster);
  window_.cluster().canvas().select(0);
  QString said;
  for (const QLabel* label : window_.cluster().findChildren<QLabel*>()) said += label->text();
  EXPECT_THAT(plain(said), HasSubstr("(1,024 ranks)"));
}

// "link of 500 GB/s" was read as what the links have, which is 300.
TEST_F(Judged, TheScaleOfLinksSaysThatItIsOne) {
  EXPECT_EQ(plain(link_scale_words(2e11)), "this thick: 200 GB/s from a device");
}

TEST_F(Judged, NodesAreCalledNodesAndHaveTheNamesOfTheirKinds) {
  begin(small_scenario());
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kCluster);
  QTest::qWait(20);
  ClusterCanvas& canvas = window_.cluster().canvas();
  canvas.fit();
  ASSERT_TRUE(canvas.title_of(canvas.map().nodes[0]));
  EXPECT_EQ(plain(canvas.title_of(canvas.map().nodes[0])->words), "node 0");
  window_.document().edit(with_cluster(staged_scenario(), "dgx-a100-80gb:16+dgx-h100-80gb:16"), "unlike nodes");
  ASSERT_TRUE(settles());
  canvas.resize(620, 530);  // as in a window of 1280 x 720
  canvas.fit();
  for (const MapNode& node : canvas.map().nodes) {
    const auto title = canvas.title_of(node);
    ASSERT_TRUE(title);
    EXPECT_THAT(plain(title->words), testing::EndsWith(node.group == 0 ? "dgx-a100-80gb" : "dgx-h100-80gb"));
    EXPECT_LE(QFontMetricsF(title->font).horizontalAdvance(title->words), title->line.width() + 1);
  }
}

// The panel's palette changes after its parent's.
TEST_F(Judged, IdleTimeHasTheColourOfItsLaneInEveryTheme) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  for (const Theme theme : {Theme::kDark, Theme::kLight}) {
    apply_theme(theme);
    const auto& panel = *window_.timeline().findChild<BreakdownPanel*>();
    const auto is_lane = [&] {
      const auto found = panel.table().findItems("idle", Qt::MatchExactly | Qt::MatchRecursive);
      if (found.empty()) return false;
      const QImage swatch = found[0]->icon(0).pixmap(12, 12).toImage();
      return (swatch.pixel(6, 6) & 0xffffffU) == (TimelineColours(QApplication::palette()).lane & 0xffffffU);
    };
    EXPECT_TRUE(QTest::qWaitFor(is_lane, 2'000));
  }
}

// Those that a selection leaves out lie below a veil.
TEST_F(Judged, LabelsOfDevicesAreReadWhereOthersAreSelected) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kCluster);
  QTest::qWait(20);
  ClusterCanvas& canvas = window_.cluster().canvas();
  for (const Theme theme : {Theme::kDark, Theme::kLight}) {
    apply_theme(theme);
    canvas.set_colour(DeviceColour::kPipeline);
    canvas.select(0);
    QTest::qWait(20);
    const QImage picture = canvas.grab().toImage();
    const double ratio = picture.devicePixelRatio();
    for (const Box& place : canvas.map().nodes[0].places) {
      const QRectF box = canvas.on_screen(place);
      const QRect inside =
          QRectF(box.topLeft() * ratio, box.size() * ratio).toRect().adjusted(5, 5, -5, -5);  // no frames
      const QColor ground = picture.pixelColor(inside.topLeft());
      double most = 1;
      for (int y = inside.top(); y <= inside.bottom(); ++y) {
        for (int x = inside.left(); x <= inside.right(); ++x) {
          most = std::max(most, contrast(ground, picture.pixelColor(x, y)));
        }
      }
      EXPECT_GE(most, 4) << ground.name().toStdString();
    }
  }
  apply_theme(Theme::kLight);
}

TEST_F(Judged, RanksOfContextAreTold) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.context = 2;
  scenario.file.job.plan.attention = program::Attention::kFlash;
  begin(with_cluster(scenario, "dgx-a100-80gb:2"));
  ASSERT_TRUE(window_.document().evaluation()->runs()) << window_.document().evaluation()->refusal;
  EXPECT_THAT(rank_name(*window_.document().evaluation()->program, 0), HasSubstr(" · cp 0"));
}

// "dgx-a100-80gb: / 8, 512 samples" was read as 8,512.
TEST_F(Judged, TheCountOfNodesStaysWithTheirKind) {
  begin(with_cluster(staged_scenario(), "dgx-a100-80gb:2"));
  window_.show_view(MainWindow::kPlans);
  window_.plans().pin_current();
  const QTableWidget& pins = window_.plans().comparison();
  const auto cells = pins.findItems("dgx-a100-80gb:", Qt::MatchContains);
  ASSERT_FALSE(cells.empty());
  for (const QTableWidgetItem* cell : cells) EXPECT_TRUE(cell->text().contains(QString("80gb:") + QChar(0x2060)));
}

// 768, 1,536 and 3,072 are no powers of two.
TEST_F(Judged, WhatDoublesIsNamedAtWhatWasAsked) {
  begin(small_scenario());
  window_.show_view(MainWindow::kWhatIf);
  WhatIfView& view = window_.what_if();
  view.question().setCurrentIndex(static_cast<int>(Question::kBatch));
  view.value().setText("24:96");
  Q_EMIT view.value().textEdited("24:96");
  view.ask();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view.is_asking(); }, kPatienceMs));
  const auto& lines = view.chart().lines();
  ASSERT_GE(lines.size(), 3U);
  EXPECT_DOUBLE_EQ(lines.back().points.front().x(), 0);
  EXPECT_DOUBLE_EQ(lines.back().points.back().x(), 2);
  EXPECT_EQ(plain(view.chart().x_axis().text(1)), "48");
  const std::size_t low = lines.size() - 3;
  EXPECT_EQ(lines[low].colour, lines[low + 1].colour);  // the two ends of one interval, which have one name
  EXPECT_THAT(plain(lines[low].name), HasSubstr("lie between"));
  EXPECT_TRUE(lines[low + 1].name.isEmpty());
}

TEST_F(Judged, WhatARunNeedsIsReadOnASmallScreen) {
  begin(small_scenario());
  window_.resize(1280, 720);
  window_.show_runs();
  RunPanel& runs = window_.runs();
  ASSERT_TRUE(QTest::qWaitFor([&] { return runs.checkpoint().isVisible(); }, kPatienceMs));
  QTest::qWait(20);
  for (const QLineEdit* field : {&runs.corpus(), &runs.checkpoint()}) {
    EXPECT_LE(field->fontMetrics().horizontalAdvance(field->placeholderText()) + 8, field->width())
        << plain(field->placeholderText());
  }
}

TEST_F(Judged, AnEmptyCompareHasNoStepToChoose) {
  begin(small_scenario());
  window_.show_view(MainWindow::kCompare);
  EXPECT_FALSE(window_.compare().steps().isVisible());
}

TEST_F(Judged, ABarOfTheFlameViewHasNoEllipsisAlone) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  FlameView& flame = window_.timeline().flame();
  window_.timeline().below().setCurrentWidget(&flame);
  ASSERT_TRUE(QTest::qWaitFor([&] { return flame.flame() != nullptr && !flame.is_busy(); }, kPatienceMs));
  bool named = false;
  for (std::uint32_t node = 0; node < flame.flame()->size(); ++node) {
    for (double width = 10; width < 120; width += 3) {
      const QString name = flame.name_on(node, width);
      EXPECT_NE(plain(name), "…");
      named = named || !name.isEmpty();
    }
  }
  EXPECT_TRUE(named);
}

TEST_F(Judged, PinnedPlansAreBrokenBetweenWords) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.stage_recompute = {program::Recompute::kSelective, program::Recompute::kSelective,
                                            program::Recompute::kNone, program::Recompute::kNone};
  begin(scenario);
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kPlans);
  window_.plans().pin_current();
  window_.document().edit(staged_scenario(), "another");
  ASSERT_TRUE(settles());
  window_.plans().pin_current();
  QTest::qWait(20);
  const QTableWidget& pins = window_.plans().comparison();
  ASSERT_EQ(pins.columnCount(), 3);
  int broken = 0;
  for (int column = 1; column < 3; ++column) {
    const QString title = pins.horizontalHeaderItem(column)->text();
    const QString summary = pins.horizontalHeaderItem(column)->toolTip();
    for (const QString& line : title.split('\n')) {
      const qsizetype at = summary.indexOf(line), end = at + line.size();
      if (at < 0 || end >= summary.size()) continue;
      ++broken;
      EXPECT_TRUE(summary[end] == ' ' || QString("=:,").contains(summary[end - 1])) << plain(line);
    }
  }
  EXPECT_GT(broken, 2);
}

TEST_F(Judged, APlanToCompareEndsWithAnEllipsisWhereItHasNoRoom) {
  Scenario scenario = staged_scenario();
  scenario.file.job.plan.sequence_parallel = true;
  begin(scenario);
  window_.plans().pin_current();
  window_.document().edit(staged_scenario(), "another");
  ASSERT_TRUE(settles());
  window_.show_two_plans();
  ElidedComboBox& box = window_.two_plans().first();
  box.setFixedWidth(150);
  QTest::qWait(20);
  EXPECT_THAT(plain(box.shown()), testing::EndsWith("…"));
  EXPECT_LT(box.fontMetrics().horizontalAdvance(box.shown()), 150);
  EXPECT_EQ(plain(box.toolTip()), plain(box.currentText()));
  // As Qt paints the words with their ellipsis, and not as it paints all of them: cut within a letter.
  const auto painted = [&](const QString& words) {
    QComboBox plain_box(&window_.two_plans());
    plain_box.addItem(words);
    plain_box.setFixedSize(box.size());
    plain_box.setEnabled(box.isEnabled());
    return plain_box.grab().toImage();
  };
  EXPECT_EQ(box.grab().toImage(), painted(box.shown()));
  EXPECT_NE(box.grab().toImage(), painted(box.currentText()));
}

}  // namespace
}  // namespace trivium::gui
