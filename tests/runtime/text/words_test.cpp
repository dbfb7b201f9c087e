// The words that byte-pair encoding looks at.
#include "runtime/text/words.h"

#include <gtest/gtest.h>

namespace trivium::runtime::text {
namespace {

using Words = std::vector<std::string_view>;

TEST(Words, FollowTheKindsOfCharacters) {
  EXPECT_EQ(words_of("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words_of("it's 42nd, isn't it?!"), (Words{"it", "'s", " 42", "nd", ",", " isn", "'t", " it", "?!"}));
  EXPECT_EQ(words_of("we'll they've I'd I'm you're"),
            (Words{"we", "'ll", " they", "'ve", " I", "'d", " I", "'m", " you", "'re"}));
}

// The last space of a run belongs to the next word; at the end of the text the run is whole.
TEST(Words, RunsOfWhiteSpaceLeaveOneSpaceToTheWordBehind) {
  EXPECT_EQ(words_of("a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(words_of("a\n\n b  "), (Words{"a", "\n\n", " b", "  "}));
}

TEST(Words, KnowLettersAndDigitsBeyondAscii) {
  EXPECT_EQ(words_of("naïve Größe 日本語 ٣٤"), (Words{"naïve", " Größe", " 日本語", " ٣٤"}));
}

TEST(Words, BytesThatAreNoTextAreKept) {
  EXPECT_EQ(words_of("a\xff\xfe b"), (Words{"a", "\xff", "\xfe", " b"}));
  EXPECT_EQ(words_of("\xe2\x82"), (Words{"\xe2", "\x82"}));
  EXPECT_EQ(words_of(""), Words{});
}

}  // namespace
}  // namespace trivium::runtime::text
