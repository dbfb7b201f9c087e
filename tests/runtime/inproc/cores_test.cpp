// Ranks that take turns on fewer cores.
#include "runtime/inproc/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <thread>

#include "runtime/inproc/threads.h"

namespace trivium::runtime::inproc {
namespace {

constexpr int kRanks = 5;

/// What a rank sleeps on, and turns on `cores` of this machine's cores (the same one twice where it has one).
struct Machine {
  explicit Machine(int cores)
      : turns(kRanks, std::vector<int>(static_cast<std::size_t>(cores), allowed_cores().at(0))) {}
  void ring(int rank) {
    bells[static_cast<std::size_t>(rank)].fetch_add(1);
    turns.ready(rank);
  }
  /// Until the bell was rung `times` in all.
  void await(int rank, std::uint32_t times) {
    auto& bell = bells[static_cast<std::size_t>(rank)];
    for (std::uint32_t heard = bell.load(); heard < times; heard = bell.load()) turns.wait(rank, bell, heard);
  }
  Cores turns;
  std::array<std::atomic<std::uint32_t>, kRanks> bells{};
};

// A token goes around: whoever has it works, rings the next and waits for it to come back.
TEST(Cores, NoMoreRanksRunThanThereAreCores) {
  for (const int cores : {1, 2}) {
    constexpr std::uint32_t kRounds = 200;
    Machine machine(cores);
    std::atomic<int> running{0}, most{0}, worked{0};
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
          machine.turns.enter(rank);
          for (std::uint32_t round = 1; round <= kRounds; ++round) {
            const int now = ++running;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
            ++worked;
            std::this_thread::yield();
            --running;
            machine.ring((rank + 1) % kRanks);
            machine.await(rank, round);
          }
          machine.turns.leave(rank);
        });
      }
    }
    EXPECT_EQ(worked, kRanks * static_cast<int>(kRounds));
    EXPECT_LE(most, cores);
    EXPECT_GE(most, 1);
  }
}

// Rank 0 has the only core; 2, then 1, become ready while it works, and get it in that order.
TEST(Cores, TheRankThatIsReadyLongestIsNext) {
  Machine machine(1);
  std::vector<int> order;  // written in turns alone
  std::atomic<int> entered{0};
  machine.turns.enter(0);
  {
    std::vector<std::jthread> threads;
    for (const int rank : {1, 2}) {
      threads.emplace_back([&, rank] {
        machine.turns.enter(rank);
        ++entered;
        machine.await(rank, 1);
        order.push_back(rank);
        machine.turns.leave(rank);
      });
    }
    machine.turns.leave(0);  // both get their first turn, and wait
    while (entered < 2) std::this_thread::yield();
    machine.turns.enter(0);
    machine.ring(2);
    machine.ring(1);
    EXPECT_THAT(order, testing::IsEmpty());
    machine.turns.leave(0);
  }
  EXPECT_THAT(order, testing::ElementsAre(2, 1));
}

// Rank 0 never gives the core on: at the end of a run that failed nobody waits for it.
TEST(Cores, OpenLetsEveryRankGo) {
  Machine machine(1);
  machine.turns.enter(0);
  std::jthread other([&] {
    machine.turns.enter(1);
    machine.turns.leave(1);
  });
  machine.turns.open();
  other.join();
  machine.turns.leave(0);
}

TEST(RunRanks, MoreRanksThanCoresMeetOneAnother) {
  const int ranks = 2 * static_cast<int>(allowed_cores().size()) + 1;
  std::vector<int> everyone(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) everyone[static_cast<std::size_t>(rank)] = rank;
  std::vector<float> sums(everyone.size());
  run_ranks(ranks, [&](Communicator& communicator) {
    const int group = communicator.make_group(everyone), rank = communicator.rank();
    float value = static_cast<float>(rank);
    for (std::int64_t i = 0; i < 50; ++i) {
      communicator.all_reduce(group, &value, 1, program::DType::kFp32, program::Reduction::kSum);
      value /= static_cast<float>(ranks);
      float from_left = 0;
      communicator.post_send((rank + 1) % ranks, i, &value, sizeof value);
      communicator.post_recv((rank + ranks - 1) % ranks, i, &from_left, sizeof from_left);
      communicator.wait_recv((rank + ranks - 1) % ranks, i);
      communicator.wait_send((rank + 1) % ranks, i);
      value = from_left;
    }
    sums[static_cast<std::size_t>(rank)] = value;
  });
  EXPECT_THAT(sums, testing::Each(static_cast<float>(ranks - 1) / 2));
}

TEST(RunRanks, ThrowOnWhatWasThrownFirst) {
  const int ranks = 2 * static_cast<int>(allowed_cores().size()) + 1;
  std::atomic<int> aborted{0};
  const auto run = [&] {
    run_ranks(ranks, [&](Communicator& communicator) {
      if (communicator.rank() == 1) throw std::runtime_error("the second rank's own reason");
      int value = 0;
      try {
        communicator.post_recv(1, 0, &value, sizeof value);
        communicator.wait_recv(1, 0);
      } catch (const Aborted&) {
        ++aborted;
        throw;
      }
    });
  };
  EXPECT_THAT(run, testing::ThrowsMessage<std::runtime_error>("the second rank's own reason"));
  EXPECT_EQ(aborted, ranks - 1);
}

}  // namespace
}  // namespace trivium::runtime::inproc
