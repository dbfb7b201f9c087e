#include "report/charts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "report/palette.h"

namespace trivium::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string plain(double value) { return fmt::format("{:g}", value); }

/// Widths of the rectangles of a colour, in their order. Legends are 12 wide.
std::vector<double> widths(const std::string& svg, std::uint32_t colour) {
  std::vector<double> found;
  const std::regex rect("<rect x=\"[0-9.]+\" y=\"[0-9.]+\" width=\"([0-9.]+)\" height=\"[0-9.]+\" fill=\"" +
                        hex(colour));
  for (std::sregex_iterator at(svg.begin(), svg.end(), rect), end; at != end; ++at)
    found.push_back(std::stod((*at)[1]));
  return found;
}

TEST(StackedBars, AreToScaleAndLeaveOutWhatNoBarHas) {
  const std::string svg = stacked_bars({{"a", 0x111111}, {"b", 0x222222}, {"c", 0x333333}},
                                       {{"one", {1, 3, 0}, 0}, {"two", {2, 0, 0}, 0}}, plain);
  // 1000 wide, 180 of it for names and 110 for figures: 710 for the longest sum, 4.
  EXPECT_THAT(widths(svg, 0x111111), ElementsAre(12, 177.5, 355));
  EXPECT_THAT(widths(svg, 0x222222), ElementsAre(12, 532.5));
  EXPECT_TRUE(widths(svg, 0x333333).empty());
  EXPECT_THAT(svg, HasSubstr(">one</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>b: 3</title>"));
  EXPECT_EQ(stacked_bars({}, {}, plain), "");
}

TEST(StackedBars, AreOutlinedAboveTheirLimitAlone) {
  const auto drawn = [](double limit) { return stacked_bars({{"a", 0x111111}}, {{"x", {4}, limit}}, plain); };
  const std::string alarm = "stroke=\"" + hex(kAlarm);
  EXPECT_THAT(drawn(3), HasSubstr(alarm));
  EXPECT_THAT(drawn(5), Not(HasSubstr(alarm)));
  EXPECT_THAT(drawn(5), HasSubstr("stroke-dasharray"));
  EXPECT_THAT(drawn(0), Not(HasSubstr("stroke-dasharray")));
}

TEST(ChangeBars, GainsAreLeftLossesRightAndRefusalsInWords) {
  const std::string svg = change_bars({{"faster", -0.1, ""}, {"slower", 0.05, ""}, {"cannot", 0, "tensor 5 <"}});
  // Names take 420; half of the rest less the room for figures is (1000 - 420) / 2 - 77 = 213.
  EXPECT_THAT(widths(svg, kSeries[2]), ElementsAre(213));
  EXPECT_THAT(widths(svg, kSeries[5]), ElementsAre(106.5));
  EXPECT_THAT(svg, HasSubstr("−10.0 %"));
  EXPECT_THAT(svg, HasSubstr("+5.0 %"));
  EXPECT_THAT(svg, HasSubstr("tensor 5 &lt;"));
}

TEST(ChangeBars, CutLongNamesBetweenLetters) {
  std::string name;
  for (int i = 0; i < 60; ++i) name += "ä";
  const std::string svg = change_bars({{name, 0.1, ""}});
  EXPECT_THAT(svg, HasSubstr("ä…</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(name)));
}

TEST(BandChart, SpansFromTheLowToTheHigh) {
  const std::string svg = band_chart({10, 12, 14, 8}, "without chance", plain);
  // From 8 (marked) to 14, 15 % of air on both sides: 710 for 7.8; the band is 4 wide.
  EXPECT_THAT(widths(svg, kSeries[4]), ElementsAre(testing::DoubleNear(4 / 7.8 * 710, 0.06)));
  EXPECT_THAT(svg, HasSubstr("median 12"));
  EXPECT_THAT(svg, HasSubstr("without chance 8"));
}

TEST(Strips, JoinEqualColumns) {
  const std::string svg = strips({{"f", 0x111111}, {"b", 0x222222}}, {{"stage 0", {0, 0, -1, 1}}}, 2, plain);
  EXPECT_THAT(widths(svg, 0x111111), ElementsAre(12, 410));  // two of four columns of 820
  EXPECT_THAT(widths(svg, 0x222222), ElementsAre(12, 205));
}

TEST(PreciseSeconds, TellNeighboursApart) {
  EXPECT_EQ(precise_seconds(19.834), "19.83 s");
  EXPECT_EQ(precise_seconds(0.5124), "512.4 ms");
  EXPECT_EQ(precise_seconds(12.34e-6), "12.34 us");
}

}  // namespace
}  // namespace trivium::report
