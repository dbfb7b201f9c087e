// The cases that every communicator passes. A test file includes this and instantiates CommunicatorConformance.
// Failures are reported with EXPECT: leaving a rank early would leave the others waiting.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/runtime/inproc/conformance_fixture.h"
#include "tests/runtime/inproc/conformance_transfers.h"
#include "tests/runtime/inproc/typed_value.h"

namespace trivium::runtime {

using program::DType;
using program::Reduction;

TEST_P(CommunicatorConformance, KnowsItsRankAndSize) {
  on_all_ranks([](Communicator& communicator, int) {
    EXPECT_EQ(communicator.size(), count());
    EXPECT_GE(communicator.rank(), 0);
    EXPECT_LT(communicator.rank(), count());
  });
}

TEST_P(CommunicatorConformance, AllReduceSumsEveryTypeAndSize) {
  on_all_ranks([](Communicator& communicator, int group) {
    for (const DType type : kAllTypes) {
      for (const std::int64_t size : sizes()) {
        auto data = elements_of(type, size, [&](std::int64_t e) { return value_of(communicator.rank(), e); });
        communicator.all_reduce(group, data.data(), size, type, Reduction::kSum);
        EXPECT_TRUE(data == elements_of(type, size, [](std::int64_t e) { return sum_of(count(), e); }))
            << program::name_of(type) << " x " << size;
      }
    }
  });
}

TEST_P(CommunicatorConformance, AllReduceFindsTheMaximumOfEveryTypeAndSize) {
  // value_of takes all of 0 … 4 in turn, so over c ranks the maximum is that of c neighbours in 0 1 2 3 4 0 1 2 ….
  const auto maximum_of = [](std::int64_t e) {
    int maximum = 0;
    for (int rank = 0; rank < count(); ++rank) maximum = std::max(maximum, value_of(rank, e));
    return maximum;
  };
  on_all_ranks([&](Communicator& communicator, int group) {
    for (const DType type : kAllTypes) {
      for (const std::int64_t size : sizes()) {
        auto data = elements_of(type, size, [&](std::int64_t e) { return value_of(communicator.rank(), e); });
        communicator.all_reduce(group, data.data(), size, type, Reduction::kMax);
        EXPECT_TRUE(data == elements_of(type, size, maximum_of)) << program::name_of(type) << " x " << size;
      }
    }
  });
}

TEST_P(CommunicatorConformance, AllReduceFindsNegativeMaxima) {
  on_all_ranks([](Communicator& communicator, int group) {
    float data = -10.0f - static_cast<float>(communicator.rank());
    communicator.all_reduce(group, &data, 1, DType::kFp32, Reduction::kMax);
    EXPECT_EQ(data, -10.0f);
  });
}

TEST_P(CommunicatorConformance, SumsAddInAscendingRankOrder) {
  // Rank 0 has 2^53, all others 1. Above 2^53 doubles are 2 apart and the tie 2^53 + 1 goes to the even 2^53: adding
  // the ones one by one to it never changes it, while any order that adds two ones first gives at least 2^53 + 2.
  const double large = std::ldexp(1.0, 53);
  on_all_ranks([&](Communicator& communicator, int group) {
    for (const std::int64_t size : sizes()) {
      std::vector<double> data(static_cast<std::size_t>(size), communicator.rank() == 0 ? large : 1.0);
      communicator.all_reduce(group, data.data(), size, DType::kFp64, Reduction::kSum);
      EXPECT_EQ(std::count(data.begin(), data.end(), large), size);
    }
    // The other way round, the last rank has 2^53: the ones are summed first, and that sum rounds once, to even.
    if (count() == 4) {
      double last = communicator.rank() == 3 ? large : 1.0;
      communicator.all_reduce(group, &last, 1, DType::kFp64, Reduction::kSum);
      EXPECT_EQ(last, large + 4);  // 2^53 + 3 lies between 2^53 + 2 and 2^53 + 4; the even mantissa is that of + 4
    }
  });
}

TEST_P(CommunicatorConformance, HalfPrecisionSumsRoundOnlyOnce) {
  // bf16 has 8 significant bits: 256 + 1 rounds to 256 each time, but 256 + 1 + 1 = 258 exactly in fp32 is
  // representable (258 = 129 * 2).
  if (count() < 3) return;
  on_all_ranks([](Communicator& communicator, int group) {
    std::uint16_t bf16 = communicator.rank() == 0 ? 0x4380 : communicator.rank() < 3 ? 0x3f80 : 0;  // 256, 1, 1, 0 …
    communicator.all_reduce(group, &bf16, 1, DType::kBf16, Reduction::kSum);
    EXPECT_EQ(bf16, 0x4381);  // 258 = 1.0000001b * 2^8
  });
}

TEST_P(CommunicatorConformance, PairSumsKeepWhatDoublesLose) {
  // Rank r holds the pair (2^60 if r is 0 else 1, 2^-60): the high parts' sum 2^60 + (c - 1) needs 61 bits, so the ones
  // end in lo.
  on_all_ranks([](Communicator& communicator, int group) {
    for (const std::int64_t pairs : {1, 5, 4000}) {
      std::vector<double> data;
      for (std::int64_t i = 0; i < pairs; ++i) {
        data.push_back(communicator.rank() == 0 ? std::ldexp(1.0, 60) : 1.0);
        data.push_back(0.0);
      }
      communicator.all_reduce(group, data.data(), pairs, DType::kFp64, Reduction::kPairSum);
      for (std::size_t i = 0; i < data.size(); i += 2) {
        EXPECT_EQ(data[i], std::ldexp(1.0, 60));
        EXPECT_EQ(data[i + 1], count() - 1);
      }
    }
  });
}

TEST_P(CommunicatorConformance, ReduceScatterGivesEachMemberItsPart) {
  on_all_ranks([](Communicator& communicator, int group) {
    const std::int64_t me = communicator.rank();
    for (const DType type : kAllTypes) {
      for (const std::int64_t part :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{1000}, std::int64_t{30001}}) {
        const std::int64_t size = part * count();
        const auto whole = elements_of(type, size, [&](std::int64_t e) { return value_of(communicator.rank(), e); });
        std::vector<std::byte> mine(static_cast<std::size_t>(part * program::size_of(type)));
        communicator.reduce_scatter(group, whole.data(), mine.data(), size, type);
        const auto expected = elements_of(type, part, [&](std::int64_t e) { return sum_of(count(), me * part + e); });
        EXPECT_TRUE(mine == expected) << program::name_of(type) << " x " << size;
      }
    }
  });
}

