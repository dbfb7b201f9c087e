// Text to token files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

template <class T>
std::vector<T> values(const std::string& bytes, std::size_t begin) {
  std::vector<T> all((bytes.size() - begin) / sizeof(T));
  std::memcpy(all.data(), bytes.data() + begin, all.size() * sizeof(T));
  return all;
}

TEST(Tokenize, WritesAFileThatTrainingReads) {
  const Workplace workplace;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "In the beginning was the Word.\n";
  workplace.write("text.txt", text);
  const Outcome outcome = workplace.run("trivium tokenize text.txt -o tokens.bin");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string file = workplace.read("tokens.bin");
  const auto header = values<std::int32_t>(file.substr(0, 1024), 0);
  EXPECT_EQ(header[0], 20240520);
  EXPECT_EQ(header[1], 1);
  EXPECT_EQ(header[2], static_cast<std::int32_t>(text.size()));
  const auto tokens = values<std::uint16_t>(file, 1024);
  ASSERT_EQ(tokens.size(), text.size());
  EXPECT_EQ(tokens[3], 't');
  const std::string command =
      "trivium run --model gpt-tiny --cluster this-machine --global-batch 2 --sequence 32 --steps 1 --json --corpus ";
  const auto loss = [&](const std::string& corpus) {
    const std::string out = workplace.run(command + corpus).out;
    return out.substr(out.find("\"loss\""), 20);
  };
  EXPECT_EQ(loss("tokens.bin"), loss("text.txt"));
}

TEST(Tokenize, VocabularyAndMergesGoTogether) {
  const Workplace workplace;
  workplace.write("text.txt", "a");
  workplace.write("vocab.json", "{\"a\": 0}");
  workplace.write("merges.txt", "");
  EXPECT_EQ(workplace.run("trivium tokenize text.txt -o t.bin --vocabulary vocab.json").exit_code, 2);
  const Outcome lacking =
      workplace.run("trivium tokenize text.txt -o t.bin --vocabulary vocab.json --merges merges.txt");
  EXPECT_EQ(lacking.exit_code, 3);
  EXPECT_THAT(lacking.err, ::testing::HasSubstr("vocab.json: no token for the byte 0x00"));
}

}  // namespace
}  // namespace trivium::cli
