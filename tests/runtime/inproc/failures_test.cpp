// Misuse and aborts on threads: every rank hears of it, with the reason, and nobody hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "tests/runtime/inproc/run_ranks.h"

namespace trivium::runtime {
namespace {

using program::DType;
using program::Reduction;
using testing::Each;
using testing::HasSubstr;

/// What each rank was told when the run was aborted; "" for a rank that ended well.
std::vector<std::string> reasons_of(int ranks, const std::function<void(Communicator&, int group)>& body) {
  std::vector<std::string> reasons(static_cast<std::size_t>(ranks));
  run_on_threads(ranks, [&](Communicator& communicator) {
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
    try {
      body(communicator, communicator.make_group(all));
    } catch (const Aborted& aborted) {
      reasons[static_cast<std::size_t>(communicator.rank())] = aborted.what();
    }
  });
  return reasons;
}

TEST(ThreadCommunicatorFailures, AbortWakesRanksWhereverTheyWait) {
  // Rank 0 waits in a barrier, 1 for a send, 2 for a receive; rank 3 gives up after they had time to fall asleep.
  const auto reasons = reasons_of(4, [](Communicator& communicator, int group) {
    int value = 0;
    switch (communicator.rank()) {
      case 0:
        communicator.barrier(group);
        break;
      case 1:
        communicator.post_send(3, 1, &value, sizeof(value));
        communicator.wait_send(3, 1);
        break;
      case 2:
        communicator.post_recv(3, 2, &value, sizeof(value));
        communicator.wait_recv(3, 2);
        break;
      default:
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        communicator.abort("rank 3 lost its device");
        throw Aborted("rank 3 lost its device");
    }
  });
  EXPECT_THAT(reasons, Each("rank 3 lost its device"));
}

TEST(ThreadCommunicatorFailures, TheFirstReasonStandsAndLaterCallsFailToo) {
  const auto reasons = reasons_of(2, [](Communicator& communicator, int group) {
    if (communicator.rank() == 0) {
      communicator.abort("first");
      communicator.abort("second");
    }
    std::vector<double> data(5000);
    communicator.all_reduce(group, data.data(), 5000, DType::kFp64, Reduction::kSum);
  });
  EXPECT_THAT(reasons, Each("first"));
}

TEST(ThreadCommunicatorFailures, BuffersMayGoAwayAfterAnAbortAtAnyMoment) {
  // A stranger aborts while ranks copy; each frees its buffers on the way out. The sanitizers watch.
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<Communicator*> victim{nullptr};
    std::jthread stranger([&] {
      while (victim.load() == nullptr) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(200 * repeat));
      victim.load()->abort("stopped");
      victim = nullptr;
    });
    const auto reasons = reasons_of(3, [&](Communicator& communicator, int group) {
      const int right = (communicator.rank() + 1) % 3, left = (communicator.rank() + 2) % 3;
      try {
        for (std::int64_t step = 0;; ++step) {
          std::vector<float> data(20000, 1.0f), received(20000);
          communicator.all_reduce(group, data.data(), 20000, DType::kFp32, Reduction::kSum);
          if (step == 0 && communicator.rank() == 0) victim = &communicator;
          communicator.post_send(right, step, data.data(), 80000);
          communicator.post_recv(left, step, received.data(), 80000);
          communicator.wait_recv(left, step);
          communicator.wait_send(right, step);
        }
      } catch (const Aborted&) {
        // The communicator must outlive the stranger's call.
        while (victim.load() != nullptr) std::this_thread::yield();
        throw;
      }
    });
    EXPECT_THAT(reasons, Each("stopped"));
    stranger.join();
  }
}

TEST(ThreadCommunicatorFailures, MembersThatDisagreeOnTheCountAreTold) {
  const auto reasons = reasons_of(3, [](Communicator& communicator, int group) {
    std::vector<float> data(10);
    communicator.all_reduce(group, data.data(), communicator.rank() == 1 ? 9 : 10, DType::kFp32, Reduction::kSum);
  });
  EXPECT_THAT(reasons, Each("members of a group disagree: rank 0 calls all_reduce (sum) of 10 fp32, rank 1 calls "
                            "all_reduce (sum) of 9 fp32"));
}

