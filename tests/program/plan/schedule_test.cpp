#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "program/schedules/slots.h"

namespace trivium::program {
namespace {

/// "F0 B0 …"; with virtual stages "F0.1" is micro-batch 0 of chunk 1.
std::string text_of(const std::vector<Slot>& slots, bool chunks = false) {
  std::string text;
  for (const Slot& slot : slots) {
    if (!text.empty()) text += ' ';
    text += (slot.forward ? 'F' : 'B') + std::to_string(slot.micro_batch);
    if (chunks) text += '.' + std::to_string(slot.chunk);
  }
  return text;
}

TEST(Schedule, OneForwardOneBackwardOfFourStagesAndEightMicroBatches) {
  // Stage 0 warms up with p - 1 = 3 forwards and cools down with 3 backwards.
  EXPECT_EQ(text_of(schedule_of(Schedule::k1f1b, 0, 4, 1, 8)), "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  EXPECT_EQ(text_of(schedule_of(Schedule::k1f1b, 1, 4, 1, 8)), "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7");
  EXPECT_EQ(text_of(schedule_of(Schedule::k1f1b, 3, 4, 1, 8)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST(Schedule, OneForwardOneBackwardWithFewerMicroBatchesThanStages) {
  EXPECT_EQ(text_of(schedule_of(Schedule::k1f1b, 0, 4, 1, 2)), "F0 F1 B0 B1");
  EXPECT_EQ(text_of(schedule_of(Schedule::k1f1b, 2, 4, 1, 2)), "F0 F1 B0 B1");
}

TEST(Schedule, GpipeRunsAllForwardsFirst) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kGpipe, 1, 4, 1, 3)), "F0 F1 F2 B0 B1 B2");
}

TEST(Schedule, SequentialFinishesAMicroBatchBeforeTheNext) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kSequential, 0, 4, 1, 3)), "F0 B0 F1 B1 F2 B2");
}

TEST(Schedule, InterleavedFollowsMegatronsOrder) {
  // Megatron-LM, forward_backward_pipelining_with_interleaving, p = 2, v = 2, m = 4. Virtual micro-batch k of 8 is
  // micro-batch k / 4 * 2 + k % 2 of chunk k % 4 / 2 (backward: 1 minus that):
  //   k         0    1    2    3    4    5    6    7
  //   forward   0.0  1.0  0.1  1.1  2.0  3.0  2.1  3.1
  //   backward  0.1  1.1  0.0  1.0  2.1  3.1  2.0  3.0
  // warm-up (p - rank - 1) * 2 + (v - 1) * p: 4 on rank 0, 2 on rank 1.
  EXPECT_EQ(text_of(schedule_of(Schedule::kInterleaved, 0, 2, 2, 4), true),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text_of(schedule_of(Schedule::kInterleaved, 1, 2, 2, 4), true),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

TEST(Schedule, InterleavedWithOneRoundIsAllForwardsThenAllBackwardsOnTheFirstStage) {
  // m = p = 2: total 4 virtual micro-batches, warm-up 2 + 2 = 4.
  EXPECT_EQ(text_of(schedule_of(Schedule::kInterleaved, 0, 2, 2, 2), true), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
}

TEST(Schedule, EveryMicroBatchPassesForwardThenBackwardOnceInOrder) {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 300; ++round) {
    const int pipeline = pick(2, 8);
    const auto schedule = static_cast<Schedule>(pick(0, 3));
    const bool interleaved = schedule == Schedule::kInterleaved;
    const int chunks = interleaved ? pick(2, 4) : 1;
    const int count = interleaved ? pipeline * pick(1, 5) : pick(1, 20);
    for (int stage = 0; stage < pipeline; ++stage) {
      const auto slots = schedule_of(schedule, stage, pipeline, chunks, count);
      ASSERT_EQ(static_cast<int>(slots.size()), 2 * chunks * count);
      std::map<int, std::int64_t> next_forward, next_backward;
      for (const Slot& slot : slots) {
        ASSERT_EQ(slot.micro_batch, (slot.forward ? next_forward : next_backward)[slot.chunk]++)
            << name_of(schedule) << " stage " << stage << " of " << pipeline << ": " << text_of(slots, true);
        ASSERT_LE(next_backward[slot.chunk], next_forward[slot.chunk]);
      }
      for (int chunk = 0; chunk < chunks; ++chunk) ASSERT_EQ(next_backward[chunk], count);
    }
  }
}

TEST(Schedule, FramesOfOneForwardOneBackwardAreTheStagesThatFollow) {
  for (int pipeline = 1; pipeline <= 8; ++pipeline) {
    for (int count = 1; count <= 12; ++count) {
      for (int stage = 0; stage < pipeline; ++stage) {
        EXPECT_EQ(frames_needed(schedule_of(Schedule::k1f1b, stage, pipeline, 1, count), 0),
                  std::min(count, pipeline - stage));
        EXPECT_EQ(frames_needed(schedule_of(Schedule::kGpipe, stage, pipeline, 1, count), 0), count);
        EXPECT_EQ(frames_needed(schedule_of(Schedule::kSequential, stage, pipeline, 1, count), 0), 1);
      }
    }
  }
}

TEST(Schedule, FramesOfTheInterleavedExampleByHand) {
  // From the orders above. Rank 0, chunk 0: F0 F1 F2 F3 before B0; chunk 1: F0 F1 before B0, then B0 B1 F2 F3: 2.
  // Rank 1, chunk 0: F0 F1 F2 then B0: 3; chunk 1: F0 B0 F1 B1 …: 1.
  const auto first = schedule_of(Schedule::kInterleaved, 0, 2, 2, 4),
             second = schedule_of(Schedule::kInterleaved, 1, 2, 2, 4);
  EXPECT_EQ(frames_needed(first, 0), 4);
  EXPECT_EQ(frames_needed(first, 1), 2);
  EXPECT_EQ(frames_needed(second, 0), 3);
  EXPECT_EQ(frames_needed(second, 1), 1);
}

}  // namespace
}  // namespace trivium::program
