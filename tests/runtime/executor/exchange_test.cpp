#include "runtime/executor/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "runtime/inproc/threads.h"

namespace trivium::runtime {
namespace {

using Values = std::vector<std::int32_t>;

// Every rank runs `body(communicator)` on a thread of its own.
template <class Body>
void on_ranks(int ranks, const Body& body) {
  auto communicators = inproc::make_communicators(ranks);
  std::vector<std::jthread> threads;
  for (auto& communicator : communicators) threads.emplace_back([&body, end = communicator.get()] { body(*end); });
}

const std::byte* bytes(const Values& v) { return reinterpret_cast<const std::byte*>(v.data()); }
std::byte* bytes(Values& v) { return reinterpret_cast<std::byte*>(v.data()); }

// Rank r sends 10 r + i to member i, so it ends with r + 10 j from member j.
TEST(Exchange, AllToAllTransposesParts) {
  const std::vector<int> members{0, 1, 2};
  std::array<Values, 3> got;
  on_ranks(3, [&](Communicator& communicator) {
    const int r = communicator.rank();
    const Values in{10 * r, 10 * r + 1, 10 * r + 2};
    Values out(3, -1);
    all_to_all(communicator, members, bytes(in), bytes(out), 4, 7);
    got[static_cast<std::size_t>(r)] = out;
  });
  for (int r = 0; r < 3; ++r) EXPECT_EQ(got[static_cast<std::size_t>(r)], (Values{r, 10 + r, 20 + r}));
}

// A group that leaves ranks out, and one of two, where next and before are the same rank.
TEST(Exchange, ARingShiftTakesFromTheMemberBefore) {
  for (const std::vector<int>& members : {std::vector<int>{0, 2, 3}, std::vector<int>{1, 3}}) {
    std::array<Values, 4> got;
    on_ranks(4, [&](Communicator& communicator) {
      if (std::find(members.begin(), members.end(), communicator.rank()) == members.end()) return;
      const Values in{communicator.rank()};
      Values out{-1};
      ring_shift(communicator, members, bytes(in), bytes(out), 4, 3);
      got[static_cast<std::size_t>(communicator.rank())] = out;
    });
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int before = members[(i + members.size() - 1) % members.size()];
      EXPECT_EQ(got[static_cast<std::size_t>(members[i])], Values{before});
    }
  }
}

}  // namespace
}  // namespace trivium::runtime
