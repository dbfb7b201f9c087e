#include "base/json_reader.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"

namespace trivium::base {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Message of the Failure that `action` throws; every one of them is an input error told in one line.
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::kInput);
    EXPECT_THAT(failure.error().message, Not(HasSubstr("\n")));
    return failure.error().message;
  }
  return "nothing thrown";
}

class JsonReaderTest : public ::testing::Test {
 protected:
  const nlohmann::json document_ = nlohmann::json::parse(R"({
    "nodes": [{"gpu": "A100-90GB", "count": 8}],
    "memory": "80 GiB", "whole": 3, "half": 2.5, "huge": 1e30, "beyond": 18446744073709551615,
    "long": "a text of more than forty characters is told by its kind", "a/b~c": true, "none": null, "negative": -4
  })");
  const JsonReader reader_{document_, "cluster.json"};
};

TEST_F(JsonReaderTest, ErrorNamesFilePointerFaultAndSuggestion) {
  const std::array<std::string, 2> devices = {"A100-80GB", "V100-32GB"};
  const JsonReader gpu = reader_.at("nodes").elements()[0].at("gpu");
  EXPECT_EQ(message_of([&] { (void)gpu.one_of(devices); }),
            "cluster.json#/nodes/0/gpu: unknown value \"A100-90GB\"; did you mean \"A100-80GB\"?");
}

TEST_F(JsonReaderTest, PointerEscapesSlashAndTilde) {
  EXPECT_THAT(message_of([&] { (void)reader_.at("a/b~c").text(); }),
              StartsWith("cluster.json#/a~1b~0c: expected text"));
}

TEST_F(JsonReaderTest, MissingMemberIsNamed) {
  EXPECT_EQ(message_of([&] { (void)reader_.at("links"); }), "cluster.json#: missing \"links\"; add it");
  EXPECT_FALSE(reader_.has("links"));
  EXPECT_FALSE(reader_.find("links").has_value());
}

TEST_F(JsonReaderTest, IntegersAreWholeAndInRange) {
  EXPECT_EQ(reader_.at("whole").integer(1, 3), 3);
  EXPECT_EQ(message_of([&] { (void)reader_.at("whole").integer(4, 9); }),
            "cluster.json#/whole: must be from 4 to 9, not 3");
  EXPECT_EQ(message_of([&] { (void)reader_.at("half").integer(1, 9); }),
            "cluster.json#/half: expected a whole number from 1 to 9, found 2.5");
  EXPECT_THAT(message_of([&] { (void)reader_.at("huge").integer(0, INT64_MAX); }), HasSubstr("found 1e+30"));
  // 2^64 - 1 would wrap to -1 if it were read as signed.
  EXPECT_THAT(message_of([&] { (void)reader_.at("beyond").integer(-9, INT64_MAX); }),
              HasSubstr("not 18446744073709551615"));
  EXPECT_THAT(message_of([&] { (void)reader_.at("negative").integer(0, 9); }), HasSubstr("from 0 to 9, not -4"));
}

TEST_F(JsonReaderTest, WrongTypesAreToldByKind) {
  EXPECT_THAT(message_of([&] { (void)reader_.at("none").number(); }), HasSubstr("expected a number, found null"));
  EXPECT_THAT(message_of([&] { (void)reader_.at("memory").elements(); }),
              HasSubstr("expected an array, found text \"80 GiB\""));
  EXPECT_THAT(message_of([&] { (void)reader_.at("memory").has("x"); }),
              HasSubstr("expected an object, found text \"80 GiB\""));
  EXPECT_THAT(message_of([&] { (void)reader_.at("long").number(); }), EndsWith("expected a number, found text"));
  EXPECT_THAT(message_of([&] { (void)reader_.at("whole").boolean(); }),
              HasSubstr("expected true or false, found a number"));
}

TEST_F(JsonReaderTest, QuantitiesAreTextWithAUnit) {
  EXPECT_EQ(reader_.at("memory").bytes().value(), 80 * kGiB);
  EXPECT_EQ(message_of([&] { (void)reader_.at("whole").bytes(); }),
            "cluster.json#/whole: expected text with a unit such as \"80 GiB\", found a number");
  EXPECT_THAT(message_of([&] { (void)reader_.at("memory").seconds(); }),
              StartsWith("cluster.json#/memory: cannot read \"80 GiB\" as a time"));
}

