// Every window once an epoch, another order each epoch and seed, and nothing that depends on a layout.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "runtime/data/corpus.h"

namespace trivium::runtime::data {
namespace {

std::vector<std::int64_t> epoch_of(const Sampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> starts;
  const std::int64_t size = sampler.samples_per_epoch();
  for (std::int64_t i = 0; i < size; ++i) starts.push_back(sampler.start_of(epoch * size + i));
  return starts;
}

TEST(Sampler, WindowsShareOnlyTheirBorderToken) {
  // 10 tokens, sequence 3: windows at 0, 3, 6 read tokens 0-3, 3-6, 6-9. With 9 tokens the last has no last label.
  EXPECT_EQ(Sampler(10, 3, 1).samples_per_epoch(), 3);
  EXPECT_EQ(Sampler(9, 3, 1).samples_per_epoch(), 2);
}

TEST(Sampler, EveryWindowComesOnceAnEpoch) {
  for (const std::int64_t windows : {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 4097}) {
    const Sampler sampler(windows * 7 + 1, 7, 42);
    for (const std::int64_t epoch : {0, 1, 5}) {
      const auto starts = epoch_of(sampler, epoch);
      const std::set<std::int64_t> distinct(starts.begin(), starts.end());
      EXPECT_EQ(static_cast<std::int64_t>(distinct.size()), windows);
      EXPECT_EQ(*distinct.begin(), 0);
      EXPECT_EQ(*distinct.rbegin(), (windows - 1) * 7);
      for (const std::int64_t start : distinct) EXPECT_EQ(start % 7, 0);
    }
  }
}

TEST(Sampler, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const Sampler sampler(1001, 1, 42), other(1001, 1, 43);
  EXPECT_NE(epoch_of(sampler, 0), epoch_of(sampler, 1));
  EXPECT_NE(epoch_of(sampler, 0), epoch_of(other, 0));
  EXPECT_EQ(epoch_of(sampler, 3), epoch_of(Sampler(1001, 1, 42), 3));
}

TEST(Sampler, OrdersLookShuffled) {
  // Of 10,000 shuffled windows, neighbours follow each other (i, i + 1) about once on average; the identity would do so
  // 9,999 times. The mean distance |start - i| of a random permutation is n / 3.
  const auto starts = epoch_of(Sampler(10001, 1, 7), 0);
  std::int64_t followers = 0, distance = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    followers += i > 0 && starts[i] == starts[i - 1] + 1 ? 1 : 0;
    distance += std::abs(starts[i] - static_cast<std::int64_t>(i));
  }
  EXPECT_LT(followers, 10);
  EXPECT_NEAR(static_cast<double>(distance) / 10000, 10000 / 3.0, 100);  // standard error 24
}

TEST(Sampler, TheSampleDecidesAlone) {
  // Two data-parallel ranks with half the batch each read, together, what one rank reads: start_of has no other input,
  // and asking in any order gives the same.
  const Sampler one(5001, 5, 9);
  std::vector<std::int64_t> forwards, backwards;
  for (std::int64_t sample = 0; sample < 3000; ++sample) forwards.push_back(one.start_of(sample));
  const Sampler two(5001, 5, 9);
  for (std::int64_t sample = 2999; sample >= 0; --sample) backwards.push_back(two.start_of(sample));
  EXPECT_EQ(forwards, std::vector<std::int64_t>(backwards.rbegin(), backwards.rend()));
}

TEST(Sampler, TheOrderOfThePastStaysReadable) {
  // Checkpoints name samples by number: these literals pin the permutation, so that a change of it does not go
  // unnoticed.
  const Sampler sampler(8 * 4 + 1, 4, 1);
  EXPECT_EQ(epoch_of(sampler, 0), (std::vector<std::int64_t>{16, 12, 8, 28, 20, 24, 4, 0}));
}

TEST(Sampler, TooFewTokensAreRefused) {
  EXPECT_THROW(Sampler(4, 4, 1), std::invalid_argument);
  EXPECT_EQ(Sampler(5, 4, 1).start_of(12345), 0);
}

}  // namespace
}  // namespace trivium::runtime::data
