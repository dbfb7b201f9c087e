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
    text += (slot.forward ? 'F' : slot.weights ? 'W' : 'B') + std::to_string(slot.micro_batch);
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

// PyTorch's order, p = 2, m = 4. Stage 0 warms up with 3 forwards of its first chunk, then runs the second chunk alone
// twice; stage 1 with one of the first and one of each. Cooling down, stage 1 leaves three second halves for the end.
TEST(Schedule, ZbvOfTwoStagesAndFourMicroBatches) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kZbv, 0, 2, 2, 4), true),
            "F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 F3.0 B0.0 W0.0 F2.1 B2.1 W2.1 B1.0 W1.0 F3.1 B3.1 W3.1 "
            "B2.0 W2.0 B3.0 W3.0");
  EXPECT_EQ(text_of(schedule_of(Schedule::kZbv, 1, 2, 2, 4), true),
            "F0.0 F0.1 F1.0 F1.1 B0.1 W0.1 F2.0 B0.0 W0.0 F2.1 B1.1 W1.1 F3.0 B1.0 W1.0 F3.1 B2.1 W2.1 "
            "B2.0 B3.1 B3.0 W2.0 W3.1 W3.0");
}

// The order of three micro-batches or more, less those that there are not.
TEST(Schedule, ZbvOfFewerMicroBatchesThanItTakesToFillThePipeline) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kZbv, 0, 2, 2, 1), true), "F0.0 F0.1 B0.1 W0.1 B0.0 W0.0");
  EXPECT_EQ(text_of(schedule_of(Schedule::kZbv, 0, 2, 2, 2), true),
            "F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0");
}

TEST(Schedule, DualPipeVOfTwoStagesAndFourMicroBatches) {
  EXPECT_EQ(text_of(schedule_of(Schedule::kDualPipeV, 0, 2, 2, 4), true),
            "F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 F3.0 B1.1 W1.1 F2.1 B0.0 W0.0 B2.1 W2.1 F3.1 B1.0 W1.0 "
            "B3.1 W3.1 B2.0 W2.0 B3.0 W3.0");
  EXPECT_EQ(text_of(schedule_of(Schedule::kDualPipeV, 1, 2, 2, 4), true),
            "F0.0 F0.1 F1.0 F1.1 F2.0 B0.1 W0.1 F2.1 B0.0 W0.0 F3.0 B1.1 W1.1 F3.1 B1.0 W1.0 B2.1 W2.1 B2.0 W2.0 "
            "B3.1 B3.0 W3.1 W3.0");
}

