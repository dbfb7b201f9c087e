#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program/plan/fields.h"
#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kScreen = 50, kColumns = 100;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The commands that help lists, and those of `checkpoint`.
std::vector<std::string> commands(const Workplace& workplace) {
  std::vector<std::string> found;
  bool here = false;
  for (const std::string& line : lines_of(workplace.run("trivium --help").out)) {
    if (here && line.empty()) break;
    if (here) found.push_back(line.substr(2, line.find(' ', 2) - 2));
    here = here || line == "Commands:";
  }
  found.insert(found.end(), {"checkpoint inspect", "checkpoint convert"});
  return found;
}

std::vector<std::string> examples(const std::string& help) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(help)) {
    if (line.starts_with("  trivium ")) found.push_back(line.substr(2));
  }
  return found;
}

TEST(Help, OfEveryCommandFitsAScreenAndEndsInExamples) {
  const Workplace workplace;
  const std::vector<std::string> all = commands(workplace);
  ASSERT_GT(all.size(), 20U);
  for (const std::string& command : all) {
    const Outcome help = workplace.run("trivium " + command + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    const std::vector<std::string> lines = lines_of(help.out);
    EXPECT_LE(lines.size(), kScreen) << command;
    for (const std::string& line : lines) EXPECT_LE(line.size(), kColumns) << line;
    if (command != "checkpoint") {
      EXPECT_FALSE(examples(help.out).empty()) << command;
    }
  }
  EXPECT_LE(lines_of(workplace.run("trivium --help").out).size(), kScreen);
  EXPECT_EQ(workplace.run("trivium help plan").out, workplace.run("trivium plan --help").out);
}

TEST(Help, OfAllOptionsHasThem) {
  const Workplace workplace;
  const std::string whole = workplace.run("trivium plan --help-all").out;
  EXPECT_THAT(workplace.run("trivium plan --help").out, Not(HasSubstr("--clip-norm")));
  for (const program::PlanField& field : program::plan_field_table()) {
    std::string option = std::string("--") + field.name;
    std::replace(option.begin(), option.end(), '_', '-');
    std::replace(option.begin(), option.end(), '.', '-');
    EXPECT_THAT(whole, HasSubstr(option + (field.kind == program::FieldKind::kFlag ? "" : " ")));
  }
  EXPECT_THAT(workplace.run("trivium --help-all").out, HasSubstr("--clip-norm"));
}

// In the order of help, one after another, in a folder with a text and a trainer's log.
TEST(Manuals, ExamplesWork) {
  const Workplace workplace;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "in the beginning was the word ";
  workplace.write("text.txt", text);
  workplace.write("train.log", "training\nstep 1 loss 5.0 seconds 2.5\nstep 2 loss 4.5 seconds 1.5\n");
  for (const std::string& command : commands(workplace)) {
    if (command == "profile") continue;  // measures this machine for as long as it takes
    for (const std::string& example : examples(workplace.run("trivium " + command + " --help").out)) {
      const Outcome outcome = workplace.run(example);
      EXPECT_EQ(outcome.exit_code, 0) << example << "\n" << outcome.err;
    }
  }
}

TEST(Manuals, ArePagesForEveryCommand) {
  const Workplace workplace;
  ASSERT_EQ(workplace.run("mkdir pages && trivium man --folder pages").exit_code, 0);
  for (std::string command : commands(workplace)) {
    std::replace(command.begin(), command.end(), ' ', '-');
    const std::string page = workplace.read("pages/trivium-" + command + ".1");
    EXPECT_THAT(page, HasSubstr(".SH OPTIONS")) << command;
    for (const std::string& line : lines_of(page)) EXPECT_FALSE(line.starts_with('\'')) << line;
  }
  EXPECT_EQ(workplace.run("trivium man plan").exit_code, 0);
  EXPECT_EQ(workplace.run("trivium man plam").exit_code, 2);
}

TEST(Completion, KnowsCommandsOptionsAndValuesInEveryShell) {
  const Workplace workplace;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = workplace.run(std::string("trivium completion ") + shell).out;
    for (const char* word : {"simulate", "virtual-stages", "llama3-8b", "dgx-h100-80gb", "none selective full"}) {
      EXPECT_THAT(script, HasSubstr(word)) << shell;
    }
    EXPECT_THAT(script, Not(HasSubstr("man:"))) << shell;
  }
  // What a user would see after a tab.
  const std::string ask =
      "trivium completion bash > c && bash -c '. ./c; COMP_WORDS=(trivium export --to deep); COMP_CWORD=3; _trivium; "
      "echo \"${COMPREPLY[*]}\"'";
  EXPECT_EQ(workplace.run(ask).out, "deepspeed\n");
}

TEST(Suffixes, StandWhereverTokensOrBytesAreTaken) {
  const Workplace workplace;
  const std::string job =
      "trivium simulate --model gpt2-124m --cluster dgx-a100-80gb --global-batch 64 --data 8 --json ";
  const auto simulated = [&](const std::string& options) {
    return nlohmann::json::parse(workplace.run(job + options).out);
  };
  EXPECT_EQ(simulated("--sequence 1Ki").at("training").at("sequence"), 1024);
  EXPECT_EQ(simulated("--tokens 2b").at("training").at("total_tokens"), 2'000'000'000);
  EXPECT_EQ(simulated("--total-tokens 1.5Gi").at("training").at("total_tokens"), 1'610'612'736);
  EXPECT_EQ(simulated("--bucket-bytes 25MiB").at("plan").at("bucket_bytes"), 26'214'400);
  EXPECT_EQ(simulated("--max-input 2000000").at("plan").at("data"), 8);
  const Outcome doubtful = workplace.run(job + "--sequence 1K");
  EXPECT_EQ(doubtful.exit_code, 2);
  EXPECT_THAT(doubtful.err, HasSubstr("1000 to some and 1 x 1024 to others"));
  EXPECT_EQ(workplace.run(job + "--bucket-bytes 25QB").exit_code, 2);
}

TEST(Schema, OfAPlanHasItsFields) {
  const Workplace workplace;
  const auto schema = nlohmann::json::parse(workplace.run("trivium schema trivium.plan/1").out);
  const auto& fields = schema.at("$defs").at("plan").at("properties");
  EXPECT_EQ(fields.at("zero_stage").at("maximum"), 3);
  EXPECT_EQ(fields.at("offload").at("properties").at("optimizer").at("enum").size(), 3U);
  EXPECT_EQ(schema.at("$defs").at("training").at("properties").at("dropout").at("type"), "number");
  const Outcome unknown = workplace.run("trivium schema plam");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_EQ(unknown.err, "error: unknown schema \"plam\"; did you mean \"plan\"?\n");
}

}  // namespace
}  // namespace trivium::cli
