// The files of stacks/ against the traits that they had as functions, the reader's errors, and
// docs/reference/stacks.md against the files.
#include "program/plan/stack_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "program/plan/stack_flags.h"
#include "tests/golden.h"

namespace trivium::program {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;

/// A folder of stacks of its own.
class StackFolder : public testing::Test {
 protected:
  StackFolder()
      : folder_(fs::path(testing::TempDir()) /
                fmt::format("stacks-{}", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~StackFolder() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& members) {
    base::write_file_atomically(
        folder_ / (name + ".json"),
        fmt::format(R"({{"schema": "trivium.stack/1", "name": "{}", "description": "A stack"{}}})", name, members));
  }
  std::vector<StackFile> read() const {
    const std::vector<fs::path> folders{folder_};
    return read_stacks(folders);
  }
  /// What the reader says of the folder, without the folder's own path.
  std::string error() const {
    try {
      (void)read();
    } catch (const base::Failure& failure) {
      const std::string text = failure.error().message;
      const std::size_t at = text.find(folder_.string());
      return at == std::string::npos ? text : text.substr(at + folder_.string().size() + 1);
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(StackFolder, HoldsDefaultsWhereAFileIsSilent) {
  write("plain", "");
  const std::vector<StackFile> stacks = read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].traits.name, "plain");
  EXPECT_TRUE(stacks[0].sources.empty());
  for (const StackFlag& flag : stack_flags()) EXPECT_EQ(flag.text(stacks[0].traits), flag.text({})) << flag.name;
}

TEST_F(StackFolder, BuildsAStackOnItsBase) {
  write("old", R"(, "family": "f", "issue": 2, "logit_bytes": 4, "sources": {"/issue": "a", "/logit_bytes": "b"})");
  write("new", R"(, "base": "old", "issue": 0.5, "expert_dispatch": "deepep",
                  "sources": {"/issue": "c", "/expert_dispatch": "d"})");
  write("newer", R"(, "base": "new", "family": "")");
  const std::vector<StackFile> stacks = read();
  ASSERT_EQ(stacks.size(), 3U);  // new, newer, old
  EXPECT_EQ(stacks[0].traits.issue, 0.5);
  EXPECT_EQ(stacks[0].traits.logit_bytes, 4);
  EXPECT_EQ(stacks[0].traits.expert_dispatch, ExpertDispatch::kDeepEp);
  EXPECT_EQ(stacks[0].traits.family, "f");
  EXPECT_EQ(stacks[0].sources.at("issue"), "c");
  EXPECT_EQ(stacks[0].sources.at("logit_bytes"), "base old: b");
  EXPECT_THAT(stacks[1].bases, ElementsAre("new", "old"));
  EXPECT_EQ(stacks[1].traits.family, "");
  EXPECT_EQ(stacks[1].sources.at("issue"), "base new: c");
  EXPECT_EQ(stacks[1].sources.at("logit_bytes"), "base old: b");
}

TEST_F(StackFolder, PrefersTheFirstOfTwoFolders) {
  write("twice", R"(, "issue": 2, "sources": {"/issue": "first"})");
  const fs::path second = folder_ / "second";
  fs::create_directories(second);
  base::write_file_atomically(second / "twice.json", "not even JSON");
  const std::vector<fs::path> folders{folder_, second};
  const std::vector<StackFile> stacks = read_stacks(folders);
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].traits.issue, 2);
}

TEST_F(StackFolder, RefusesAFlagWithoutASource) {
  write("bare", R"(, "issue": 2)");
  EXPECT_EQ(error(), R"(bare.json#/issue: no source; add "/issue": "where the value comes from" to sources)");
  write("bare", R"(, "issue": 2, "logit_bytes": 4)");
  EXPECT_EQ(
      error(),
      R"(bare.json#: no source for /issue, /logit_bytes; add each to sources, as "/issue": "where the value comes from")");
}

TEST_F(StackFolder, RefusesASourceWithoutAFlag) {
  write("loose", R"(, "sources": {"/issue": "a"})");
  EXPECT_THAT(error(), testing::StartsWith(R"(loose.json#/sources/~1issue: "/issue" points at no constant)"));
}

TEST_F(StackFolder, RefusesMembersValuesAndNamesThatItDoesNotKnow) {
  write("odd", R"(, "isue": 2)");
  EXPECT_THAT(error(), EndsWith(R"(did you mean "issue"?)"));
  write("odd", R"(, "issue": 11, "sources": {"/issue": "a"})");
  EXPECT_EQ(error(), "odd.json#/issue: 11 is not within 0 to 10");
  write("odd", R"(, "peer_buffers": 1, "sources": {"/peer_buffers": "a"})");
  EXPECT_THAT(error(), testing::StartsWith("odd.json#/peer_buffers: "));
  write("odd", R"(, "expert_dispatch": "stack", "sources": {"/expert_dispatch": "a"})");
  EXPECT_THAT(error(), testing::StartsWith("odd.json#/expert_dispatch: "));
  base::write_file_atomically(folder_ / "odd.json",
                              R"({"schema": "trivium.stack/1", "name": "even", "description": "A stack"})");
  EXPECT_EQ(error(), R"(odd.json#/name: found "even"; a stack is named as its file, "odd")");
  base::write_file_atomically(folder_ / "odd.json", R"({"schema": "trivium.device/1"})");
  EXPECT_EQ(error(), R"(odd.json#/schema: found "trivium.device/1"; expected "trivium.stack/1")");
}

TEST_F(StackFolder, RefusesBasesThatDoNotEnd) {
  write("a", R"(, "base": "another")");
  EXPECT_EQ(error(), R"(a.json#/base: unknown stack "another"; known: a)");
  write("a", R"(, "base": "b")");
  EXPECT_EQ(error(), R"(a.json#/base: unknown stack "b"; did you mean "a"?)");
  write("b", R"(, "base": "a")");
  EXPECT_EQ(error(), "b.json#/base: bases go round in a circle: a, then b, then a; give one of them no base");
}

TEST(StackFlags, AreTheMembersOfStackTraits) {
  std::ifstream stream(fs::path(TRIVIUM_SOURCE_DIR) / "program/plan/stack.h");
  std::stringstream header;
  header << stream.rdbuf();
  const std::string text = header.str();
  static const std::regex kMember(R"re(\n  (bool|int|double|std::int64_t|ExpertDispatch) (\w+) =)re");
  std::set<std::string> members, flags;
  for (std::sregex_iterator match(text.begin(), text.end(), kMember), end; match != end; ++match) {
    members.insert((*match)[2]);
  }
  for (const StackFlag& flag : stack_flags()) EXPECT_TRUE(flags.insert(flag.name).second) << flag.name;
  EXPECT_EQ(members, flags);
  EXPECT_EQ(members.size(), 47U);
}

/// The stacks that a record of traits names: lines that are not indented.
std::vector<std::string> recorded_names(const fs::path& record) {
  std::vector<std::string> names;
  std::ifstream stream(record);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(' ')) names.push_back(line);
  }
  return names;
}

