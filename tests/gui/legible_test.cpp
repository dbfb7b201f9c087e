// What 390 pictures showed to be cut, drawn in colours of the other theme, or to be read as something else.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gui/look/theme.h"
#include "gui/plot/line_chart.h"
#include "gui/timeline/breakdown_panel.h"
#include "gui/timeline/timeline_painter.h"
#include "gui/views/gain_chart.h"
#include "tests/calibration/synthetic_run.h"
#include "tests/gui/colour_vision.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

class Legible : public Window {
 protected:
  void load_run() {
    const program::Job job = calibration::small_job(1, 2, 1, 2);
    write("run.json", program::to_json(calibration::synthetic_run(job, calibration::rated_node(1))).dump());
    window_.resize(1280, 720);
    window_.show();
    ASSERT_TRUE(window_.open(file("run.json")));
    ASSERT_TRUE(settles());
  }
};

Sensitivity gain(const char* change, double share) {
  Sensitivity made;
  made.change = change;
  made.gain = share;
  return made;
}

// Whichever of view and legend hears of a theme first: each follows its own palette.
TEST_F(Legible, TheLegendOfIdleTimeChangesWithItsPalette) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  BreakdownPanel& panel = *window_.timeline().findChild<BreakdownPanel*>();
  for (const auto& [ground, ink] : {std::pair(Qt::black, Qt::white), std::pair(Qt::white, Qt::black)}) {
    QPalette palette = panel.palette();
    palette.setColor(QPalette::Base, ground);
    palette.setColor(QPalette::Text, ink);
    panel.setPalette(palette);
    const auto found = panel.table().findItems("idle", Qt::MatchExactly | Qt::MatchRecursive);
    ASSERT_FALSE(found.empty());
    const QImage swatch = found[0]->icon(0).pixmap(12, 12).toImage();
    EXPECT_EQ(swatch.pixel(6, 6) & 0xffffffU, TimelineColours(palette).lane & 0xffffffU);
  }
}

TEST_F(Legible, ResultsOfAValidationAreNotCutOnASmallScreen) {
  load_run();
  window_.validate();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.validation().validation().has_value(); }, kPatienceMs));
  QLabel& words = window_.validation().summary();
  QFont wide = words.font();  // as other systems may have it
  wide.setStretch(180);
  words.setFont(wide);
  window_.load_record(file("run.json"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.validation().validation().has_value(); }, kPatienceMs));
  ASSERT_GT(words.heightForWidth(words.width()), 2 * words.fontMetrics().height());  // else this tests nothing
  EXPECT_TRUE(QTest::qWaitFor([&] { return words.height() >= words.heightForWidth(words.width()); }))
      << words.height() << " of " << words.heightForWidth(words.width());
}

TEST_F(Legible, WhatAFieldTakesFitsIntoIt) {
  begin(small_scenario());
  window_.resize(1280, 720);
  const QLineEdit& tokens = window_.start_panel().field("total_tokens");
  const int room = tokens.width() - 2 * tokens.fontMetrics().averageCharWidth();
  EXPECT_LT(tokens.fontMetrics().horizontalAdvance(tokens.placeholderText()), room);
}

TEST(LegibleLines, AreSeenOnDarkGround) {
  LineChart chart("line");
  Axis axis;
  axis.text = [](double value) { return QString::number(value); };
  chart.resize(400, 300);
  for (const Theme theme : {Theme::kDark, Theme::kLight}) {
    apply_theme(theme);
    chart.setPalette(QApplication::palette());
    chart.set_lines({{"predicted", series_colour(0), {{0, 0}, {1, 1}}}}, axis, axis, 0, true);
    const QImage picture = chart.grab().toImage();
    const QColor ground = QApplication::palette().color(QPalette::Window);
    double most = 0;  // of the line, which is the only blue
    for (int y = 0; y < picture.height(); ++y) {
      for (int x = 0; x < picture.width(); ++x) {
        const QColor at = picture.pixelColor(x, y);
        if (at.saturation() > 150) most = std::max(most, contrast(at, ground));
      }
    }
    EXPECT_GE(most, 3.0);
  }
}