TEST_F(JsonReaderTest, UnknownMembersAreRefusedWithASuggestion) {
  const JsonReader node = reader_.at("nodes").elements()[0];
  EXPECT_NO_THROW(node.allow_only({"gpu", "count"}));
  EXPECT_EQ(message_of([&] {
              node.allow_only({"gpu", "counts"});
            }),
            "cluster.json#/nodes/0/count: unknown member \"count\"; did you mean \"counts\"?");
}

TEST_F(JsonReaderTest, MembersComeInKeyOrder) {
  const auto members = reader_.at("nodes").elements()[0].members();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].first, "count");
  EXPECT_EQ(members[1].second.text(), "A100-90GB");
}

TEST_F(JsonReaderTest, ControlCharactersOfTheUserStayOutOfTheMessage) {
  const nlohmann::json document = {{"a\nb", "x\ny"}};
  const JsonReader reader(document, "f\n.json");
  const std::array<std::string, 1> names = {"z"};
  EXPECT_EQ(message_of([&] { (void)reader.at("a\nb").one_of(names); }),
            "f\\x0a.json#/a\\x0ab: unknown value \"x\\x0ay\"; known: z");
}

TEST(Nearest, FindsSlipsAndIgnoresStrangers) {
  const std::array<std::string, 3> names = {"gpt3-175b", "gpt3-13b", "llama-7b"};
  EXPECT_EQ(nearest("gpt3-175", names), "gpt3-175b");
  EXPECT_EQ(nearest("GPT3-13B", names), "gpt3-13b");
  EXPECT_EQ(nearest("lalma-7b", names), "llama-7b");
  EXPECT_EQ(nearest("resnet", names), "");
  EXPECT_EQ(nearest("llama", names), "llama-7b");  // a family
  EXPECT_EQ(nearest("gpt3", std::vector<std::string>{"gpt2", "gpt3-13b"}), "gpt3-13b");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(1000000, 'g'), names), "");
}

class JsonFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / (std::string("trivium_json_") + info->name() + ".json");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string message_for(const std::string& content) {
    std::ofstream(path_) << content;
    return message_of([&] { (void)read_json_file(path_); });
  }
  std::filesystem::path path_;
};

TEST_F(JsonFileTest, BrokenJsonIsPlacedByLineAndColumn) {
  // The comma of line 2 promises a member; the brace of line 3, column 1, is not one.
  EXPECT_THAT(message_for("{\"a\": 1,\n \"b\": 2,\n}"), HasSubstr("not valid JSON at line 3, column 1: "));
  EXPECT_THAT(message_for("[1, 2"), HasSubstr("line 1, column 6: "));
  EXPECT_THAT(message_for(""), HasSubstr("line 1, column 1: "));
  EXPECT_THAT(message_for("\"\xff\""), HasSubstr("not valid JSON at line 1"));
  EXPECT_THAT(message_for("NaN"), HasSubstr("not valid JSON at line 1"));
}

TEST_F(JsonFileTest, NumbersBeyondDoubleAreRefused) {
  EXPECT_THAT(message_for("[1e999]"), HasSubstr("number overflow parsing '1e999'"));
}

TEST_F(JsonFileTest, DeepNestingIsRefusedBeforeItCanOverflowTheStack) {
  EXPECT_THAT(message_for(std::string(1000000, '[')), HasSubstr("line 1, column 201: nested deeper than 200 levels"));
  // Brackets in text are no nesting.
  EXPECT_EQ(message_for('"' + std::string(1000, '[') + "\\\"" + std::string(1000, '[') + '"'), "nothing thrown");
}

TEST_F(JsonFileTest, LongBrokenTextIsCut) { EXPECT_LT(message_for(std::string(1000000, 'x')).size(), 400u); }

TEST_F(JsonFileTest, MissingFileIsAnInputError) {
  EXPECT_THAT(message_of([&] { (void)read_json_file(path_); }), HasSubstr("cannot read: there is no such file"));
}

}  // namespace
}  // namespace trivium::base
