// Corpus formats, and what is said about files that are not right.
#include "runtime/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace trivium::runtime::data {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kAnyVocabulary = 1 << 20;

class CorpusFiles : public testing::Test {
 protected:
  CorpusFiles() : folder_(fs::path(testing::TempDir()) / ("corpus_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~CorpusFiles() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  /// The message that opening `path` fails with; it must name the file first.
  static std::string refusal(const fs::path& path, std::int64_t sequence = 1,
                             std::int64_t vocabulary = kAnyVocabulary) {
    try {
      static_cast<void>(open_corpus(path, sequence, vocabulary));
    } catch (const base::Failure& failure) {
      EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
      EXPECT_THAT(failure.error().message, StartsWith(path.string() + ": "));
      return failure.error().message;
    }
    ADD_FAILURE() << path << " was accepted";
    return "";
  }

  fs::path folder_;
};

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::string header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::vector<std::int32_t> words(256);
  words[0] = magic, words[1] = version, words[2] = tokens;
  return bytes_of(words);
}

std::vector<std::int32_t> tokens_of(const Corpus& corpus) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < corpus.tokens(); ++i) tokens.push_back(corpus.token(i));
  return tokens;
}

TEST_F(CorpusFiles, TextIsReadAsBytes) {
  const auto corpus = open_corpus(file("poem.txt", "Ab\xC3\xA4\n"), 2, 256);
  EXPECT_EQ(tokens_of(*corpus), (std::vector<std::int32_t>{65, 98, 0xC3, 0xA4, 10}));
  EXPECT_EQ(corpus->vocabulary(), 256);
  EXPECT_EQ(corpus->description(), "bytes of poem.txt (5 tokens)");
}

TEST_F(CorpusFiles, DescriptionsGroupDigits) {
  EXPECT_EQ(open_corpus(file("long.txt", std::string(1234567, 'a')), 2, 256)->description(),
            "bytes of long.txt (1,234,567 tokens)");
  EXPECT_EQ(open_corpus(file("long.txt", std::string(123, 'a')), 2, 256)->description(),
            "bytes of long.txt (123 tokens)");
}

TEST_F(CorpusFiles, BinWithoutHeaderIsNanoGptsUint16) {
  const auto corpus = open_corpus(file("train.bin", bytes_of<std::uint16_t>({50256, 1, 2})), 2, 50257);
  EXPECT_EQ(tokens_of(*corpus), (std::vector<std::int32_t>{50256, 1, 2}));
  EXPECT_EQ(corpus->vocabulary(), 50257);
  EXPECT_EQ(corpus->description(), "raw uint16 tokens of train.bin (3 tokens)");
}

TEST_F(CorpusFiles, LlmcUint16AndUint32AreTold) {
  const auto gpt2 = open_corpus(file("a.bin", header(20240520, 1, 2) + bytes_of<std::uint16_t>({40000, 7})), 1, 50257);
  EXPECT_EQ(tokens_of(*gpt2), (std::vector<std::int32_t>{40000, 7}));
  EXPECT_EQ(gpt2->vocabulary(), 40001);
  const auto llama =
      open_corpus(file("b.bin", header(20240801, 7, 2) + bytes_of<std::uint32_t>({128000, 7})), 1, 128256);
  EXPECT_EQ(tokens_of(*llama), (std::vector<std::int32_t>{128000, 7}));
  EXPECT_EQ(llama->description(), "llm.c tokens of b.bin (2 tokens)");
}

TEST_F(CorpusFiles, CorruptHeadersAreRefused) {
  const std::string two = bytes_of<std::uint16_t>({1, 2});
  EXPECT_THAT(refusal(file("a.bin", header(20240520, 1, 2).substr(0, 100))),
              EndsWith("the header of llm.c tokens is cut off: 100 of 1024 bytes"));
  EXPECT_THAT(refusal(file("b.bin", header(20240520, 2, 2) + two)),
              EndsWith("llm.c tokens of version 2; version 1 is read"));
  EXPECT_THAT(refusal(file("c.bin", header(20240801, 1, 2) + two)),
              EndsWith("llm.c tokens of version 1; version 7 is read"));
  EXPECT_THAT(refusal(file("d.bin", header(20240520, 1, 3) + two)),
              EndsWith("the header says 3 tokens, so 1030 bytes, but the file has 1028; it may be cut off"));
  EXPECT_THAT(refusal(file("e.bin", header(20240520, 1, -1) + two)), HasSubstr("the header says 4294967295 tokens"));
}

TEST_F(CorpusFiles, RawTokensOfOddSizeAreRefused) {
  EXPECT_THAT(refusal(file("a.bin", "abc")), HasSubstr("has an odd size of 3 bytes"));
}

TEST_F(CorpusFiles, TokensOutsideTheModelAreNamedWithTheirPosition) {
  EXPECT_THAT(
      refusal(file("a.bin", bytes_of<std::uint16_t>({1, 99, 100, 101})), 1, 100),
      HasSubstr(
          "token 100 at position 2 is outside the model's vocabulary of 100; use a model with a vocabulary of 102"));
  EXPECT_THAT(refusal(file("b.bin", header(20240801, 7, 2) + bytes_of<std::uint32_t>({1, 4000000000})), 1, 100),
              HasSubstr("token 4000000000 at position 1"));
  EXPECT_THAT(refusal(file("c.txt", "abc\xFF"), 1, 128), HasSubstr("token 255 at position 3"));
}

TEST_F(CorpusFiles, ASmallModelReadsTextThatStaysWithinIt) {
  EXPECT_EQ(open_corpus(file("ascii.txt", "plain"), 1, 128)->tokens(), 5);
}

TEST_F(CorpusFiles, WhatIsNotACorpusIsRefused) {
  EXPECT_THAT(refusal(file("empty.txt", "")), EndsWith("the corpus is empty"));
  EXPECT_THAT(refusal(folder_), HasSubstr("is a directory"));
  EXPECT_THAT(refusal(folder_ / "absent.txt"), HasSubstr("No such file"));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("not a regular file"));
}

TEST_F(CorpusFiles, OneSampleNeedsOneTokenMoreThanTheSequence) {
  EXPECT_THAT(refusal(file("a.txt", "abcd"), 4),
              HasSubstr("4 tokens are fewer than one sample needs (sequence 4 + 1)"));
  EXPECT_EQ(open_corpus(file("b.txt", "abcde"), 4, 256)->tokens(), 5);
}

TEST_F(CorpusFiles, LabelsAreTheNextTokens) {
  const auto corpus = open_corpus(file("a.txt", "abcdefgh"), 3, 256);
  std::array<std::int32_t, 3> ids{}, labels{};
  read_sample(*corpus, 3, ids, labels);
  EXPECT_EQ(ids, (std::array{'d' + 0, 'e' + 0, 'f' + 0}));
  EXPECT_EQ(labels, (std::array{'e' + 0, 'f' + 0, 'g' + 0}));
}

}  // namespace
}  // namespace trivium::runtime::data
