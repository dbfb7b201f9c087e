// Conformance cases of transfers: order of posting, rendezvous in both directions, sizes.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "tests/runtime/inproc/conformance_fixture.h"

namespace trivium::runtime {

TEST_P(CommunicatorConformance, TransfersMatchByNumberWhateverTheOrderOfPosting) {
  on_all_ranks([](Communicator& communicator, int group) {
    // Rank 0 sends 1, 2, 3; the last rank posts 3, 1, 2 and waits in yet another order.
    const int last = count() - 1;
    constexpr std::int64_t kBytes = sizeof(std::int64_t) * 2000;
    if (count() > 1 && communicator.rank() == 0) {
      std::array<std::vector<std::int64_t>, 3> sent;
      for (std::int64_t i = 0; i < 3; ++i) {
        auto& data = sent[static_cast<std::size_t>(i)];
        data.assign(2000, 10 * (i + 1));
        communicator.post_send(last, i + 1, data.data(), kBytes);
      }
      for (const std::int64_t number : {3, 2, 1}) communicator.wait_send(last, number);
    } else if (count() > 1 && communicator.rank() == last) {
      std::array<std::vector<std::int64_t>, 3> received;
      for (auto& data : received) data.resize(2000);
      for (const std::int64_t number : {3, 1, 2}) {
        communicator.post_recv(0, number, received[static_cast<std::size_t>(number - 1)].data(), kBytes);
      }
      for (const std::int64_t number : {2, 3, 1}) {
        communicator.wait_recv(0, number);
        const auto& data = received[static_cast<std::size_t>(number - 1)];
        EXPECT_EQ(std::count(data.begin(), data.end(), 10 * number), 2000);
      }
    }
    communicator.barrier(group);
  });
}

TEST_P(CommunicatorConformance, NeighboursExchangeInBothDirectionsAtOnce) {
  // Every rank waits for its sends before its receives: this ends only when posted receives make progress by
  // themselves.
  on_all_ranks([](Communicator& communicator, int) {
    const int me = communicator.rank(), right = (me + 1) % count(), left = (me + count() - 1) % count();
    for (std::int64_t step = 0; step < 50; ++step) {
      const std::size_t size = step % 2 == 0 ? 1 : 5000;
      const auto bytes = static_cast<std::int64_t>(size * sizeof(int));
      std::vector<int> to_right(size, me), to_left(size, 100 + me), from_left(size), from_right(size);
      communicator.post_recv(left, 2 * step, from_left.data(), bytes);
      communicator.post_recv(right, 2 * step + 1, from_right.data(), bytes);
      communicator.post_send(right, 2 * step, to_right.data(), bytes);
      communicator.post_send(left, 2 * step + 1, to_left.data(), bytes);
      communicator.wait_send(right, 2 * step);
      communicator.wait_send(left, 2 * step + 1);
      communicator.wait_recv(left, 2 * step);
      communicator.wait_recv(right, 2 * step + 1);
      EXPECT_EQ(from_left, std::vector<int>(size, left));
      EXPECT_EQ(from_right, std::vector<int>(size, 100 + right));
    }
  });
}

TEST_P(CommunicatorConformance, NumbersMayBeUsedAgainAfterTheWait) {
  on_all_ranks([](Communicator& communicator, int) {
    const int me = communicator.rank(), last = count() - 1;
    for (int step = 0; step < 100 && last > 0; ++step) {
      int value = step;
      if (me == 0) {
        communicator.post_send(last, 7, &value, sizeof(value));
        communicator.wait_send(last, 7);
      } else if (me == last) {
        value = -1;
        communicator.post_recv(0, 7, &value, sizeof(value));
        communicator.wait_recv(0, 7);
        EXPECT_EQ(value, step);
      }
    }
  });
}

// The receiver posts after the first barrier, so the sender cannot have sent before it.
TEST_P(CommunicatorConformance, ASenderSeesWithoutWaitingThatItHasSent) {
  on_all_ranks([](Communicator& communicator, int everyone) {
    const int me = communicator.rank(), last = count() - 1;
    if (last == 0) return;
    int value = 5;
    if (me == 0) {
      communicator.post_send(last, 1, &value, sizeof(value));
      EXPECT_FALSE(communicator.has_sent(last, 1));
      EXPECT_FALSE(communicator.has_sent(last, 2));  // never posted
    }
    communicator.barrier(everyone);
    if (me == last) {
      communicator.post_recv(0, 1, &value, sizeof(value));
      communicator.wait_recv(0, 1);
    }
    communicator.barrier(everyone);
    if (me == 0) {
      while (!communicator.has_sent(last, 1)) continue;  // messages of MPI may arrive after a barrier
      communicator.wait_send(last, 1);
      EXPECT_FALSE(communicator.has_sent(last, 1));
    }
  });
}

TEST_P(CommunicatorConformance, TransfersOfNothingAndLargeNumbersWork) {
  on_all_ranks([](Communicator& communicator, int) {
    const std::int64_t number = std::int64_t{1} << 40;
    const int me = communicator.rank();
    communicator.post_recv(me, number, nullptr, 0);
    communicator.post_send(me, number, nullptr, 0);
    communicator.wait_send(me, number);
    communicator.wait_recv(me, number);
  });
}

}  // namespace trivium::runtime
