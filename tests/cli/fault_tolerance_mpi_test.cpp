// Ranks that are killed, stopped or run out of disk: the others notice, say who and where, and lose nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

class FaultTolerance : public ::testing::Test {
 protected:
  FaultTolerance() {
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
  /// process of a rank, from its flight record. `within`: words before the command.
  Outcome disturbed(const std::string& more, int steps, const std::string& then, const std::string& within = "") const {
    return place_.run(
        "pid() { od -An -t d4 -j 20 -N 4 fl/attempt-${2:-0}/rank-0000$1.flight | tr -d ' '; }\n"
        // There before anyone counts its lines: the shell's child makes it when it gets to run.
        "steps() { await $p \"[ \\$(grep -c loss out.txt) -ge $1 ]\"; }\n: >out.txt\n" +
        within + training(more + " --processes 2 --flight-record fl") + " >out.txt & p=$!\nsteps " +
        std::to_string(steps) + "\n" + then + "\nwait $p");
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

TEST_F(FaultTolerance, AKilledRankIsNamedWithItsInstructionAndWhoWaited) {
  const Outcome outcome = disturbed("--steps 1000000", 3, "kill -9 $(pid 1)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the run died with rank 1:\nrank 1 (process "));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 1 .process [0-9]+. died in step [0-9]+, "));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 0 .process [0-9]+. (was ended|gave up).* in step [0-9]+, "));
  EXPECT_THAT(outcome.err, HasSubstr("flight records: fl/attempt-0"));
}

TEST_F(FaultTolerance, AStoppedRankIsFoundByTheDeadline) {
  const Outcome outcome = disturbed("--steps 1000000 --deadline 10", 3, "kill -STOP $(pid 1)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("nothing moved for 10.0 s:\nrank 1 (process "));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 1 .process [0-9]+. is stopped in step [0-9]+, "));
  EXPECT_THAT(outcome.err, HasSubstr("waiting for rank 1"));
}

// The short form of the soak: killed twice, and the last loss is that of a run that was left alone.
TEST_F(FaultTolerance, ARunThatIsKilledAndBegunAgainEndsWithTheSameLosses) {
  const Outcome calm = place_.run(training("--steps 200"));
  ASSERT_EQ(calm.exit_code, 0) << calm.err;
  const Outcome outcome = disturbed("--steps 200 --checkpoint ck --checkpoint-every 10 --max-restarts 4", 15,
                                    "kill -9 $(pid 1)\n"
                                    "await $p '[ -e fl/attempt-1/rank-00000.flight ]'\n"
                                    "steps $(($(grep -c loss out.txt) + 4))\n"
                                    "kill -9 $(pid 0 1)");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: beginning again at the last checkpoint (1 of 4)"));
  EXPECT_THAT(outcome.err, HasSubstr("died with rank 1"));
  EXPECT_THAT(outcome.err, HasSubstr("died with rank 0"));
  EXPECT_EQ(losses(place_.read("out.txt")), losses(calm.out));
}