TEST(LegibleGains, ChartsThatAreReadTogetherHaveOneScale) {
  GainChart wide("wide"), narrow("narrow");
  wide.set_gains({gain("one", -0.3)});
  narrow.set_gains({gain("other", -0.1)});
  const auto pixels = [](GainChart& chart) {
    chart.resize(600, 60);
    const QImage picture = chart.grab().toImage();
    int count = 0;
    for (int x = 0; x < picture.width(); ++x) count += picture.pixelColor(x, 12) == series_colour(2) ? 1 : 0;
    return count;
  };
  EXPECT_NEAR(pixels(wide), pixels(narrow), 2);  // each by itself
  for (GainChart* chart : {&wide, &narrow}) chart->set_longest(0.3);
  EXPECT_NEAR(pixels(wide), 3 * pixels(narrow), 6);
}

TEST_F(Legible, ExplainDrawsAllItsGainsToOneScale) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  std::vector<const GainChart*> charts;
  for (const QWidget* one : window_.explain().findChildren<QWidget*>()) {
    if (const auto* chart = dynamic_cast<const GainChart*>(one)) charts.push_back(chart);
  }
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_GT(charts[0]->longest(), 0);
  EXPECT_EQ(charts[0]->longest(), charts[1]->longest());
}

TEST_F(Legible, WithoutReplicasCompareSpeaksOfTheTiedEmbedding) {
  load_run();
  window_.show_view(MainWindow::kCompare);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.compare().canvas().timelines().empty(); }, kPatienceMs));
  std::string names;
  for (const Row& row : window_.compare().canvas().timelines()[0].spans->rows()) names += row.name + "\n";
  EXPECT_THAT(names, HasSubstr("compute predicted"));
  EXPECT_THAT(names, Not(HasSubstr("data predicted")));
}

TEST_F(Legible, ExplainLiesAsItWouldIfItWereLaidOutOnceMore) {
  begin(staged_scenario());
  window_.resize(1280, 720);
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  const auto laid_out = [&] {
    std::string made;
    for (const QWidget* one : window_.explain().findChildren<QWidget*>()) {
      if (!one->isVisible()) continue;
      const QRect at = one->geometry();
      made += fmt::format("{} {} {} {} {}\n", one->metaObject()->className(), at.x(), at.y(), at.width(), at.height());
    }
    return made;
  };
  const auto places = [&] {  // once the layout has rested for a fifth of a second, however busy the machine is
    std::string last;
    for (int equal = 0; equal < 4;) {
      QTest::qWait(50);
      std::string now = laid_out();
      equal = now == last ? equal + 1 : 0;
      last = std::move(now);
    }
    return last;
  };
  apply_theme(Theme::kDark);
  places();
  for (const QSize size : {QSize(1600, 900), QSize(2560, 1440)}) {
    apply_theme(Theme::kLight);
    window_.resize(size);
    const auto light = places();
    apply_theme(Theme::kDark);
    EXPECT_EQ(light, places()) << size.width();
  }
}

TEST_F(Legible, ARunThatIsRefusedIsNotOffered) {
  begin(staged_scenario());
  EXPECT_FALSE(window_.runs().refusal().text().isEmpty());
  EXPECT_FALSE(window_.compare().run_button().isEnabled());
  EXPECT_EQ(window_.compare().run_button().toolTip(), window_.runs().refusal().text());
}

TEST_F(Legible, WhatRoundingLeavesIsNoDifference) {
  EXPECT_EQ(difference_words({2.0, 2.0}), "none");
  EXPECT_EQ(difference_words({2.0, 2.0 + 8e-12}), "none");
  EXPECT_EQ(plain(difference_words({2.0, 1.5})), "−500.0 ms");
  EXPECT_EQ(plain(difference_words({0, 1e-6})), "+1.000 µs");
}

}  // namespace
}  // namespace trivium::gui
