// Ranks that are killed, stopped or run out of disk: the others notice, say who and where, and lose nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Survival : public ::testing::Test {
 protected:
  Survival() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "In the beginning was the Word, and line " + std::to_string(i) + ".\n";
    place_.write("text.txt", text);
  }
  static std::string training(const std::string& more) {
    return "trivium run --model gpt-tiny --cluster this-machine --data 2 --zero-stage 1 --global-batch 4 --micro-batch "
           "1 "
           "--sequence 32 --corpus text.txt --timeline-steps 0 --json " +
           more;
  }
  /// Runs it in the background, does `then` once `steps` steps are done, and waits for the end. `$(pid RANK)`: the
  /// process of a rank, from its flight record.
  Outcome disturbed(const std::string& more, int steps, const std::string& then) const {
    return place_.run(
        "pid() { od -An -t d4 -j 20 -N 4 fl/attempt-${2:-0}/rank-0000$1.flight | tr -d ' '; }\n"
        "steps() { for i in $(seq 1200); do [ \"$(grep -c loss out.txt)\" -ge $1 ] && return; sleep 0.05; "
        "done; }\n" +
        training(more + " --processes 2 --flight-record fl") + " >out.txt & p=$!\nsteps " + std::to_string(steps) +
        "\n" + then + "\nwait $p");
  }
  /// The loss of every step; a step that was done again must have given the same one.
  std::map<int, double> losses(const std::string& text) const {
    std::map<int, double> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const json step = json::parse(line);
      const auto [at, is_new] = all.emplace(step.at("step"), step.at("loss"));
      EXPECT_EQ(at->second, step.at("loss").get<double>()) << "step " << at->first;
    }
    return all;
  }
  Workplace place_;
};

TEST_F(Survival, AKilledRankIsNamedWithItsInstructionAndWhoWaited) {
  const Outcome outcome = disturbed("--steps 1000000", 3, "kill -9 $(pid 1)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the run died with rank 1:\nrank 1 (process "));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 1 .process [0-9]+. died in step [0-9]+, "));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 0 .process [0-9]+. (was ended|gave up).* in step [0-9]+, "));
  EXPECT_THAT(outcome.err, HasSubstr("flight records: fl/attempt-0"));
}

TEST_F(Survival, AStoppedRankIsFoundByTheDeadline) {
  const Outcome outcome = disturbed("--steps 1000000 --deadline 4", 3, "kill -STOP $(pid 1)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("nothing moved for 4.0 s:\nrank 1 (process "));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 1 .process [0-9]+. is stopped in step [0-9]+, "));
  EXPECT_THAT(outcome.err, HasSubstr("waiting for rank 1"));
}

// The short form of the soak: killed twice, and the last loss is that of a run that was left alone.
TEST_F(Survival, ARunThatIsKilledAndBegunAgainEndsWithTheSameLosses) {
  const Outcome calm = place_.run(training("--steps 200"));
  ASSERT_EQ(calm.exit_code, 0) << calm.err;
  const Outcome outcome =
      disturbed("--steps 200 --checkpoint ck --checkpoint-every 10 --max-restarts 4", 5,
                "kill -9 $(pid 1)\n"
                "for i in $(seq 1200); do [ -e fl/attempt-1/rank-00000.flight ] && break; sleep 0.05; done\n"
                "steps $(($(grep -c loss out.txt) + 4))\n"
                "kill -9 $(pid 0 1)");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: beginning again at the last checkpoint (1 of 4)"));
  EXPECT_THAT(outcome.err, HasSubstr("died with rank 1"));
  EXPECT_THAT(outcome.err, HasSubstr("died with rank 0"));
  EXPECT_EQ(losses(place_.read("out.txt")), losses(calm.out));
}

TEST_F(Survival, AnInterruptSavesACheckpoint) {
  const Outcome outcome = disturbed("--steps 1000000 --checkpoint ck", 3, "kill -INT $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  const std::size_t done = losses(place_.read("out.txt")).size();
  EXPECT_EQ(json::parse(place_.run("trivium checkpoint inspect ck --json").out).at("step"), done);
}

TEST_F(Survival, WrongOptionsAreNotTriedAgain) {
  const Outcome ranks = place_.run(training("--processes 3"));
  EXPECT_EQ(ranks.exit_code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("the plan has 2 ranks, --processes says 3"));
  const Outcome restarts = place_.run(training("--processes 2 --max-restarts 3"));
  EXPECT_EQ(restarts.exit_code, 2);
  EXPECT_THAT(restarts.err, HasSubstr("--max-restarts needs --checkpoint DIR"));
  EXPECT_THAT(restarts.err, Not(HasSubstr("the run died")));
}

}  // namespace
}  // namespace trivium::cli
