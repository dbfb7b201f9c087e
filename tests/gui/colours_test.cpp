// One kind of work, one colour, and colours that everybody tells apart.
#include <cmath>
#include <map>

#include "gui/look/marked.h"
#include "gui/look/theme.h"
#include "gui/timeline/spans/category.h"
#include "gui/timeline/timeline_painter.h"
#include "report/palette.h"
#include "tests/gui/colour_vision.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

/// Okabe and Ito's own eight come to 7 by this measure.
constexpr double kLeast = 14;
constexpr double kLeastToGround = 16;
constexpr double kLeastOnDark = 1.45;

std::uint32_t number(const QColor& colour) { return colour.rgb() & 0xffffffU; }

// Two of the pairs in Sharma, Wu and Dalal's table, whose results it gives.
TEST(Colours, DistancesAreThoseOfTheirPaper) {
  EXPECT_NEAR(ciede2000({50, 2.6772, -79.7751}, {50, 0, -82.7485}), 2.0425, 1e-4);
  EXPECT_NEAR(ciede2000({50, 2.5, 0}, {73, 25, -18}), 27.1492, 1e-4);
}

TEST(Colours, EveryTwoKindsAreToldApartWithAnyColourVision) {
  for (std::size_t a = 0; a < report::kKinds.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_GE(least_distance(report::kKinds[a], report::kKinds[b]), kLeast)
          << name_of(static_cast<Category>(a)) << ", " << name_of(static_cast<Category>(b));
    }
  }
}

TEST(Colours, EveryKindStandsOutFromTheGroundOfBothThemes) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    apply_theme(theme);
    const TimelineColours colours(QApplication::palette());
    for (const std::uint32_t kind : report::kKinds) {
      for (const QRgb ground : {colours.ground, colours.lane}) {
        EXPECT_GE(least_distance(kind, ground & 0xffffffU), kLeastToGround) << report::hex(kind);
        if (theme == Theme::kDark) {
          EXPECT_GE(contrast(QColor::fromRgb(kind), QColor::fromRgb(ground)), kLeastOnDark) << report::hex(kind);
        }
      }
    }
  }
  apply_theme(Theme::kSystem);
}

TEST(Colours, KernelsThatStandSideBySideDiffer) {
  std::map<int, std::string_view> seen;
  for (const Category category :
       {Category::kProduct, Category::kAttention, Category::kNorm, Category::kElementwise, Category::kCollective,
        Category::kCopy, Category::kOptimizer, Category::kWaiting, Category::kOther}) {
    EXPECT_TRUE(seen.emplace(hue_of(category), name_of(category)).second) << name_of(category);
  }
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(seen.contains(hue_of_named(n)));
}

using OneLanguage = Window;

// What the timeline, the memory view, Explain and the report call alike has one colour.
TEST_F(OneLanguage, TheSameKindHasTheSameColourInEveryView) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  std::map<std::string, std::uint32_t> timeline;
  for (const CategoryInfo& category : window_.timeline().canvas().timelines().at(0).spans->categories()) {
    timeline[category.name] = number(colour_of(category));
  }
  ASSERT_TRUE(timeline.contains("optimizer") && timeline.contains("pipeline") && timeline.contains("waiting"));
  EXPECT_EQ(timeline["optimizer"], number(part_colour(simulator::Part::kOptimizer)));
  EXPECT_EQ(timeline["pipeline"], number(part_colour(simulator::Part::kExposedPipeline)));
  EXPECT_EQ(timeline["waiting"], number(part_colour(simulator::Part::kBubble)));
  EXPECT_EQ(timeline["forward"], number(part_colour(simulator::Part::kCompute)));
  bool found = false;
  for (const BarPart& part : window_.memory().bars().parts()) {
    if (part.name != "optimizer") continue;
    EXPECT_EQ(number(part.colour), timeline["optimizer"]);
    found = true;
  }
  EXPECT_TRUE(found);
}

TEST(Colours, TheOneBlueButtonIsReadInBothThemes) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    apply_theme(theme);
    PrimaryButton button("Search");
    button.resize(200, 30);
    const QImage drawn = button.grab().toImage();
    for (const int y : {6, 15, 24}) {  // beside the text
      EXPECT_GE(contrast(drawn.pixelColor(20, y), Qt::white), 4.5) << y;
    }
  }
  apply_theme(Theme::kLight);
}

}  // namespace
}  // namespace trivium::gui
