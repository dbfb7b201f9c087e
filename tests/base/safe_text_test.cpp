// Text of anybody's on its way to a terminal, a log or a JSON reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"

namespace trivium::base {
namespace {

TEST(OneLine, EscapesWhatActsOnATerminalAndWhatIsNoText) {
  EXPECT_EQ(one_line("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(one_line("\x1b[31mred\x07\x7f"), "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(one_line("M\xfcller"), "M\\xfcller");  // ISO 8859-1
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m"),
            "\\xc2\\x9b31m");                              // CSI as one character
  EXPECT_EQ(one_line("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a surrogate pair
  EXPECT_EQ(one_line("\xc0\xaf"), "\\xc0\\xaf");           // a slash in too many bytes
  EXPECT_EQ(one_line("\xe2\x82"), "\\xe2\\x82");           // cut off
  EXPECT_EQ(one_line("Müller, 重, 😀"), "Müller, 重, 😀");
}

TEST(Printable, LeavesLinesAndTabs) { EXPECT_EQ(printable("a\n\tb\r\x1b"), "a\n\tb\\x0d\\x1b"); }

TEST(JsonText, TakesWhatIsNotUtf8) {
  const std::string text = json_text({{"name", "M\xfcller"}});
  EXPECT_EQ(text, "{\"name\":\"M\xef\xbf\xbdller\"}");
  EXPECT_EQ(nlohmann::json::parse(json_text({{"name", "\x1b"}}, 2)).at("name"), "\x1b");
}

/// Stderr is a broken pipe, or nothing at all, for as long as this lives.
class BrokenStderr {
 public:
  explicit BrokenStderr(bool closed) : saved_(::dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    if (closed) ::close(STDERR_FILENO);
  }
  ~BrokenStderr() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST(Say, NeitherThrowsNorEndsTheProcessWhereNobodyListens) {
  for (const bool closed : {false, true}) {
    const BrokenStderr broken(closed);
    say("to {}\n", "nobody");
  }
  sigset_t pending;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
}

}  // namespace

TEST(Listed, ADozenAtMostAndHowManyMore) {
  EXPECT_EQ(base::listed({}), "");
  std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(base::listed(names), "a, b, c");
  while (names.size() < 12) names.emplace_back("x");
  EXPECT_THAT(base::listed(names), testing::EndsWith("x, x"));
  names.resize(17, "y");
  EXPECT_EQ(base::listed(names), "a, b, c, x, x, x, x, x, x, x, x, x and 5 more");
}

}  // namespace trivium::base
