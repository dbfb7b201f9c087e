#include "gui/timeline/strip_painter.h"

#include <gtest/gtest.h>

#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

constexpr QRgb kPage = qRgb(250, 250, 250), kLane = qRgb(200, 200, 200);
constexpr int kColumns = 18;  // one more than are painted abreast, and one

/// A group of ten lines on top, a gap, a lane of four lines, a gap, and the page below.
struct Picture {
  Picture() : image(kColumns, 20, QImage::Format_RGB32) {
    auto spans = given_spans({{{0, 10, Category::kForward}, {10, 20, Category::kBackward}}});
    for (const CategoryInfo& category : spans->categories()) {
      const Colour colour = colour_of(category.hue);
      hues.push_back(qRgb(colour.red, colour.green, colour.blue));
    }
    scene.timelines.push_back({spans, nullptr, nullptr});
    list.columns = kColumns;
    list.strips = {{0, 0, 11, true, 0}, {0, 11, 5, false, kColumns * hues.size()}};
    list.shares.assign(2 * kColumns * hues.size(), 0);
    image.fill(Qt::red);
  }
  float& share(std::size_t strip, int column, std::size_t kind) {
    return list.shares[list.strips[strip].first + static_cast<std::size_t>(column) * hues.size() + kind];
  }
  void paint() { paint_strips(scene, list, {kPage, kLane}, image); }

  Scene scene;
  DrawList list;
  QImage image;
  std::vector<QRgb> hues;  // forward, backward
};

// Forward takes c tenths of column c, backward one tenth above it; what is above both is idle.
TEST(StripPainter, GroupsStackWhatCoversEveryColumn) {
  Picture picture;
  ASSERT_EQ(picture.hues.size(), 2U);
  for (int c = 0; c < kColumns; ++c) {
    picture.share(0, c, 0) = static_cast<float>(c % 10) * 0.1F;
    picture.share(0, c, 1) = 0.1F;
  }
  picture.paint();
  for (int c = 0; c < kColumns; ++c) {
    for (int above = 1; above <= 10; ++above) {  // 1: the lowest line
      const QRgb expected = above <= c % 10 ? picture.hues[0] : above == c % 10 + 1 ? picture.hues[1] : kLane;
      EXPECT_EQ(picture.image.pixel(c, 10 - above), expected) << c << ' ' << above;
    }
  }
}

// 0.9 + 0.098 of ten lines round to all ten; what idles still shows: the topmost is half of it and half
// of what lies below. 0.9 + 0.1 leave nothing.
TEST(StripPainter, WhatIdlesShowsThoughItRoundsToNothing) {
  Picture picture;
  for (int c = 0; c < kColumns; ++c) {
    picture.share(0, c, 0) = 0.9F;
    picture.share(0, c, 1) = c == 16 ? 0.098F : 0.1F;
  }
  picture.paint();
  for (int c = 0; c < kColumns; ++c) {
    EXPECT_EQ(picture.image.pixel(c, 0), c == 16 ? mix(picture.hues[0], kLane, 128) : picture.hues[1]) << c;
    EXPECT_EQ(picture.image.pixel(c, 1), picture.hues[0]) << c;
  }
}

// Four lines: 0.5 of forward are two of them, 0.25 of backward the one above, and the topmost is idle.
TEST(StripPainter, LanesShowColoursOfTheLegendAloneAndThePageFillsTheRest) {
  Picture picture;
  for (int c = 0; c < kColumns; ++c) {
    picture.share(1, c, 0) = 0.5F;
    picture.share(1, c, 1) = 0.25F;
  }
  picture.paint();
  for (int c = 0; c < kColumns; ++c) {
    EXPECT_EQ(picture.image.pixel(c, 11), kLane);
    EXPECT_EQ(picture.image.pixel(c, 12), picture.hues[1]);
    EXPECT_EQ(picture.image.pixel(c, 13), picture.hues[0]);
    EXPECT_EQ(picture.image.pixel(c, 14), picture.hues[0]);
    for (const int y : {10, 15, 16, 19}) EXPECT_EQ(picture.image.pixel(c, y), kPage) << y;
  }
}

// 0.02 of four lines round to none; the lowest is half of the larger one.
TEST(StripPainter, WhatRunsShowsThoughItRoundsToNothing) {
  Picture picture;
  picture.share(1, 3, 0) = 0.01F;
  picture.share(1, 3, 1) = 0.02F;
  picture.paint();
  EXPECT_EQ(picture.image.pixel(3, 14), mix(picture.hues[1], kLane, 128));
  EXPECT_EQ(picture.image.pixel(4, 14), kLane);
}

TEST(StripPainter, PaintsWhatIsSeenOfBandsBeyondTheEdges) {
  Picture whole, high;
  for (int c = 0; c < kColumns; ++c) {
    whole.share(0, c, 0) = high.share(0, c, 0) = static_cast<float>(c % 8) * 0.1F;
  }
  high.list.strips[0].y = -4;
  high.list.strips[1].y = 18;  // two of its four lines
  whole.paint();
  high.paint();
  for (int c = 0; c < kColumns; ++c) {
    for (int y = 0; y < 6; ++y) EXPECT_EQ(high.image.pixel(c, y), whole.image.pixel(c, y + 4)) << c << ' ' << y;
    EXPECT_EQ(high.image.pixel(c, 17), kPage);
    EXPECT_EQ(high.image.pixel(c, 19), kLane);
  }
}

}  // namespace
}  // namespace trivium::gui
