// The heap of ends against the standard library's, pushed and popped in every order.
#include "simulator/schedule/end_queue.h"

#include <gtest/gtest.h>

#include <queue>
#include <random>

namespace trivium::simulator {
namespace {

struct Later {
  bool operator()(const End& a, const End& b) const { return b < a; }
};

TEST(EndQueue, GivesTheEarliestAndOfEqualTimesTheFirstStarted) {
  EndQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.push({20, 0, 1});
  queue.push({10, 2, 2});
  queue.push({10, 1, 3});
  EXPECT_EQ(queue.earliest(), 10);
  EXPECT_EQ(queue.pop().what, 3);
  EXPECT_EQ(queue.pop().what, 2);
  EXPECT_EQ(queue.earliest(), 20);  // with the place of what was popped free
  queue.push({30, 3, 4});           // takes the place of what was popped
  EXPECT_EQ(queue.pop().what, 1);
  EXPECT_EQ(queue.pop().what, 4);
  EXPECT_TRUE(queue.empty());
}

TEST(EndQueue, AgreesWithAPriorityQueue) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    EndQueue queue;
    std::priority_queue<End, std::vector<End>, Later> known;
    std::uint32_t sequence = 0;
    const double pushes = std::uniform_real_distribution<double>(.3, .7)(random);
    for (int step = 0; step < 2000; ++step) {
      if (known.empty() || std::bernoulli_distribution(pushes)(random)) {
        const End end{std::uniform_int_distribution<std::int64_t>(0, 99)(random), sequence++, step};
        queue.push(end);
        known.push(end);
        continue;
      }
      ASSERT_EQ(queue.earliest(), known.top().time);
      ASSERT_EQ(queue.pop().what, known.top().what);
      known.pop();
      ASSERT_EQ(queue.empty(), known.empty());
    }
  }
}

}  // namespace
}  // namespace trivium::simulator