// Chunks 0 to 7 of four stages: in turn 0 1 2 3 0 1 2 3, in a V 0 1 2 3 3 2 1 0.
TEST(Schedule, ChunksLieInTurnOrInAV) {
  const ScheduleTraits &turn = traits_of(Schedule::kInterleaved), &v = traits_of(Schedule::kZbv);
  std::vector<int> in_turn, in_v, stay;
  for (int position = 0; position < 8; ++position) {
    in_turn.push_back(turn.stage_of(position, 4));
    in_v.push_back(v.stage_of(position, 4));
    for (const ScheduleTraits* traits : {&turn, &v}) {
      EXPECT_EQ(traits->position_of(traits->stage_of(position, 4), position / 4, 4), position);
    }
    if (v.stays(position, 4)) stay.push_back(position);
    EXPECT_FALSE(turn.stays(position, 4));
  }
  EXPECT_EQ(in_turn, (std::vector{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(in_v, (std::vector{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(stay, std::vector{4});
}

struct Drawn {
  Schedule schedule;
  StagePlace place;
  std::int64_t micro_batches;
  std::vector<Slot> slots;
};

/// Every schedule of the table with pipelines of many depths, of every stage.
std::vector<Drawn> drawn() {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<Drawn> all;
  for (const ScheduleTraits& traits : schedule_table()) {
    for (int round = 0; round < 150; ++round) {
      const int pipeline = traits.virtual_stages ? pick(2, 9) : pick(1, 9);
      const int chunks = traits.chunks > 0 ? traits.chunks : traits.virtual_stages ? pick(2, 5) : 1;
      const std::int64_t count = traits.round(pipeline) > 1 ? pipeline * pick(1, 6) : pick(1, 40);
      for (int stage = 0; stage < pipeline; ++stage) {
        all.push_back({traits.schedule,
                       {stage, pipeline, chunks},
                       count,
                       schedule_of(traits.schedule, stage, pipeline, chunks, count)});
      }
    }
  }
  return all;
}

std::string words_of(const Drawn& drawn) {
  return std::string(name_of(drawn.schedule)) + " stage " + std::to_string(drawn.place.stage) + " of " +
         std::to_string(drawn.place.pipeline) + ": " + text_of(drawn.slots, true);
}

// Forward, backward and, where it is split, its second half: each once, each kind in micro-batch order.
TEST(Schedule, EveryMicroBatchPassesForwardThenBackwardOnceInOrder) {
  for (const Drawn& one : drawn()) {
    const int halves = traits_of(one.schedule).splits_backward ? 2 : 1, chunks = one.place.virtual_stages;
    ASSERT_EQ(static_cast<std::int64_t>(one.slots.size()), (1 + halves) * chunks * one.micro_batches) << words_of(one);
    std::map<int, std::int64_t> forward, backward, weights;
    for (const Slot& slot : one.slots) {
      auto& next = slot.forward ? forward : slot.weights ? weights : backward;
      ASSERT_EQ(slot.micro_batch, next[slot.chunk]++) << words_of(one);
      ASSERT_LE(backward[slot.chunk], forward[slot.chunk]) << words_of(one);
      ASSERT_LE(weights[slot.chunk], backward[slot.chunk]) << words_of(one);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      ASSERT_EQ(backward[chunk], one.micro_batches) << words_of(one);
      ASSERT_EQ(weights[chunk], (halves - 1) * one.micro_batches) << words_of(one);
    }
  }
}

// A stage without its neighbours runs its slots as they come; all of them together must not wait in a circle: a forward
// needs that of the previous chunk, a backward that of the next.
TEST(Schedule, StagesTogetherComeToTheEnd) {
  const std::vector<Drawn> all = drawn();
  for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(all[first].place.pipeline)) {
    const StagePlace& place = all[first].place;
    const int last_chunk = place.pipeline * place.virtual_stages - 1;
    std::map<int, std::int64_t> forward, backward;  // done, by chunk in model order
    std::vector<std::size_t> at(static_cast<std::size_t>(place.pipeline), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < at.size(); ++s) {
        const std::vector<Slot>& slots = all[first + s].slots;
        for (; at[s] < slots.size(); ++at[s], moved = true) {
          const Slot& slot = slots[at[s]];
          const int chunk = traits_of(all[first].schedule).position_of(static_cast<int>(s), slot.chunk, place.pipeline);
          if (slot.forward && chunk > 0 && forward[chunk - 1] <= slot.micro_batch) break;
          if (!slot.forward && chunk < last_chunk && backward[chunk + 1] <= slot.micro_batch) break;
          if (!slot.weights) ++(slot.forward ? forward : backward)[chunk];
        }
      }
    }
    for (std::size_t s = 0; s < at.size(); ++s) {
      ASSERT_EQ(at[s], all[first + s].slots.size()) << words_of(all[first + s]);
    }
  }
}

// The memory rule is what counting the slots finds: never more in flight, and as many at some time.
TEST(Schedule, HoldsAsManyMicroBatchesAsItsRuleSays) {
  for (const Drawn& one : drawn()) {
    const SlotOrder order = order_of(one.schedule, one.place, one.micro_batches);
    std::int64_t alive = 0, halves = 0, most = 0, most_halves = 0;
    for (const Slot& slot : one.slots) {
      if (slot.forward) ++alive;
      most = std::max(most, alive);
      if (order.splits_backward && !slot.forward) halves += slot.weights ? -1 : 1;
      most_halves = std::max(most_halves, halves);
      if (!slot.forward && slot.weights == order.splits_backward) --alive;
    }
    ASSERT_EQ(order.in_flight(), most) << words_of(one);
    ASSERT_EQ(order.between_halves(), most_halves) << words_of(one);
    ASSERT_EQ(alive, 0) << words_of(one);
  }
}

// By hand: 1f1b holds the stages that follow and itself, zero_bubble the whole pipeline, interleaved on stage 0 of 4
// with 2 chunks 2 * 3 + 4 forwards of warm-up and one, zbv as many halves of a stage as two pipelines are long, and
// dualpipev one more.
TEST(Schedule, InFlightByHand) {
  EXPECT_EQ(order_of(Schedule::kSequential, {1, 4, 1}, 16).in_flight(), 1);
  EXPECT_EQ(order_of(Schedule::kGpipe, {1, 4, 1}, 16).in_flight(), 16);
  EXPECT_EQ(order_of(Schedule::k1f1b, {1, 4, 1}, 16).in_flight(), 3);
  EXPECT_EQ(order_of(Schedule::kInterleaved, {0, 4, 2}, 16).in_flight(), 11);
  EXPECT_EQ(order_of(Schedule::kZeroBubble, {1, 4, 1}, 16).in_flight(), 4);
  EXPECT_EQ(order_of(Schedule::kZeroBubble, {1, 4, 1}, 16).between_halves(), 2);
  EXPECT_EQ(order_of(Schedule::k1f1b, {0, 4, 1}, 2).in_flight(), 2);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(order_of(Schedule::kZbv, {stage, 4, 2}, 1000).in_flight(), 8);
    EXPECT_EQ(order_of(Schedule::kZbv, {stage, 4, 2}, 1000).between_halves(), 2 * stage + 1);
    EXPECT_EQ(order_of(Schedule::kDualPipeV, {stage, 4, 2}, 1000).in_flight(), 9);
  }
}

TEST(Schedule, UsualOnesAreThoseThatPlansNameMost) {
  EXPECT_EQ(usual_schedule(1), kUsualSchedule);
  EXPECT_EQ(usual_schedule(2), Schedule::kInterleaved);
  EXPECT_EQ(usual_schedule(1, true), Schedule::kZeroBubble);
}

// p = 4, m = 8: 3 / 8 of the passes, with two chunks a stage 3 / 16.
TEST(Schedule, BubblesInWords) {
  const auto bubble = [](Schedule schedule, int chunks) { return traits_of(schedule).bubble({0, 4, chunks}, 8); };
  EXPECT_EQ(bubble(Schedule::k1f1b, 1), "equal stages idle (p - 1) / m = 3 / 8 = 37.5 % of their passes");
  EXPECT_EQ(bubble(Schedule::kGpipe, 1), bubble(Schedule::k1f1b, 1));
  EXPECT_EQ(bubble(Schedule::kInterleaved, 2), "equal stages idle (p - 1) / vm = 3 / 16 = 18.8 % of their passes");
  EXPECT_EQ(bubble(Schedule::kZeroBubble, 1), "equal stages idle (p - 1)(f + b - w), p - 1 = 3 of 8 micro-batches");
  EXPECT_EQ(bubble(Schedule::kZbv, 2),
            "equal stages idle (p - 1) max(b, 2(b - w)) of a chunk, p - 1 = 3 of 16 such passes");
  EXPECT_EQ(bubble(Schedule::kDualPipeV, 2), "where f = b = w, equal stages idle p - 1 = 3 of 48 passes of chunks");
  EXPECT_EQ(bubble(Schedule::kSequential, 1), "the sequential schedule runs one stage at a time");
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
