// Every call by which checkpoints are written fails once: the last good one can always be read.
#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "tests/runtime/checkpoint/faulty_calls.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Case {
  program::Job job;
  Toy before, after;  ///< at step 2, at step 4
};

Case make_case() {
  program::Plan plan;
  plan.data = 2;
  plan.zero_stage = 1;
  Case made{small_job(plan), {}, {}};
  const Folder folder;
  made.before = train(made.job, folder.path(), 4, false, 2);
  made.after = train(made.job, folder.path(), 4, true);
  return made;
}

/// Trains from the copy of a folder that holds step 2 to step 4, with that call failing. How many calls there were.
long resume_with(const Case& made, const fs::path& good, const fs::path& place, long failing, bool& failed) {
  fs::remove_all(place);
  fs::copy(good, place, fs::copy_options::recursive);
  arm_faults(place.string(), failing);
  failed = false;
  try {
    train(made.job, place, 4, true, 0, 1, 1);  // every step saves, and the checkpoint before gives way
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kRuntime) << failure.what();
    failed = true;
  }
  return disarm_faults();
}

TEST(CheckpointFaults, WhateverCallFailsTheLastGoodCheckpointCanBeRead) {
  const Case made = make_case();
  const Folder good, place;
  train(made.job, good.path(), 4, false, 2);
  bool failed = false;
  const long calls = resume_with(made, good.path(), place.path() / "ck", -1, failed);
  ASSERT_FALSE(failed);
  ASSERT_GT(calls, 40);  // two checkpoints of two shards, a description, `latest`, and a lock
  const program::Program program = verified_program(made.job);
  int failures = 0;
  for (long call = 0; call < calls; ++call) {
    resume_with(made, good.path(), place.path() / "ck", call, failed);
    failures += failed ? 1 : 0;
    const Newest found = newest(place.path() / "ck");
    ASSERT_TRUE(found.path) << "call " << call;
    bool agree = false;
    const Whole whole = loaded(program, *found.path, agree);
    const std::int64_t step = read_description(*found.path, true).step;
    EXPECT_GE(step, 2) << "call " << call;
    if (step == 2) {
      EXPECT_EQ(first_difference(whole, made.before.whole), "") << "call " << call;
    }
    if (step == 4) {
      EXPECT_EQ(first_difference(whole, made.after.whole), "") << "call " << call;
    }
    // And a training goes on from there to the same end.
    const Toy rest = train(made.job, place.path() / "ck", 4, true);
    if (step < 4) {
      EXPECT_EQ(first_difference(rest.whole, made.after.whole), "") << "call " << call;
    }
  }
  EXPECT_GT(failures, calls / 2);  // some of the calls may fail without harm, such as closing a lock
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
