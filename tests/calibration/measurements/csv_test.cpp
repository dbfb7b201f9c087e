#include "calibration/measurements/csv.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace trivium::calibration {
namespace {

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    return failure.what();
  }
  return "no failure";
}

TEST(CsvTable, ReadsQuotesCommasAndLineEndsInsideFields) {
  const CsvTable table(
      "\xEF\xBB\xBF"
      "name,note\r\n\"a, \"\"b\"\"\",\"two\nlines\"\r\n\nlast,\n",
      "t.csv");
  ASSERT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.row(0).text("name"), "a, \"b\"");
  EXPECT_EQ(table.row(0).text("note"), "two\nlines");
  EXPECT_EQ(table.row(1).text("note"), "");
}

TEST(CsvTable, ReadsALastLineWithoutEnd) {
  const CsvTable table("a,b\n1,2", "t.csv");
  ASSERT_EQ(table.rows(), 1u);
  EXPECT_EQ(table.row(0).integer("b", 0, 9), 2);
}

// The second record begins on line 4, as the first spans lines 2 and 3.
TEST(CsvTable, CountsLinesInsideQuotedFields) {
  const CsvTable table("a\n\"x\ny\"\nz\n", "t.csv");
  EXPECT_EQ(failure_of([&] { (void)table.row(1).integer("a", 0, 9); }),
            "t.csv:4: a: \"z\" is not a whole number from 0 to 9");
}

TEST(CsvTable, RefusesBrokenTables) {
  EXPECT_EQ(failure_of([] { CsvTable("", "t.csv"); }),
            "t.csv:1: the file is empty; the first line must name the columns");
  EXPECT_EQ(failure_of([] { CsvTable("a,a\n", "t.csv"); }), "t.csv:1: column \"a\" is there twice");
  EXPECT_EQ(failure_of([] { CsvTable("a,b\n1\n", "t.csv"); }),
            "t.csv:2: 1 fields where the header has 2; quote fields that contain commas");
  EXPECT_EQ(failure_of([] { CsvTable("a\nok\n\"open\n", "t.csv"); }),
            "t.csv:3: a quoted field is never closed; add the closing quote");
  EXPECT_EQ(failure_of([] { CsvTable("a\n\"x\"y\n", "t.csv"); }),
            "t.csv:2: text follows a closing quote; quote the whole field and double quotes inside it");
}

TEST(CsvTable, NamesMissingColumns) {
  const std::vector<std::string> columns = {"case", "hidden"};
  EXPECT_EQ(failure_of([&] { CsvTable("case,hiden\n", "t.csv").require(columns); }),
            "t.csv:1: hidden: the column is missing; is it \"hiden\"?");
}

TEST(CsvTable, RefusesValuesOutOfRange) {
  const CsvTable table("n,x,w\n-1,0,reed\n1e3,nan,red\n", "t.csv");
  const std::vector<std::string> names = {"red", "green"};
  EXPECT_EQ(failure_of([&] { (void)table.row(0).integer("n", 1, 8); }),
            "t.csv:2: n: \"-1\" is not a whole number from 1 to 8");
  EXPECT_EQ(failure_of([&] { (void)table.row(1).integer("n", 1, 8); }),
            "t.csv:3: n: \"1e3\" is not a whole number from 1 to 8");
  EXPECT_EQ(failure_of([&] { (void)table.row(0).positive("x"); }), "t.csv:2: x: \"0\" is not a number above zero");
  EXPECT_EQ(failure_of([&] { (void)table.row(1).positive("x"); }), "t.csv:3: x: \"nan\" is not a number above zero");
  EXPECT_EQ(failure_of([&] { (void)table.row(0).one_of("w", names); }),
            "t.csv:2: w: unknown \"reed\"; did you mean \"red\"?");
  EXPECT_EQ(table.row(1).one_of("w", names), 0u);
}

}  // namespace
}  // namespace trivium::calibration