TEST_F(FaultTolerance, AnInterruptSavesACheckpoint) {
  const Outcome outcome = disturbed("--steps 1000000 --checkpoint ck", 3, "kill -INT $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  const std::size_t done = losses(place_.read("out.txt")).size();
  EXPECT_EQ(json::parse(place_.run("trivium checkpoint inspect ck --json").out).at("step"), done);
}

// A closed terminal or a kill of the supervisor: nobody watches any more, so the ranks save what they have and end.
TEST_F(FaultTolerance, RanksWhoseSupervisorIsKilledSaveACheckpointAndEnd) {
  const Outcome outcome =
      disturbed("--steps 1000000 --checkpoint ck", 3, "r=$(pid 0); kill -9 $p; await $r false; echo gone");
  EXPECT_EQ(outcome.out, "gone\n") << outcome.err;  // orphans would train on for hours
  EXPECT_EQ(place_.run("trivium checkpoint inspect ck").exit_code, 0);
}

TEST_F(FaultTolerance, AHangupOfTheSupervisorSavesACheckpoint) {
  const Outcome outcome = disturbed("--steps 1000000 --checkpoint ck", 3, "kill -HUP $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(place_.run("trivium checkpoint inspect ck").exit_code, 0);
}

TEST_F(FaultTolerance, AReaderThatLeavesEndsNoTraining) {
  const Outcome outcome = place_.run(training("--steps 20 --processes 2 --checkpoint ck") + " | head -1");
  EXPECT_THAT(outcome.err, HasSubstr("note: cannot write to standard output: Broken pipe; the training goes on"));
  EXPECT_EQ(json::parse(place_.run("trivium checkpoint inspect ck --json").out).at("step"), 20);
}

// Two killed ranks and a killed mpirun leave no segments of shared memory and no temporary folders. Segments that a
// process still maps are those of other tests, which come and go while this one runs.
TEST_F(FaultTolerance, KilledRanksLeaveNothingBehind) {
  place_.run(
      "mkdir tmp; echo 'for f in /dev/shm/trivium-run-* /dev/shm/vader_segment.* tmp/*; do\n"
      "[ ! -O $f ] || grep -qs \" $f\" /proc/[0-9]*/maps || grep -qsx $f before || echo $f; done' >left.sh; "
      "sh left.sh >before");
  const Outcome outcome = place_.run("export TMPDIR=$PWD/tmp\n" + training("--steps 1000000 --processes 2") +
                                     " >out.txt & p=$!\n"
                                     "await $p '[ -s out.txt ]'\n"
                                     "kill -9 $(cat /proc/$p/task/*/children); wait $p");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  std::string left;
  for (int look = 0; look < 20; ++look) {  // another test's may be seen before they are mapped, or on their way out
    left = place_.run("sleep 0.2; sh left.sh").out;
    if (left.empty()) break;
  }
  EXPECT_EQ(left, "");
}

// The folder of flight records may be a thesis' as well.
TEST_F(FaultTolerance, FlightRecordsRemoveNothing) {
  place_.run("mkdir -p fl/attempt-0 && echo thesis >fl/attempt-0/thesis.txt");
  const Outcome outcome = place_.run(training("--steps 2 --processes 2 --flight-record fl"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(place_.read("fl/attempt-0/thesis.txt"), "thesis\n");
  EXPECT_EQ(place_.run("ls fl/attempt-1").out, "rank-00000.flight\nrank-00001.flight\n");
}

// A record names a process of somebody else's: the one that is asked to stop is looked for among the own ones.
TEST_F(FaultTolerance, AForgedRecordGetsNobodySignalled) {
  const Outcome outcome =
      disturbed("--steps 1000000 --checkpoint ck", 3,
                "sleep 1000 & v=$!\n"
                "cp fl/attempt-0/rank-00000.flight f; "
                "printf \"$(printf '\\\\x%02x' $((v & 255)) $((v >> 8 & 255)) $((v >> 16 & 255)) 0)\" | "
                "dd of=f bs=1 seek=20 conv=notrunc 2>/dev/null\n"
                "mv f fl/attempt-0/rank-00000.flight; kill -INT $p; sleep 1\n"
                "kill -0 $v && echo spared; kill $v; kill -KILL $p");
  EXPECT_THAT(outcome.out, HasSubstr("spared"));
}

TEST_F(FaultTolerance, WordsBehindTheLastOptionReachTheRanks) {
  ASSERT_EQ(place_
                .run("trivium plan --model gpt-tiny --cluster this-machine --ranks 2 --fix data=2 --global-batch 4 "
                     "--sequence 32 -o plan.json")
                .exit_code,
            0);
  const Outcome outcome = place_.run("trivium run --corpus text.txt --steps 1 --processes 2 -- plan.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(FaultTolerance, ATemporaryFolderThatIsNoneIsNamed) {
  const Outcome outcome = place_.run("TMPDIR=/nonexistent " + training("--steps 1 --processes 2"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("TMPDIR=/nonexistent: there is no such folder"));
}

// Of the supervisor, mpirun and the ranks; it must have found mpirun and both ranks to count.
constexpr const char* kListeners =
    "m=$(cat /proc/$p/task/*/children); for q in $m $(pid 0) $(pid 1); do readlink /proc/$q/fd/* | grep -q socket && "
    "echo sockets; done; foreign_listeners $p $m $(pid 0) $(pid 1); kill -INT $p";

TEST_F(FaultTolerance, NothingListensForOtherHosts) {
  EXPECT_EQ(disturbed("--steps 1000000", 3, kListeners).out, "sockets\nsockets\nsockets\n");
}

// Words before a command that is allowed no network namespace, which a user namespace may be told of itself.
constexpr const char* kWithoutOwnNetwork =
    "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && exec \"$@\"' sh ";

TEST_F(FaultTolerance, NothingListensForOtherHostsWithoutANetworkOfItsOwn) {
  const std::string without = kWithoutOwnNetwork;
  if (const Outcome made = place_.run(without + "true"); made.exit_code != 0) {
    GTEST_SKIP() << "no user namespace that forbids network namespaces can be made here: " << made.err;
  }
  ASSERT_NE(place_.run(without + "unshare -n true").exit_code, 0);
  EXPECT_EQ(disturbed("--steps 1000000", 3, kListeners, without).out, "sockets\nsockets\nsockets\n");
}

// As one that found no room for what its processes share.
TEST_F(FaultTolerance, AnMpirunWithoutRanksIsEnded) {
  place_.run("mkdir bin; printf '#!/bin/sh\\nexec sleep 100000\\n' >bin/mpirun; chmod +x bin/mpirun");
  const Outcome outcome = place_.run("PATH=$PWD/bin:$PATH " + training("--steps 1 --processes 2"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("note: mpirun has had no rank for 30 s and is ended"));
  EXPECT_THAT(outcome.err, HasSubstr("mpirun ended with code 137 before any rank began"));
}

// Bytes of a stranger's at mpirun's ports cost one line, not one each. In this network, where they can be reached.
TEST_F(FaultTolerance, AStrangerAtThePortsCostsOneLine) {
  const std::string without = kWithoutOwnNetwork;
  if (const Outcome made = place_.run(without + "true"); made.exit_code != 0) {
    GTEST_SKIP() << "no user namespace that forbids network namespaces can be made here: " << made.err;
  }
  const Outcome outcome =
      disturbed("--steps 1000000 --checkpoint ck", 3,
                "python3 - $p $(cat /proc/$p/task/*/children) <<'END'\n"
                "import os, socket, sys\n"
                "def ports(process):\n"
                "    mine = {os.readlink(e.path)[8:-1] for e in os.scandir(f'/proc/{process}/fd')}\n"
                "    rows = [r.split() for r in open(f'/proc/{process}/net/tcp')][1:]\n"
                "    return [int(r[1].split(':')[1], 16) for r in rows if r[3] == '0A' and r[9] in mine]\n"
                "for port in [port for process in sys.argv[1:] for port in ports(process)]:\n"
                "    for i in range(50):\n"
                "        try:\n"
                "            with socket.create_connection(('127.0.0.1', port), 5) as s:\n"
                "                s.sendall(b'\\xff' * 4096)\n"
                "        except OSError: break\n"
                "    print('a port')\n"
                "END\n"
                "steps $(($(grep -c loss out.txt) + 2)); kill -INT $p",
                without);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("a port"));
  EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3) << outcome.err;
}

TEST_F(FaultTolerance, WrongOptionsAreNotTriedAgain) {
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
