#include "hardware_profiles/quantity_text.h"

#include <gtest/gtest.h>

namespace trivium::hardware {
namespace {

TEST(QuantityText, PrefersTheShortestUnit) {
  EXPECT_EQ(exact_text(base::Bytes(80 * base::kGiB)), "80 GiB");
  EXPECT_EQ(exact_text(base::BytesPerSecond(2039e9)), "2039 GB/s");
  EXPECT_EQ(exact_text(base::FlopsPerSecond(312e12)), "312 TFLOP/s");
  EXPECT_EQ(exact_text(base::Seconds(12e-6)), "12 us");
  EXPECT_EQ(exact_text(base::Watts(400)), "400 W");
  EXPECT_EQ(exact_text(base::DollarsPerHour(32.77)), "32.77 $/h");
}

TEST(QuantityText, ReadsBackToTheSameBits) {
  // Values without a short decimal form, from a fixed linear congruential sequence.
  std::uint64_t state = 1;
  for (int i = 0; i < 1000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = static_cast<double>(state >> 11) * 1e-3 / 7;
    EXPECT_EQ(base::parse_bytes(exact_text(base::Bytes(value))).value().value(), value);
    EXPECT_EQ(base::parse_bandwidth(exact_text(base::BytesPerSecond(value))).value().value(), value);
    const double small = value * 1e-20;
    EXPECT_EQ(base::parse_seconds(exact_text(base::Seconds(small))).value().value(), small);
  }
}

TEST(QuantityText, WritesZeroInTheBaseUnit) { EXPECT_EQ(exact_text(base::Seconds(0)), "0 s"); }

}  // namespace
}  // namespace trivium::hardware
