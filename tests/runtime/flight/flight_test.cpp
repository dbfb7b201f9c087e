// Records that outlive their process, and what they tell.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/error.h"
#include "runtime/backend.h"
#include "runtime/executor/train.h"
#include "runtime/flight/report.h"
#include "runtime/flight/watchdog.h"
#include "runtime/told_by.h"
#include "tests/program/jobs.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::flight {
namespace {

using checkpoint::Folder;

program::Program pipeline_of_two() {
  program::Plan plan;
  plan.pipeline = 2;
  plan.data = 2;
  return checkpoint::verified_program(checkpoint::small_job(plan));
}

TEST(FlightRecord, KeepsTheLatestEntriesInOrder) {
  const Folder folder;
  Ring ring(folder.path(), 3, 8, 42);
  for (std::int32_t i = 0; i < 3000; ++i) ring.note(Doing::kCompute, i, 7, i, 2);
  const Log log = read_log(folder.path() / "rank-00003.flight");
  EXPECT_EQ(log.rank, 3);
  EXPECT_EQ(log.ranks, 8);
  EXPECT_EQ(log.pid, ::getpid());
  EXPECT_EQ(log.program_hash, 42u);
  EXPECT_EQ(log.count, 3001u);  // one says that it starts
  ASSERT_EQ(log.entries.size(), 1024u);
  EXPECT_EQ(log.entries.front().task, 3000 - 1024);
  EXPECT_EQ(log.entries.back().task, 2999);
  EXPECT_EQ(log.entries.back().step, 7);
}

TEST(FlightRecord, OutlivesAKilledProcess) {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Ring ring(folder.path(), 0, 1, 0);
    ring.note(Doing::kCollective, 5, 9, 1, 4);
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Log log = read_log(folder.path() / ring_name(0));
  EXPECT_EQ(log.end, End::kNone);
  EXPECT_EQ(log.entries.back().doing, Doing::kCollective);
  EXPECT_EQ(log.entries.back().step, 9);
  EXPECT_EQ(process_state(child), std::nullopt);
}

TEST(FlightRecord, TheFirstWordOnTheEndCounts) {
  const Folder folder;
  Ring ring(folder.path(), 0, 1, 0);
  ring.ended(End::kFailed, "the disk is full");
  ring.ended(End::kWell);
  const Log log = read_log(folder.path() / ring_name(0));
  EXPECT_EQ(log.end, End::kFailed);
  EXPECT_EQ(log.message, "the disk is full");
}

TEST(FlightRecord, TornAndForeignFilesAreRefusedAndLeftOut) {
  const Folder folder;
  { const Ring ring(folder.path(), 0, 2, 0); }
  const auto path = folder.path() / ring_name(1);
  std::ofstream(path) << "TRVFLGHT";
  EXPECT_THROW(read_log(path), base::Failure);
  EXPECT_EQ(read_logs(folder.path()).size(), 1u);
}

// Two stages, two replicas; ranks with tensor, context, data, pipeline from the fastest: rank 2 is stage 1 of replica
// 0.
TEST(FlightReport, NamesTheDeadTheInstructionAndTheWaiting) {
  const program::Program program = pipeline_of_two();
  const program::Role& last = program.roles[1];
  std::int32_t receive = 0;
  while (last.tasks[static_cast<std::size_t>(receive)].kind != program::TaskKind::kRecv) ++receive;
  const std::int32_t transfer = last.tasks[static_cast<std::size_t>(receive)].transfer;
  const Folder folder;
  {
    Ring stage0(folder.path(), 0, 4, 0), other(folder.path(), 1, 4, 0), stage1(folder.path(), 2, 4, 0),
        replica(folder.path(), 3, 4, 0);
    stage0.note(Doing::kCompute, 10, 12, 0, 1);
    stage1.note(Doing::kTransfer, 11, 12, receive);
    stage1.ended(End::kTerminated);
    other.note(Doing::kLoss, 11, 12);
    other.ended(End::kTerminated);
    replica.note(Doing::kLoss, 11, 12);
    replica.ended(End::kFailed, "a message was cut off");
  }
  const Finding finding = explain_death(program, read_logs(folder.path()));
  EXPECT_EQ(finding.culprits, std::vector<int>{0});
  const auto has = [&](const std::string& text) {
    EXPECT_NE(finding.text.find(text), std::string::npos) << text << "\nis not in\n" << finding.text;
  };
  EXPECT_EQ(finding.text.find("rank 0 "), 0u) << finding.text;
  has("died in step 12, forward chunk 0 micro-batch 0, embedding: ");
  has("(task 0, op 1)");
  has("was ended in step 12, recv chunk 0 micro-batch 0: transfer " + std::to_string(transfer));
  has(", waiting for rank 0\n");
  has("was ended in step 12, loss, waiting for ranks 0, 2\n");
  has("gave up (a message was cut off) in step 12, loss");
}

// The dead rank had entered the collective too; the others wait for it all the same.
TEST(FlightReport, WhoDiedInTheSameCollectiveIsWaitedFor) {
  const program::Program program = pipeline_of_two();
  const Folder folder;
  {
    Ring first(folder.path(), 0, 2, 0), second(folder.path(), 1, 2, 0);
    for (Ring* ring : {&first, &second}) ring->note(Doing::kLoss, 10, 6);
    first.ended(End::kTerminated);
  }
  const Finding finding = explain_death(program, read_logs(folder.path()));
  EXPECT_EQ(finding.culprits, std::vector<int>{1});
  EXPECT_NE(finding.text.find("was ended in step 6, loss, waiting for ranks 1, 2, 3"), std::string::npos)
      << finding.text;
}

// Ranks look between all steps whether a checkpoint is due, so none is claimed.
TEST(FlightReport, WhoDiedBetweenStepsIsNotSaidToSave) {
  const program::Program program = pipeline_of_two();
  EXPECT_EQ(describe(program, 0, {.doing = Doing::kCheckpoint, .step = 44}),
            "step 44, not begun: between steps, where a checkpoint is written when it is due");
}

TEST(Failures, NameTheRankTheyCameFromOnce) {
  EXPECT_EQ(told_by(1, "ck: No space left on device"), "rank 1: ck: No space left on device");
  EXPECT_EQ(told_by(1, "rank 12: ck: No space left on device"), "rank 12: ck: No space left on device");
  EXPECT_EQ(told_by(1, "rank 12 lowered another program"), "rank 1: rank 12 lowered another program");
  EXPECT_EQ(told_by(0, "rank : "), "rank 0: rank : ");
  EXPECT_EQ(told_by(0, "rank"), "rank 0: rank");
}

// A rank that gave a reason is the one to name when nobody vanished.
TEST(FlightReport, WithoutADeadRankTheOneThatGaveUpIsNamed) {
  const program::Program program = pipeline_of_two();
  const Folder folder;
  {
    Ring first(folder.path(), 0, 2, 0), second(folder.path(), 1, 2, 0);
    first.ended(End::kTerminated);
    second.ended(End::kFailed, "rank 1: cannot write: No space left on device");
  }
  const Finding finding = explain_death(program, read_logs(folder.path()));
  EXPECT_EQ(finding.culprits, std::vector<int>{1});
  EXPECT_NE(finding.text.find("gave up (rank 1: cannot write: No space left on device)"), std::string::npos);
}

// Rank 1 stands still in a kernel, rank 0 waits for it at the start of the next step.
TEST(Watchdog, NamesTheRankThatStandsStill) {
  const program::Program program = pipeline_of_two();
  const Folder folder;
  Ring waiting(folder.path(), 0, 2, 0), stuck(folder.path(), 1, 2, 0);
  waiting.note(Doing::kStepStart, now_ns(), 4);
  stuck.note(Doing::kCompute, now_ns(), 3, 0, 1);
  std::promise<std::string> told;
  const Watchdog watchdog(folder.path(), program, 0, std::chrono::milliseconds(300),
                          [&](const std::string& why) { told.set_value(why); });
  const std::string why = told.get_future().get();
  EXPECT_EQ(why.find("nothing moved for 0.3 s:\nrank 1 "), 0u) << why;
  EXPECT_NE(why.find("in step 4, step start, waiting for ranks 1, 2, 3"), std::string::npos) << why;
}

// A real run on threads: the record's last entries are what the executor did last.
TEST(FlightRecord, FollowsTheExecutor) {
  const program::Program program = pipeline_of_two();
  const auto corpus = testing::toy_corpus(4000, 61);
  const Folder folder;
  TrainOptions options;
  options.steps = 2;
  options.timeline_steps = 0;
  options.flight_folder = folder.path();
  options.deadline = std::chrono::seconds(60);
  train_in_threads(program::verified(program), *corpus, options);
  const std::vector<Log> logs = read_logs(folder.path());
  ASSERT_EQ(logs.size(), 4u);
  for (const Log& log : logs) {
    EXPECT_EQ(log.end, End::kWell);
    EXPECT_EQ(log.entries.back().doing, Doing::kLoss);
    EXPECT_EQ(log.entries.back().step, 1);
    int collectives = 0, transfers = 0;
    for (const Entry& entry : log.entries) {
      collectives += entry.doing == Doing::kCollective;
      transfers += entry.doing == Doing::kTransfer;
    }
    EXPECT_GT(collectives, 0);
    EXPECT_GT(transfers, 0);
  }
}

}  // namespace
}  // namespace trivium::runtime::flight
