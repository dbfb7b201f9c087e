// What a careless or unlucky user must not lose: checkpoints, inputs, and other files of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NothingLost : public ::testing::Test {
 protected:
  NothingLost() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "In the beginning was the Word, and line " + std::to_string(i) + ".\n";
    place_.write("text.txt", text);
  }
  static std::string training(const std::string& more) {
    return "trivium run --model gpt-tiny --cluster this-machine --global-batch 4 --micro-batch 1 --sequence 32 "
           "--corpus text.txt --timeline-steps 0 " +
           more;
  }
  /// Runs a line that must be refused with the code and these words.
  void refused(const std::string& line, int code, const std::string& words) {
    const Outcome outcome = place_.run(line);
    EXPECT_EQ(outcome.exit_code, code) << line << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << line;
  }
  Outcome done(const std::string& line) {
    const Outcome outcome = place_.run(line);
    EXPECT_EQ(outcome.exit_code, 0) << line << "\n" << outcome.err;
    return outcome;
  }
  std::string listing(const std::string& folder) { return place_.run("ls -A " + folder).out; }
  Workplace place_;
};

TEST_F(NothingLost, ResumeWithDamagedCheckpointsAloneChangesNothing) {
  done(training("--steps 4 --checkpoint ck --checkpoint-every 2"));
  done("truncate -s 100 ck/step-00000002/checkpoint.json ck/step-00000004/checkpoint.json");
  const std::string before = place_.run("find ck -type f | sort | xargs md5sum").out;
  refused(training("--steps 4 --checkpoint ck --checkpoint-every 1 --resume"), 3,
          "ck: none of its checkpoints can be read, and nothing was changed");
  EXPECT_EQ(place_.run("find ck -type f | sort | xargs md5sum").out, before);
}

TEST_F(NothingLost, ResumeFromAMisspeltFolderIsAnError) {
  refused(training("--steps 2 --checkpoint chekpoints --resume"), 3,
          "chekpoints: there is no such folder to resume from");
  EXPECT_EQ(listing("chekpoints 2>&1 | grep -c 'No such file'"), "1\n");
  done("mkdir empty && " + training("--steps 2 --checkpoint empty --resume"));  // where an unattended loop begins
}

TEST_F(NothingLost, ADamagedNewestCheckpointDoesNotPushOutTheGoodOne) {
  done(training("--steps 8 --checkpoint ck --checkpoint-every 4 --keep 2"));
  done("truncate -s 100 ck/step-00000008/rank-00000.safetensors");
  done(training("--steps 6 --checkpoint ck --checkpoint-every 2 --keep 2 --resume"));
  EXPECT_EQ(listing("ck"), "latest\nstep-00000004\nstep-00000006\nstep-00000008\n");
}

