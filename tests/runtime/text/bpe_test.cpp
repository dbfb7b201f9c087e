// Byte-pair encoding with a vocabulary made by hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "runtime/text/tokenizer.h"
#include "tests/input_error.h"

namespace trivium::runtime::text {
namespace {

namespace fs = std::filesystem;

constexpr int kBytes = 256;

/// GPT-2's stand-in of a byte as UTF-8: printable bytes stand for themselves, the others for U+0100 and on, in order.
/// So the space, number 32 among the 33 bytes 0 … 32, is U+0120, "Ġ".
std::string stand_in(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code = byte;
  if (!printable(byte)) {
    code = kBytes;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

class BpeFiles : public ::testing::Test {
 protected:
  BpeFiles() : folder_(fs::path(::testing::TempDir()) / ("bpe_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    for (int byte = 0; byte < kBytes; ++byte) vocabulary_[stand_in(byte)] = byte;
    // Numbers 256 and on, in this order.
    for (const char* token : {"he", "ll", "hell", "hello", "Ġw", "Ġwo", "<|endoftext|>"}) {
      const auto number = vocabulary_.size();
      vocabulary_[token] = number;
    }
    merges_ = "#version: 0.2\nh e\nl l\nhe ll\nhell o\nĠ w\nĠw o\n";
  }
  ~BpeFiles() override { fs::remove_all(folder_); }

  std::unique_ptr<Tokenizer> open() const {
    std::ofstream(folder_ / "vocab.json") << vocabulary_.dump();
    std::ofstream(folder_ / "merges.txt") << merges_;
    return open_bpe(folder_ / "vocab.json", folder_ / "merges.txt");
  }
  std::string complaint() const {
    return input_error([&] { open(); });
  }

  fs::path folder_;
  nlohmann::json vocabulary_ = nlohmann::json::object();
  std::string merges_;
};

// "hello" merges to one token. " world": "Ġw", then "Ġwo"; r, l, d stay bytes, as "l d" and "r l" are no merges.
TEST_F(BpeFiles, MergesTheMostFrequentPairsFirst) {
  const auto bpe = open();
  EXPECT_EQ(bpe->vocabulary(), 263);
  EXPECT_EQ(bpe->encode("hello world"), (std::vector<std::int32_t>{259, 261, 'r', 'l', 'd'}));
  // "helll": h e l l l -> he l l l -> he ll l (leftmost first) -> hell l.
  EXPECT_EQ(bpe->encode("helll"), (std::vector<std::int32_t>{258, 'l'}));
  EXPECT_EQ(bpe->encode(""), std::vector<std::int32_t>{});
}

TEST_F(BpeFiles, DecodesToTheSameBytes) {
  const auto bpe = open();
  std::mt19937_64 random(7);
  std::string noise;
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>(random() % 256);
  for (const std::string& text : {std::string("hello  world\n\tit's 日本語 naïve\r\n"), noise}) {
    EXPECT_EQ(bpe->decode(bpe->encode(text)), text);
  }
  const std::vector<std::int32_t> special{262, 259, 999};
  EXPECT_EQ(bpe->decode(special), "<|endoftext|>hello\xEF\xBF\xBD");
}

TEST_F(BpeFiles, SaysWhatIsWrong) {
  merges_ = "#version: 0.2\nh e\nh\n";
  EXPECT_NE(complaint().find("merges.txt: line 3: a merge is two tokens"), std::string::npos);
  merges_ = "h e\nq q\n";
  EXPECT_NE(complaint().find("line 2: \"qq\" is no token"), std::string::npos);
  merges_ = "";
  vocabulary_["again"] = 5;
  EXPECT_NE(complaint().find("two tokens have the number 5"), std::string::npos);
  vocabulary_.erase("again");
  vocabulary_["far"] = 5000;
  EXPECT_NE(complaint().find("vocab.json#/far"), std::string::npos);
  vocabulary_.erase("far");
  // The last token takes the place of "a".
  vocabulary_.erase("a");
  vocabulary_["<|endoftext|>"] = 'a';
  EXPECT_NE(complaint().find("no token for the byte 0x61"), std::string::npos);
}

TEST(BytesTokenizer, IsTheText) {
  const auto bytes = bytes_tokenizer();
  EXPECT_EQ(bytes->encode("a\xff"), (std::vector<std::int32_t>{97, 255}));
  EXPECT_EQ(bytes->decode(bytes->encode("a\xff")), "a\xff");
  const std::vector<std::int32_t> beyond{300};
  EXPECT_EQ(bytes->decode(beyond), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace trivium::runtime::text