TEST_P(CommunicatorConformance, ReduceScatterIntoItsOwnPlaceLeavesTheRest) {
  on_all_ranks([](Communicator& communicator, int group) {
    constexpr std::int64_t kPart = 1500;
    const auto me = static_cast<std::int64_t>(communicator.rank());
    std::vector<double> whole(static_cast<std::size_t>(kPart * count()), 1.0 + communicator.rank());
    communicator.reduce_scatter(group, whole.data(), whole.data() + me * kPart, kPart * count(), DType::kFp64);
    for (std::int64_t e = 0; e < kPart * count(); ++e) {
      // 1 + 2 + … + c = c (c + 1) / 2 in the own part.
      const double expected = e / kPart == me ? count() * (count() + 1) / 2.0 : 1.0 + communicator.rank();
      EXPECT_EQ(whole[static_cast<std::size_t>(e)], expected);
    }
  });
}

TEST_P(CommunicatorConformance, AllGatherPutsPartsInRankOrder) {
  on_all_ranks([](Communicator& communicator, int group) {
    const std::int64_t me = communicator.rank();
    for (const std::int64_t part : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{30001}}) {
      std::vector<std::int32_t> mine(static_cast<std::size_t>(part)), whole(static_cast<std::size_t>(part * count()));
      std::iota(mine.begin(), mine.end(), static_cast<std::int32_t>(me * part));
      std::vector<std::int32_t> expected(whole.size());
      std::iota(expected.begin(), expected.end(), 0);
      communicator.all_gather(group, mine.data(), whole.data(), part * count(), DType::kInt32);
      EXPECT_TRUE(whole == expected) << part;
      // Again with the part in its own place of the whole.
      std::fill(whole.begin(), whole.end(), -1);
      std::copy(mine.begin(), mine.end(), whole.begin() + me * part);
      communicator.all_gather(group, whole.data() + me * part, whole.data(), part * count(), DType::kInt32);
      EXPECT_TRUE(whole == expected) << part;
    }
  });
}

TEST_P(CommunicatorConformance, BroadcastCopiesFromAnyRoot) {
  on_all_ranks([](Communicator& communicator, int group) {
    for (int root = 0; root < count(); ++root) {
      for (const std::int64_t bytes : {0, 1, 77777}) {
        const auto fill = static_cast<unsigned char>(root + 1);
        std::vector<unsigned char> data(static_cast<std::size_t>(bytes), communicator.rank() == root ? fill : 0);
        communicator.broadcast(group, data.data(), bytes, root);
        EXPECT_EQ(std::count(data.begin(), data.end(), fill), bytes);
      }
    }
  });
}

TEST_P(CommunicatorConformance, SubgroupsWorkAtTheSameTime) {
  // Even and odd ranks; the odd ones call twice as often, so the groups run apart. Then everyone meets again.
  on_all_ranks([](Communicator& communicator, int all) {
    std::vector<int> half;
    for (int rank = communicator.rank() % 2; rank < count(); rank += 2) half.push_back(rank);
    const int group = communicator.make_group(half);
    const bool is_odd = communicator.rank() % 2 == 1;
    double expected = 0;
    for (const int rank : half) expected += rank;
    for (int repeat = 0; repeat < (is_odd ? 100 : 50); ++repeat) {
      std::vector<double> data(repeat % 2 == 0 ? 3 : 3000, communicator.rank());
      communicator.all_reduce(group, data.data(), static_cast<std::int64_t>(data.size()), DType::kFp64,
                              Reduction::kSum);
      EXPECT_EQ(data.front(), expected);
      EXPECT_EQ(data.back(), expected);
    }
    communicator.barrier(all);
    double total = 1;
    communicator.all_reduce(all, &total, 1, DType::kFp64, Reduction::kSum);
    EXPECT_EQ(total, count());
  });
}

}  // namespace trivium::runtime
