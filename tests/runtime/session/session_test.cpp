// What a run is apart from its steps: ranks that agree, checkpoints it resumes from, its record, its supervisor.
#include "runtime/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "runtime/inproc/threads.h"
#include "runtime/session/record.h"
#include "runtime/session/same_program.h"
#include "runtime/session/supervisor.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::session {
namespace {

using checkpoint::Folder;
using ::testing::HasSubstr;

program::Job two_stages() {
  program::Plan plan;
  plan.pipeline = 2;
  return checkpoint::small_job(plan);
}

std::filesystem::path text_in(const Folder& folder) {
  const std::filesystem::path file = folder.path() / "corpus.txt";
  std::ofstream(file) << std::string(4000, ' ') + std::string(4000, '!');  // bytes below the toy's vocabulary of 61
  return file;
}

SessionOptions options_of(const Folder& folder) {
  SessionOptions options;
  options.job.job = two_stages();
  options.job.cluster = "generic-cpu";
  options.corpus = text_in(folder).string();
  return options;
}

TEST(SameProgram, EndsAllRanksWhereOneHasAnother) {
  const program::Program two = checkpoint::verified_program(two_stages());
  program::Job longer = two_stages();
  longer.training.global_batch *= 2;
  const program::Program other = checkpoint::verified_program(longer);
  inproc::run_ranks(2, [&](Communicator& communicator) { check_same_program(communicator, two); });
  try {
    inproc::run_ranks(2, [&](Communicator& communicator) {
      check_same_program(communicator, communicator.rank() == 0 ? two : other);
      communicator.broadcast(communicator.make_group(std::vector<int>{0, 1}), nullptr, 0, 0);
    });
    FAIL() << "both went on";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 lowered another program than rank 0"));
  }
}

// Files of other names do not count; those of either rank's folder differ by a byte, then by a name.
TEST(SameFiles, EndAllRanksWhereOneHasOthers) {
  const Folder folders[2];
  const auto put = [&](int rank, const std::string& name, const std::string& text) {
    std::ofstream(folders[rank].path() / name) << text;
  };
  const auto agree = [&] {
    inproc::run_ranks(2, [&](Communicator& communicator) {
      check_same_files(communicator, folders[communicator.rank()].path(), ".products");
      communicator.broadcast(communicator.make_group(std::vector<int>{0, 1}), nullptr, 0, 0);
    });
  };
  put(0, "a.products", "fast"), put(1, "a.products", "fast"), put(1, "notes", "mine");
  agree();
  for (const std::string name : {"a.products", "b.products"}) {
    put(1, name, "fasd");
    try {
      agree();
      FAIL() << "both went on";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1 has other files in " + folders[1].path().string()));
    }
    put(1, "a.products", "fast");
  }
}

TEST(Session, TrainsInThreadsAndMeasuresItsValidation) {
  const Folder folder;
  SessionOptions options = options_of(folder);
  options.validation = options.corpus;
  TrainOptions how;
  how.steps = 2;
  const TrainResult result =
      Session(options).train(checkpoint::verified_program(options.job.job), how, nullptr, nullptr);
  ASSERT_EQ(result.steps.size(), 2U);
  EXPECT_FALSE(result.steps.front().validation_loss);
  EXPECT_TRUE(result.steps.back().validation_loss);  // of the last step
}

TEST(Session, ResumesWhatItKept) {
  const Folder folder;
  SessionOptions options = options_of(folder);
  options.checkpoint.folder = (folder.path() / "checkpoints").string();
  const program::VerifiedProgram program = checkpoint::verified_program(options.job.job);
  TrainOptions how;
  how.steps = 2;
  EXPECT_EQ(Session(options).train(program, how, nullptr, nullptr).steps.size(), 2U);
  how.steps = 3;
  options.checkpoint.resume = true;
  const TrainResult resumed = Session(options).train(program, how, nullptr, nullptr);
  ASSERT_EQ(resumed.steps.size(), 1U);
  EXPECT_EQ(resumed.steps.front().step, 2);
}

TEST(Session, NamesACorpusThatIsNotThere) {
  const Folder folder;
  SessionOptions options = options_of(folder);
  options.validation = (folder.path() / "missing.txt").string();
  try {
    const Session session(options);
    FAIL() << "opened";
  } catch (const base::Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("missing.txt"));
  }
}

TEST(RunRecord, SaysWhatItsRanksWere) {
  program::PlanFile file;
  file.job = two_stages();
  file.cluster = "this-machine";
  const program::Program program = checkpoint::verified_program(file.job);
  TrainResult result;
  result.steps.resize(3);
  result.memory_bytes = {5, 7};
  const program::RunRecord record = record_of(file, program, result, Ranks::kThreads, "events");
  EXPECT_EQ(record.backend, "cpu-threads");
  EXPECT_EQ(record.program_hash, program::hash_of(program));
  EXPECT_EQ(record.steps.size(), 3U);
  EXPECT_EQ(record.peak_memory_bytes, (std::vector<std::int64_t>{5, 7}));
  EXPECT_FALSE(record.host.contains("timing"));
  EXPECT_EQ(record_of(file, program, result, Ranks::kProcesses, "events").backend, "cpu-mpi");
}

TEST(Supervisor, IsTheProcessThatTheEnvironmentNames) {
  EXPECT_FALSE(Supervisor::of_this_process().exists());
  for (const auto& [name, value] : environment_of_ranks("a-folder", true)) ::setenv(name.c_str(), value.c_str(), 1);
  const Supervisor supervisor = Supervisor::of_this_process();
  EXPECT_TRUE(supervisor.exists());
  EXPECT_FALSE(supervisor.is_gone());
  EXPECT_TRUE(supervisor.wants_resume());
  EXPECT_EQ(supervisor.flight_record(), "a-folder");
  for (const auto& [name, value] : environment_of_ranks("", false)) ::unsetenv(name.c_str());
}

TEST(Supervisor, IsGoneWhenItsProcessIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    for (const auto& [name, value] : environment_of_ranks("", false)) text += name + "=" + value + "\n";
    const bool written = ::write(ends[1], text.data(), text.size()) == std::ssize(text);
    ::_exit(written ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  ::setenv(name.c_str(), text.substr(equals + 1, text.find('\n') - equals - 1).c_str(), 1);
  EXPECT_TRUE(Supervisor::of_this_process().exists());
  EXPECT_TRUE(Supervisor::of_this_process().is_gone());
  ::unsetenv(name.c_str());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Supervisor, KnowsWhoStartedWhom) {
  EXPECT_TRUE(descends_from(::getpid(), ::getppid()));
  EXPECT_TRUE(descends_from(::getpid(), ::getpid()));
  EXPECT_FALSE(descends_from(::getppid(), ::getpid()));
}

}  // namespace
}  // namespace trivium::runtime::session
