#include "base/unified_diff.h"

#include <gtest/gtest.h>

namespace trivium::base {
namespace {

TEST(UnifiedDiff, OfEqualTextsIsEmpty) { EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "f"), ""); }

// As GNU diff -u prints it: three lines around the change, lines counted from 1.
TEST(UnifiedDiff, HasThreeLinesAroundAChange) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "f"),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

// Seven equal lines between two changes: their hunks do not touch.
TEST(UnifiedDiff, FarChangesAreHunksOfTheirOwn) {
  EXPECT_EQ(unified_diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n", "f"),
            "--- f\n+++ f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

TEST(UnifiedDiff, CountsAddedLinesAndMissingNewlines) {
  EXPECT_EQ(unified_diff("a\n", "a\nb", "f"), "--- f\n+++ f\n@@ -1,1 +1,2 @@\n a\n+b\n\\ No newline at end of file\n");
  EXPECT_EQ(unified_diff("a\nb\n", "b\n", "f"), "--- f\n+++ f\n@@ -1,2 +1,1 @@\n-a\n b\n");
}

}  // namespace
}  // namespace trivium::base