/// Every trait of every stack that was a function of program/plan/stack.cpp until 2026-11-28, as it was there.
TEST(Stacks, HaveTheTraitsThatWereRecorded) {
  const fs::path record = fs::path(TRIVIUM_SOURCE_DIR) / "tests/program/plan/stacks.txt";
  const std::vector<std::string> names = recorded_names(record);
  EXPECT_EQ(names.size(), 29U);
  std::string text;
  for (const std::string& name : names) {
    const StackTraits* stack = find_stack(name);
    ASSERT_NE(stack, nullptr) << name;
    text += fmt::format("{}\n  family {}\n", name, stack->family);
    for (const StackFlag& flag : stack_flags()) {
      text += std::visit(
          [&]<class Value>(Value StackTraits::*at) {
            if constexpr (std::is_same_v<Value, double>) {
              return fmt::format("  {} {:a}\n", flag.name, stack->*at);
            } else {
              return fmt::format("  {} {}\n", flag.name, static_cast<long long>(stack->*at));
            }
          },
          flag.member);
    }
  }
  expect_golden(record, text);
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// Text in lines of at most a hundred columns.
std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string lines;
  std::size_t column = 0;
  for (std::string word; words >> word;) {
    if (column > 0 && column + 1 + word.size() > 100) {
      lines += '\n';
      column = 0;
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

/// A link to the section of a stack: headings lose their dots in anchors.
std::string section_of(const std::string& stack) {
  std::string anchor = stack;
  std::erase(anchor, '.');
  return fmt::format("[{}](#{})", stack, anchor);
}

std::string stacks_page() {
  std::string text =
      "# Stacks\n\n"
      "A stack is the software that executes a plan, as far as it changes time and memory: `--stack` and\n"
      "the plan's field `stack` name one. Each is a JSON file, `stacks/NAME.json`, in which every flag has\n"
      "a source; flags that a file does not set are those of its base, or have their defaults.\n"
      "`trivium stacks NAME` prints one. To add a stack, add its file, here or in the user's data folder\n"
      "(`stacks/NAME.json` next to `profiles/`); nothing is compiled. This page is written from the files\n"
      "and from the table of flags (`tests/program/plan/stack_file_test.cpp`).\n\n"
      "| stack | base | family | description |\n|---|---|---|---|\n";
  for (const StackFile& file : stack_files()) {
    const std::string base = file.bases.empty() ? "" : section_of(file.bases.front());
    text +=
        fmt::format("| `{}` | {} | {} | {} |\n", file.traits.name, base, file.traits.family, escaped(file.description));
  }
  text +=
      "\nStacks of one family are editions of one trainer, whose predictions err alike.\n\n## Flags\n\n"
      "| flag | values | default | meaning |\n|---|---|---|---|\n";
  for (const StackFlag& flag : stack_flags()) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", flag.name, flag.values(), flag.text({}), flag.help);
  }
  for (const StackFile& file : stack_files()) {
    text += fmt::format("\n## {}\n\n{}\n", file.traits.name, wrapped(file.description + "."));
    if (!file.bases.empty()) text += fmt::format("\nBase: {}.\n", section_of(file.bases.front()));
    std::string rows;
    for (const StackFlag& flag : stack_flags()) {
      const auto source = file.sources.find(flag.name);
      if (source == file.sources.end() || source->second.starts_with("base ")) continue;
      rows += fmt::format("| `{}` | {} | {} |\n", flag.name, flag.text(file.traits), escaped(source->second));
    }
    if (!rows.empty()) text += "\n| flag | value | source |\n|---|---|---|\n" + rows;
  }
  return text;
}

TEST(Stacks, AreDocumentedAsTheirFilesSay) {
  expect_golden(fs::path(TRIVIUM_SOURCE_DIR) / "docs/reference/stacks.md", stacks_page());
}

}  // namespace
}  // namespace trivium::program
