#include "report/validation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/validation_charts.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::report {
namespace {

using calibration::ParityPoint;
using calibration::TimelinePair;
using calibration::ValidationGroup;
using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// One decade from 1 s to 10 s over 420 units: log10(2) of it is 126.4; the frame begins at 70 and ends 430 down.
TEST(ParityPlot, PutsMeasuredAcrossAndPredictedUp) {
  const ParityPoint points[] = {{"a", 2, 10}, {"nothing", 0, 3}, {"b", 1, 1}};
  const std::string svg = parity_plot(points);
  EXPECT_EQ(count(svg, "<circle"), 2U);
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"196.4\" cy=\"10.0\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"70.0\" cy=\"430.0\""));
  EXPECT_THAT(svg, HasSubstr("a: measured 2 s, predicted 10 s (+400.0 %)"));
  EXPECT_EQ(parity_plot({}), "");
}

// The scale is the largest error, 50 %: -50 % ends at the left, 220, and zero is at 430.
TEST(ErrorBars, GoFromZeroToTheMeanError) {
  ValidationGroup low, high;
  low.name = "matmul";
  low.bias = -.5;
  high.name = "norm";
  high.bias = .05;
  const ValidationGroup groups[] = {low, high};
  const std::string svg = error_bars(groups, 10);
  EXPECT_THAT(svg, HasSubstr("<rect x=\"220.0\" y=\"3.0\" width=\"210.0\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"430.0\" y=\"21.0\" width=\"21.0\""));
  EXPECT_EQ(count(error_bars(groups, 1), "<rect"), 1U);
}

// The longer side ends at 4 s: 1,000 units. Two neighbours of a colour are one bar.
TEST(TimelinePicture, ShowsBothSidesOnOneScale) {
  TimelinePair pair;
  pair.predicted = {{0, "matmul", 0, 1}, {0, "matmul_dgrad", 1, 2}};
  pair.measured = {{0, "matmul", 0, 2}, {0, "all_reduce", 3, 4}};
  const std::string svg = timeline_picture(pair);
  EXPECT_EQ(count(svg, "<rect"), 3U);
  EXPECT_THAT(svg, HasSubstr("<rect x=\"80.00\" y=\"20.0\" width=\"500.00\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"830.00\" y=\"66.0\" width=\"250.00\""));
}

TEST(ValidationPage, IsOnePageThatNeedsNothingElse) {
  const program::Job job = calibration::small_job(2, 1, 1, 2);
  const calibration::Validation result =
      calibration::validate_run({job, {}}, calibration::synthetic_run(job, calibration::rated_node(2)),
                                calibration::cluster_of(calibration::rated_node(1)));
  const std::string page = validation_page(result, "plan <1> & run");
  EXPECT_THAT(page, HasSubstr("<h1>plan &lt;1&gt; &amp; run</h1>"));
  EXPECT_EQ(count(page, "<svg"), 3U);
  EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
  for (const char* outside : {"http://", "https://", "<script", "src="}) EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("op matmul"));
  EXPECT_EQ(page, validation_page(result, "plan <1> & run"));
}

}  // namespace
}  // namespace trivium::report
