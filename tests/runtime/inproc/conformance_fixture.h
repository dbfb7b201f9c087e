// What the conformance cases stand on: a way to run ranks, and values whose sums are known by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/communicator.h"

namespace trivium::runtime {

/// One communicator implementation at one size. `run` runs the function on every rank.
struct Ranks {
  std::string name;
  int count = 1;
  std::function<void(const std::function<void(Communicator&)>&)> run;
};

inline void PrintTo(const Ranks& ranks, std::ostream* out) { *out << ranks.name; }

class CommunicatorConformance : public testing::TestWithParam<Ranks> {
 protected:
  static int count() { return GetParam().count; }
  static void on_all_ranks(const std::function<void(Communicator&, int group)>& body) {
    GetParam().run([&](Communicator& communicator) {
      const std::vector<int> ranks = all_ranks();
      body(communicator, communicator.make_group(ranks));
    });
  }
  static std::vector<int> all_ranks() {
    std::vector<int> ranks(static_cast<std::size_t>(count()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  /// Sizes around every boundary: one, odd, a multiple of the group, beyond the small-payload path.
  static std::vector<std::int64_t> sizes() { return {0, 1, 7, 12 * count(), 1023, 100000}; }
};

/// Rank r's element e: a small whole number, so that every type holds it and its sums exactly.
inline int value_of(int rank, std::int64_t element) { return static_cast<int>((element + rank) % 5); }

/// Sum of `value_of` over ranks 0 … count - 1.
inline int sum_of(int count, std::int64_t element) {
  int sum = 0;
  for (int rank = 0; rank < count; ++rank) sum += value_of(rank, element);
  return sum;
}

}  // namespace trivium::runtime