TEST_F(NothingLost, AFolderThatCannotBeWrittenIsFoundBeforeTheFirstStep) {
  const Outcome outcome = place_.run("touch file; " + training("--steps 2 --checkpoint file/ck"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("file/ck: "));
  EXPECT_THAT(outcome.out, Not(HasSubstr("loss")));
}

TEST_F(NothingLost, TwoRunsDoNotWriteIntoOneFolder) {
  const Outcome outcome = place_.run(training("--steps 1000000 --checkpoint ck") +
                                     " >out.txt & p=$!\n"
                                     "await $p '[ -s out.txt ]'\n" +
                                     training("--steps 2 --seed 2 --checkpoint ck") +
                                     " >/dev/null; echo second $?; kill -INT $p; wait $p; echo first $?");
  EXPECT_EQ(outcome.out, "second 2\nfirst 130\n") << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ck is being written by process "));
  EXPECT_THAT(listing("ck"), Not(HasSubstr("lock")));
}

TEST_F(NothingLost, ALockLeftBehindIsToldAndTakenOver) {
  done("mkdir ck && printf 'process 1 on %s, since 2026-01-01 00:00:00 UTC' $(hostname) >ck/lock");
  const Outcome outcome = done(training("--steps 1 --checkpoint ck"));
  EXPECT_THAT(outcome.err, HasSubstr("note: ck/lock: left behind by process 1 on "));
  EXPECT_THAT(outcome.err, HasSubstr("taken over"));
  done("rm -r ck; mkdir ck && printf 'process 1 on another.host, since 2026-01-01 00:00:00 UTC' >ck/lock");
  refused(training("--steps 1 --checkpoint ck"), 2, "ck is being written by process 1 on another.host");
  done("touch -d '10 minutes ago' ck/lock; " + training("--steps 1 --checkpoint ck"));
}

TEST_F(NothingLost, NoCommandOverwritesWhatItReads) {
  done("cp text.txt corpus.txt; ln text.txt hard.txt; ln -s text.txt soft.txt");
  done("trivium plan --model gpt-tiny --cluster this-machine --global-batch 4 -o p.json");
  done(training("--steps 2 --checkpoint ck --record run.json"));
  done("printf 'pip\\n' >a.csv; cp p.json m.json");
  const std::string before = place_.run("md5sum *.* ck/*/*").out;
  const std::string is_input = "is one of the inputs; give another file";
  for (const char* name : {"text.txt", "./text.txt", "hard.txt", "soft.txt"}) {
    refused(training(std::string("--steps 1 --record ") + name), 2, is_input);
    refused(training(std::string("--steps 1 --trace ") + name), 2, is_input);
  }
  refused(training("--steps 1 --validation corpus.txt --record corpus.txt"), 2, is_input);
  refused("trivium tokenize text.txt -o text.txt", 2, is_input);
  refused("trivium simulate p.json --trace p.json", 2, is_input);
  refused("trivium export p.json --to megatron -o p.json", 2, is_input);
  refused("trivium report p.json -o p.json", 2, is_input);
  refused("trivium replan run.json -o run.json", 2, is_input);
  refused("trivium import text.txt -o text.txt", 2, is_input);
  refused("trivium validate --runs a.csv --csv a.csv", 2, is_input);
  refused("trivium plan --model m.json -o m.json", 2, is_input);
  refused("trivium plan --model gpt-tiny --cluster m.json:2+p.json:1 -o m.json", 2, is_input);
  refused("trivium checkpoint convert ck ck/step-00000002/rank-00000.safetensors", 2, "lies inside ck, which is read");
  refused(training("--steps 1 --record same.json --trace same.json"), 2, "are one file; give two");
  EXPECT_EQ(place_.run("md5sum *.* ck/*/*").out, before);
}

TEST_F(NothingLost, AnOutputOfAnotherKindIsReplacedOnlyByForce) {
  place_.write("thesis.txt", "Chapter 1\n");
  const std::string plan = "trivium plan --model gpt-tiny --cluster this-machine --global-batch 4 -o ";
  refused(plan + "thesis.txt", 2, "-o thesis.txt exists and is not a plan file; --force replaces it");
  refused(training("--steps 1 --record thesis.txt"), 2, "is not a run record");
  EXPECT_EQ(place_.read("thesis.txt"), "Chapter 1\n");
  done(plan + "p.json && " + plan + "p.json");  // a plan over a plan
  refused("trivium simulate --model gpt-tiny --cluster this-machine --global-batch 4 --trace p.json", 2, "not a trace");
  done(plan + "thesis.txt --force");
  done(training("--steps 1 --record r.json --trace t.json") + " && " +
       training("--steps 1 --record r.json --trace t.json"));
  done("trivium report p.json -o page.html && trivium report p.json -o page.html");
  done("trivium export p.json --to megatron -o l.sh && trivium export p.json --to nemo -o l.sh");
  done("trivium tokenize text.txt -o t.bin && trivium tokenize text.txt -o t.bin");
}

TEST_F(NothingLost, AClosedOrFullStreamEndsNoTraining) {
  const Outcome closed = place_.run(training("--steps 5 --checkpoint closed") + " | head -1");
  EXPECT_THAT(closed.err, HasSubstr("the training goes on"));
  EXPECT_EQ(listing("closed"), "latest\nstep-00000005\n");
  const Outcome full = place_.run(training("--steps 5 --checkpoint full") + " >/dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("steps from 0 on could not be written to standard output"));
  EXPECT_EQ(listing("full"), "latest\nstep-00000005\n");
  EXPECT_EQ(place_.run(training("--steps 5 --checkpoint mute") + " 2>/dev/full >/dev/null").exit_code, 0);
  EXPECT_EQ(place_.run("trivium simulate nothere 2>/dev/full").exit_code, 3);
  EXPECT_EQ(place_.run("trivium simulate nothere 2>&-").exit_code, 3);
  EXPECT_EQ(place_.run("trivium models >&-").exit_code, 1);
}

// With stderr closed the first file a program opens gets its number: no message may end up in it.
TEST_F(NothingLost, NoMessageIsWrittenIntoAFileThatGotTheNumberOfAStream) {
  place_.run(training("--steps 1 --checkpoint ck --record r.json") + " 2>&- >&-");
  EXPECT_THAT(place_.read("r.json"), ::testing::StartsWith("{"));
  EXPECT_THAT(place_.read("r.json"), Not(HasSubstr("note:")));
}

TEST_F(NothingLost, ATrainingInThreadsListensForNobody) {
  const Outcome outcome = place_.run("(exec " + training("--steps 1000000 --data 2") +
                                     ") >out.txt & p=$!; await $p '[ -s out.txt ]'\n"
                                     "[ -e /proc/$p/net/tcp ] && foreign_listeners $p; kill -INT $p; wait $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST_F(NothingLost, AHangupSavesACheckpoint) {
  const Outcome outcome = place_.run("(exec " + training("--steps 1000000 --checkpoint ck --record r.json") +
                                     ") >out.txt & p=$!\n"
                                     "await $p '[ -s out.txt ]'\nkill -HUP $p; kill -HUP $p; wait $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(listing("ck"), HasSubstr("step-"));
  EXPECT_THAT(place_.read("r.json"), HasSubstr("trivium.run/1"));
}

TEST_F(NothingLost, AConversionThatFindsNoRoomLeavesNothingBehind) {
  done(training("--steps 2 --checkpoint ck"));
  const Outcome outcome = place_.run("ulimit -f 200; trivium checkpoint convert ck nd; code=$?; ls -A nd; exit $code");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("cannot write: File too large"));
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace trivium::cli
