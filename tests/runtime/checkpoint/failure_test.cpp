// A disk that is full.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

/// While one lives, no file of this process may grow beyond `bytes`: writing fails as on a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  void (*old_handler_)(int);
  rlimit old_{};
};

TEST(FullDisk, EndsTheRunWithTheRankAndTheCauseAndLosesNothing) {
  const Folder folder;
  program::Plan plan;
  plan.data = 2;
  plan.zero_stage = 1;
  const program::Job job = small_job(plan);
  const Toy before = train(job, folder.path(), 4, false, 2);
  {
    const SmallDisk disk(64 << 10);
    try {
      train(job, folder.path(), 4, true);
      FAIL() << "nothing was thrown";
    } catch (const base::Failure& failure) {
      EXPECT_EQ(failure.error().kind, base::ErrorKind::kRuntime);
      EXPECT_NE(failure.error().message.find("rank 0: "), std::string::npos) << failure.what();
      EXPECT_NE(failure.error().message.find("rank-00000.safetensors: cannot write: File too large"), std::string::npos)
          << failure.what();
    }
  }
  const Listing listing = list(folder.path());
  ASSERT_EQ(listing.whole.size(), 1u);
  EXPECT_TRUE(listing.unfinished.empty());
  bool replicas_agree = false;
  EXPECT_EQ(first_difference(loaded(verified_program(job), listing.whole.front(), replicas_agree), before.whole), "");
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
