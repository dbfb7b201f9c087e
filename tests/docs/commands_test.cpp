// Every command that a page shows with "$ " is run, in the order of the page, in one folder for each page, and prints
// what the page shows; every command that a page names exists, with its options.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/cli/process.h"
#include "tests/docs/page.h"
#include "tests/golden.h"

namespace trivium::docs {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TRIVIUM_SOURCE_DIR;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class Page : public testing::TestWithParam<fs::path> {};

// TRIVIUM_UPDATE_GOLDENS=1 writes what was printed into the page, where it showed nothing yet or had no "…".
TEST_P(Page, ShowsWhatItsCommandsPrint) {
  const std::vector<ShownCommand> commands = shown_commands(cli::content_of(GetParam()));
  if (commands.empty()) return;
  const cli::Workplace workplace;
  for (const char* name : {"README.md", "validation", "tests"}) {
    fs::create_symlink(kRoot / name, workplace.folder() / "work" / name);
  }
  std::vector<std::string> page = lines_of(cli::content_of(GetParam()));
  std::size_t moved = 0;  // lines that were added before, in an update
  for (const ShownCommand& command : commands) {
    SCOPED_TRACE(GetParam().lexically_relative(kRoot).string() + ":" + std::to_string(command.line));
    const cli::Outcome outcome = workplace.run("{ " + command.command + "\n} 2>&1");
    std::vector<std::string> printed = lines_of(outcome.out);
    while (!printed.empty() && printed.back().empty()) printed.pop_back();
    EXPECT_EQ(outcome.exit_code, 0) << command.command << "\n" << outcome.out;
    const bool same = shows(command.output, printed);
    if (golden_update() && !same && joined(command.output).find("…") == std::string::npos) {
      const auto at = page.begin() + command.line + std::count(command.command.begin(), command.command.end(), '\n') +
                      static_cast<std::ptrdiff_t>(moved);
      page.insert(page.erase(at, at + static_cast<std::ptrdiff_t>(command.output.size())), printed.begin(),
                  printed.end());
      moved += printed.size() - command.output.size();
    } else {
      EXPECT_TRUE(same) << command.command << "\nprints\n"
                        << joined(printed) << "instead of\n"
                        << joined(command.output);
    }
  }
  if (golden_update()) std::ofstream(GetParam(), std::ios::binary) << joined(page);
}

// Help with all options, by command; empty where there is no such command.
const std::string& help_of(const std::string& command) {
  static std::map<std::string, std::string> known;
  const auto [entry, fresh] = known.try_emplace(command);
  if (fresh) {
    const cli::Outcome outcome = cli::Workplace().run("trivium " + command + " --help-all");
    if (outcome.exit_code == 0) entry->second = outcome.out;
  }
  return entry->second;
}

bool names_option(const std::string& help, const std::string& option) {
  return std::regex_search(help, std::regex("(^|[\\s,])" + option + "($|[\\s,=:\\[])"));
}

TEST_P(Page, NamesCommandsAndOptionsThatExist) {
  static const std::string kScript = cli::content_of(kRoot / "dev");
  static const std::set<std::string> kEverywhere{"--help", "--help-all", "--version"};
  for (const NamedCommand& named : named_commands(cli::content_of(GetParam()))) {
    SCOPED_TRACE(GetParam().lexically_relative(kRoot).string() + ":" + std::to_string(named.line));
    const std::string& command = named.words.front();
    if (named.script) {
      EXPECT_TRUE(
          std::regex_search(kScript, std::regex("\n  ([a-z0-9 |]*[ |])?" + command + "( \\|[a-z0-9 |-]*)?\\) ")))
          << "./dev " << command;
      continue;
    }
    std::string help = help_of(command);
    EXPECT_FALSE(help.empty()) << "no command " << command;
    if (named.words.size() > 1 && !help_of(command + " " + named.words[1]).empty()) {
      help += help_of(command + " " + named.words[1]);  // "checkpoint convert"
    }
    for (const std::string& word : named.words) {
      const std::string option = word.substr(0, word.find('='));
      if (!option.starts_with("-") || option.size() < 2 || kEverywhere.contains(option)) continue;
      EXPECT_TRUE(names_option(help, option)) << command << " has no " << option;
    }
  }
}

TEST_P(Page, LinksToWhatIsThere) {
  for (const Link& link : links(cli::content_of(GetParam()))) {
    SCOPED_TRACE(GetParam().lexically_relative(kRoot).string() + ":" + std::to_string(link.line));
    const fs::path target = link.target.empty() ? GetParam() : GetParam().parent_path() / link.target;
    EXPECT_TRUE(fs::exists(target)) << link.target;
    if (link.anchor.empty() || target.extension() != ".md" || !fs::exists(target)) continue;
    EXPECT_TRUE(anchors(cli::content_of(target)).contains(link.anchor)) << link.target << "#" << link.anchor;
  }
}

std::string page_name(const testing::TestParamInfo<fs::path>& page) {
  std::string name = page.param.lexically_relative(kRoot).replace_extension().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Docs, Page, testing::ValuesIn(pages(kRoot)), page_name);

TEST(ShownOutput, MayLeaveOutLinesAndParts) {
  EXPECT_TRUE(shows({"a", "…", "d"}, {"a", "b", "c", "d"}));
  EXPECT_TRUE(shows({"a", "…"}, {"a"}));
  EXPECT_TRUE(shows({"took … s, … times"}, {"took 1.5 s, 3 times"}));
  EXPECT_FALSE(shows({"took … s"}, {"took 1.5 min"}));
  EXPECT_FALSE(shows({"a"}, {"a", "b"}));
  EXPECT_FALSE(shows({"a", "…", "d"}, {"a", "b"}));
  EXPECT_FALSE(shows({"aa…aa"}, {"aaa"}));
}

TEST(ShownCommands, AreThoseOfConsoleBlocks) {
  const auto commands = shown_commands("```sh\n$ no\n```\n```console\n$ one \\\n> two\nout\n\n$ three\n```\n");
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[0].command, "one \\\ntwo");
  EXPECT_EQ(commands[0].output, std::vector<std::string>{"out"});
  EXPECT_EQ(commands[1].line, 9);
}

TEST(Links, AreFoundWithTheirAnchors) {
  const auto found = links("a [b](c.md) and [d](../e.md#f-g), [h](#i)\n```\n[no](no.md)\n```\n[k](https://x.y/#z)\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].target, "c.md");
  EXPECT_EQ(found[0].anchor, "");
  EXPECT_EQ(found[1].target, "../e.md");
  EXPECT_EQ(found[1].anchor, "f-g");
  EXPECT_EQ(found[2].target, "");
}

TEST(Anchors, AreThoseOfHeadings) {
  EXPECT_EQ(
      anchors("# One\n\n```sh\n# no\n```\n## The host (`simulator/cost/issue.cpp`)\n### D: on an H200, 2026-11-26\n"),
      (std::set<std::string>{"one", "the-host-simulatorcostissuecpp", "d-on-an-h200-2026-11-26"}));
}

TEST(NamedCommands, AreInBlocksAndSpans) {
  const auto calls = named_commands("By `trivium plan --model x` or\n```sh\n./dev test --all  # comment\n```\n");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].words, (std::vector<std::string>{"plan", "--model", "x"}));
  EXPECT_TRUE(calls[1].script);
  EXPECT_EQ(calls[1].words, (std::vector<std::string>{"test", "--all"}));
}

}  // namespace
}  // namespace trivium::docs
