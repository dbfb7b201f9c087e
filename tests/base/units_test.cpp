#include "base/units.h"

#include <gmock/gmock.h>

#include <string>

namespace trivium::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Units, TimesAreReadInEveryUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("250 ps").value().value(), 250e-12);
  EXPECT_DOUBLE_EQ(parse_seconds("3ns").value().value(), 3e-9);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5 us").value().value(), 1.5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("2 ms").value().value(), 0.002);
  EXPECT_DOUBLE_EQ(parse_seconds(" 32.4 s ").value().value(), 32.4);
  EXPECT_DOUBLE_EQ(parse_seconds("2 min").value().value(), 120);
  EXPECT_DOUBLE_EQ(parse_seconds("3 µs").value().value(), 3e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1 h").value().value(), 3600);
  EXPECT_DOUBLE_EQ(parse_seconds("34 d").value().value(), 34 * 86400.0);
}

TEST(Units, BinaryAndDecimalSizesDiffer) {
  EXPECT_EQ(parse_bytes("80 GiB").value().value(), 85899345920.0);  // 80 x 2^30
  EXPECT_EQ(parse_bytes("80 GB").value().value(), 80e9);
  EXPECT_EQ(parse_bytes("1 KiB").value().value(), 1024);
  EXPECT_EQ(parse_bytes("0 B").value().value(), 0);
}

TEST(Units, BitsAreEightToTheByte) {
  EXPECT_EQ(parse_bandwidth("200 Gb/s").value().value(), 25e9);  // 200e9 / 8
  EXPECT_EQ(parse_bandwidth("300 GB/s").value().value(), 300e9);
  EXPECT_EQ(parse_bandwidth("1 MiB/s").value().value(), 1048576);
}

TEST(Units, RatesPowerAndPriceAreRead) {
  EXPECT_EQ(parse_flop_rate("312 TFLOP/s").value().value(), 312e12);
  EXPECT_EQ(parse_flops("2 PFLOP").value().value(), 2e15);
  EXPECT_EQ(parse_watts("400 W").value().value(), 400);
  // The case of the letter decides: milliwatts and megawatts.
  EXPECT_EQ(parse_watts("5 mW").value().value(), 0.005);
  EXPECT_EQ(parse_watts("5 MW").value().value(), 5e6);
  EXPECT_EQ(parse_price("2.5 $/h").value().value(), 2.5);
}

TEST(Units, TextThatIsNoQuantityIsRefusedInOneLine) {
  for (const char* text : {"", " ", "GiB", "80", "80 GiBs", "80 gib", "eighty GiB", "8 0 GiB", "1e GiB x", "0x10 B",
                           "nan B", "inf B", "-nan B", "+5 B", "80\nGiB", "1,5 GiB", "B/s", "80 GiB 80 GiB", "."}) {
    const Result<Bytes> parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInput) << text;
    EXPECT_THAT(parsed.error().message, Not(HasSubstr("\n"))) << text;
  }
}

TEST(Units, ErrorNamesTheTextAndTheUnits) {
  EXPECT_EQ(parse_watts("400 hp").error().message,
            "cannot read \"400 hp\" as a power; write a number and a unit such as \"400 W\" (units: mW, W, kW, MW)");
}

TEST(Units, NegativeAndUnbelievableValuesAreRefused) {
  EXPECT_EQ(parse_seconds("-1 us").error().message, "\"-1 us\" is negative; a time must be zero or more");
  EXPECT_EQ(parse_bytes("1e30 TiB").error().kind, ErrorKind::kInput);
  EXPECT_THAT(parse_bytes("1e999 B").error().message, HasSubstr("out of range"));
  EXPECT_THAT(parse_seconds("1e300 d").error().message, HasSubstr("out of range"));
  EXPECT_FALSE(parse_bandwidth("99999999999 TB/s").ok());
}

TEST(Units, LongTextIsCutInTheError) {
  const std::string text(100000, '9');
  EXPECT_LT(parse_bytes(text).error().message.size(), 300u);
}

TEST(Units, ShownWithThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(to_text(Seconds(32.44)), "32.4 s");
  EXPECT_EQ(to_text(Seconds(0.00123)), "1.23 ms");
  EXPECT_EQ(to_text(Seconds(90)), "90.0 s");  // as iterations of 36 s beside it
  EXPECT_EQ(to_text(Seconds(599)), "599 s");
  EXPECT_EQ(to_text(Seconds(630)), "10.5 min");
  EXPECT_EQ(to_text(Seconds(34 * 86400.0)), "34.0 d");
  EXPECT_EQ(to_text(Bytes(61.0 * kGiB)), "61.0 GiB");
  EXPECT_EQ(to_text(Bytes(512)), "512 B");
  EXPECT_EQ(to_text(Bytes(31)), "31 B");  // there is no part of one
  EXPECT_EQ(to_text(BytesPerSecond(25e9)), "25.0 GB/s");
  EXPECT_EQ(to_text(FlopsPerSecond(138e12)), "138 TFLOP/s");
  EXPECT_EQ(to_text(Watts(6500)), "6.50 kW");
}

TEST(Units, ShownBesideAnotherInItsUnit) {
  EXPECT_EQ(to_text(Seconds(71.3), Seconds(52)), "71.3 s");
  EXPECT_EQ(to_text(Seconds(520), Seconds(713)), "8.67 min");
  EXPECT_EQ(to_text(Seconds(0), Seconds(713)), "0 min");
  EXPECT_EQ(to_text(Seconds(-0.25), Seconds(0)), "-0.25 s");
}

TEST(Units, RoundingNeverShowsAThousandOfTheSmallerUnit) {
  EXPECT_EQ(to_text(Seconds(0.9999)), "1.00 s");
  EXPECT_EQ(to_text(BytesPerSecond(999.7e6)), "1.00 GB/s");
  EXPECT_EQ(to_text(Seconds(9.996)), "10.0 s");
}

TEST(Units, ZeroAndNegativeDifferencesAreShown) {
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Seconds(-0.25)), "-250 ms");
}

}  // namespace
}  // namespace trivium::base
