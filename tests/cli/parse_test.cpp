#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTiny = "trivium simulate --model gpt-tiny --cluster generic-cpu --global-batch 8 ";

bool is_one_error_line(const std::string& text) {
  return text.starts_with("error: ") && text.ends_with("\n") && std::count(text.begin(), text.end(), '\n') == 1;
}

TEST(CommandLine, SaysItsVersionAndHelpOnStandardOutput) {
  const Workplace workplace;
  const std::string version = workplace.run("trivium --version").out;
  EXPECT_THAT(version, StartsWith("trivium "));
  for (const char* line : {"\ncommit  ", "\ncompiler  ", "\nlibraries  CLI11 2.", "nlohmann/json 3."}) {
    EXPECT_THAT(version, HasSubstr(line));
  }
  const Outcome help = workplace.run("trivium plan --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--virtual-stages"));
  EXPECT_EQ(help.err, "");
  for (const char* other : {"trivium help plan", "trivium plan help"}) EXPECT_EQ(workplace.run(other).out, help.out);
}

TEST(CommandLine, TakesAFlagWithAndWithoutItsValue) {
  const Workplace workplace;
  for (const char* flag : {"--sequence-parallel", "--sequence-parallel true", "--sequence-parallel=true"}) {
    const Outcome outcome = workplace.run(std::string(kTiny) + "--tensor 2 " + flag);
    EXPECT_THAT(outcome.out, HasSubstr("TP2 SP PP1")) << flag << outcome.err;
  }
  const Outcome off = workplace.run(std::string(kTiny) + "--tensor 2 --sequence-parallel false");
  EXPECT_THAT(off.out, HasSubstr("TP2 PP1")) << off.err;
}

// Every option that takes a number refuses what is none, in one line, before anything is computed.
TEST(CommandLine, RefusesAbsurdNumbersInOneLine) {
  const Workplace workplace;
  for (const char* option : {"--tensor", "--pipeline", "--data", "--micro-batch", "--global-batch", "--sequence"}) {
    for (const char* value : {"-1", "1e30", "99999999999", "99999999999999999999999", "x", "2.5", "nan", "''"}) {
      const std::string command =
          "trivium simulate --model gpt-tiny --cluster generic-cpu " + std::string(option) + " " + value;
      const Outcome outcome = workplace.run(command);
      EXPECT_EQ(outcome.exit_code, 2) << command;
      EXPECT_TRUE(is_one_error_line(outcome.err)) << command << "\n" << outcome.err;
      EXPECT_EQ(outcome.out, "");
    }
  }
}

TEST(CommandLine, ReportsEveryFailureOnStandardErrorAlone) {
  const Workplace workplace;
  for (const char* command : {"trivium", "trivium nonsense", "trivium plan", "trivium simulate missing.json",
                              "trivium models no-such-model", "trivium profiles no-such-node", "trivium validate",
                              "trivium run --model gpt-tiny --global-batch 8 --corpus missing.txt",
                              "trivium calibrate missing.json -o x.json", "trivium completion tcsh"}) {
    const Outcome outcome = workplace.run(command);
    EXPECT_TRUE(outcome.exit_code == 2 || outcome.exit_code == 3) << command << " " << outcome.exit_code;
    EXPECT_TRUE(is_one_error_line(outcome.err)) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
  }
}

}  // namespace
}  // namespace trivium::cli