TEST(ThreadCommunicatorFailures, MembersThatDisagreeOnTheCollectiveAreTold) {
  const auto reasons = reasons_of(2, [](Communicator& communicator, int group) {
    std::array<double, 2> data{};
    if (communicator.rank() == 0) return communicator.broadcast(group, data.data(), 16, 0);
    communicator.all_reduce(group, data.data(), 2, DType::kFp64, Reduction::kMax);
  });
  EXPECT_THAT(reasons, Each("members of a group disagree: rank 0 calls broadcast of 16 bytes from rank 0, rank 1 calls "
                            "all_reduce (max) of 2 fp64"));
}

TEST(ThreadCommunicatorFailures, EndsThatDisagreeOnTheSizeAreTold) {
  const auto reasons = reasons_of(2, [](Communicator& communicator, int group) {
    std::array<char, 16> data{};
    if (communicator.rank() == 0) {
      communicator.post_send(1, 5, data.data(), 16);
      communicator.wait_send(1, 5);
    } else {
      communicator.post_recv(0, 5, data.data(), 8);
      communicator.wait_recv(0, 5);
    }
    communicator.barrier(group);
  });
  EXPECT_THAT(reasons, Each("transfer 5 from rank 0 to rank 1: 16 bytes sent, 8 expected"));
}

TEST(ThreadCommunicatorFailures, CountsThatCannotBeSharedAreRefused) {
  const auto reasons = reasons_of(2, [](Communicator& communicator, int group) {
    std::array<float, 4> whole{}, part{};
    communicator.reduce_scatter(group, whole.data(), part.data(), 3, DType::kFp32);
  });
  EXPECT_THAT(reasons, Each("reduce_scatter of 3 fp32: the count is not a multiple of the 2 members"));
}

TEST(ThreadCommunicatorFailures, PartsInAWrongPlaceOfTheWholeAreRefused) {
  const auto reasons = reasons_of(2, [](Communicator& communicator, int group) {
    std::array<float, 4> whole{};
    communicator.all_gather(group, whole.data() + 1, whole.data(), 4, DType::kFp32);
  });
  EXPECT_THAT(reasons, Each(HasSubstr("overlaps the whole")));
}

TEST(ThreadCommunicatorFailures, ImpossibleCallsAreRefused) {
  using Body = std::function<void(Communicator&, int)>;
  static int value = 0;
  const std::vector<std::pair<std::string, Body>> cases{
      {"has no group 9", [](Communicator& c, int) { c.barrier(9); }},
      {"has no peer 2", [](Communicator& c, int) { c.post_send(2, 1, nullptr, 0); }},
      {"which it never posted", [](Communicator& c, int) { c.wait_recv(0, 1); }},
      {"the root is not a member", [](Communicator& c, int group) { c.broadcast(group, nullptr, 0, 2); }},
      {"the count is negative",
       [](Communicator& c, int group) { c.all_reduce(group, nullptr, -1, DType::kFp32, Reduction::kSum); }},
      {"not ascending",
       [](Communicator& c, int) {
         c.make_group(std::array{1, 0});
       }},
      {"lacks rank", [](Communicator& c, int) { c.make_group(std::array{1 - c.rank()}); }},
      {"already in flight",
       [](Communicator& c, int) {
         c.post_recv(1 - c.rank(), 1, &value, sizeof(value));
         c.post_recv(1 - c.rank(), 1, &value, sizeof(value));
       }},
  };
  for (const auto& [text, body] : cases) EXPECT_THAT(reasons_of(2, body), Each(HasSubstr(text)));
}

TEST(ThreadCommunicatorFailures, EndingWithUnfinishedTransfersAbortsTheOthers) {
  auto communicators = inproc::make_communicators(2);
  int value = 0;
  communicators[0]->post_recv(1, 1, &value, sizeof(value));
  communicators[0].reset();
  try {
    communicators[1]->post_send(0, 1, &value, sizeof(value));
    ADD_FAILURE() << "the send found an end that is gone";
  } catch (const Aborted& aborted) {
    EXPECT_STREQ(aborted.what(), "rank 0 ended with 1 transfers unfinished");
  }
}

}  // namespace
}  // namespace trivium::runtime
