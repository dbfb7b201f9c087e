#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "simulator/analytic/schedule_costs.h"

namespace trivium::simulator {
namespace {

// Equal chunks: forward 10, backward 20, transfers as told.
ScheduleCosts equal_stages(int pipeline, int virtual_stages, std::int64_t micro_batches, std::int64_t transfer) {
  ScheduleCosts schedule_costs;
  schedule_costs.schedule = virtual_stages > 1 ? program::Schedule::kInterleaved : program::Schedule::k1f1b;
  schedule_costs.pipeline = pipeline;
  schedule_costs.virtual_stages = virtual_stages;
  schedule_costs.micro_batches = micro_batches;
  schedule_costs.chunks.assign(static_cast<std::size_t>(pipeline * virtual_stages), {10, 20, transfer, transfer});
  schedule_costs.endings.resize(static_cast<std::size_t>(pipeline));
  return schedule_costs;
}

TEST(ScheduleCosts, OneStageIsItsMicroBatches) { EXPECT_EQ(lower_bound_ps(equal_stages(1, 1, 8, 0)), 8 * 30); }

// 1F1B with equal stages: (m + p - 1) (f + b) = (8 + 3) 30.
TEST(ScheduleCosts, BubbleOfEqualStagesIsPipelineMinusOneOverMicroBatches) {
  EXPECT_EQ(lower_bound_ps(equal_stages(4, 1, 8, 0)), 330);
}

// Two stages of two chunks, two micro-batches, transfers of 5: the first micro-batch goes forward in 4 x 10 + 3 x 5
// = 55. By then the last stage has done its first chunk's two forwards and this one; left are 1 x 10 forward and 1 x 20
// backward of its second chunk, and of the first chunk nothing but what comes after. The last micro-batch then goes
// back in 4 x 20 + 3 x 5 = 95.
TEST(ScheduleCosts, InterleavedTheEndsGoThroughAllChunks) {
  ScheduleCosts schedule_costs = equal_stages(2, 2, 2, 5);
  EXPECT_EQ(pass_ends(schedule_costs).stages[0], 55 + 30 + 95);
  EXPECT_GE(recurrence_ends(schedule_costs).stages[0], 180);
}

// Equal stages without transfers: the walk finds the closed form.
TEST(ScheduleCosts, WalkOfEqualStagesIsTheClosedForm) {
  for (const int pipeline : {1, 2, 4, 8}) {
    const ScheduleCosts schedule_costs = equal_stages(pipeline, 1, 16, 0);
    EXPECT_EQ(recurrence_ends(schedule_costs).stages.front(), (16 + pipeline - 1) * 30);
  }
}

// One stage whose gradients (4 a layer, one layer) are reduced after every micro-batch: without a second slot each
// forward waits for the reduction before it, 3 x (10 + 20) + 2 x 4; the last reduction is no part of the passes.
TEST(ScheduleCosts, ReductionsBetweenMicroBatchesHoldUpTheStage) {
  ScheduleCosts schedule_costs = equal_stages(2, 1, 3, 0);
  for (ScheduleCosts::Chunk& chunk : schedule_costs.chunks) chunk.layers = 1;
  const std::int64_t without = recurrence_ends(schedule_costs).stages[1];
  ScheduleCosts::Chunk& reduced = schedule_costs.chunks[1];
  reduced.reduce_layer = reduced.reduce_layers = 4;
  EXPECT_EQ(recurrence_ends(schedule_costs).stages[1], without + 2 * 4);
}

// The middle one of three stages, 10 times as slow as the others, of three micro-batches: from 10 on it does F0 F1 B0
// F2 B1 B2, 3 x (100 + 200). With one layer gathered ahead there are two slots. The only layer of a chunk has the first
// one, so that each of 5 passes waits for its gather (4) after the pass before it. Of two layers the last read is the
// second one of a forward and the first one of a backward, and the first read is the other: B0, F2 and B1 wait.
TEST(ScheduleCosts, LayersAreGatheredWhenTheirSlotHasBeenRead) {
  ScheduleCosts schedule_costs = equal_stages(3, 1, 3, 0);
  ScheduleCosts::Chunk& middle = schedule_costs.chunks[1];
  middle.kind = 1;
  middle.forward = 100;
  middle.backward = 200;
  middle.layers = 1;
  EXPECT_EQ(recurrence_ends(schedule_costs).stages[1], 10 + 900);
  schedule_costs.gathered_ahead = 1;
  middle.gather_layer = 4;
  EXPECT_EQ(recurrence_ends(schedule_costs).stages[1], 10 + 900 + 5 * 4);
  middle.layers = 2;
  EXPECT_EQ(recurrence_ends(schedule_costs).stages[1], 10 + 900 + 3 * 4);
  middle.again_first = true;  // which layer a backward reads first is not known: F2 alone
  EXPECT_EQ(recurrence_ends(schedule_costs).stages[1], 10 + 900 + 4);
}

// Copies of 30 each way of every micro-batch: the lane is busy 3 x 60 after the first forward's start.
TEST(ScheduleCosts, CopiesOfActivationsHoldUpTheStage) {
  ScheduleCosts schedule_costs = equal_stages(2, 1, 3, 0);
  schedule_costs.chunks[0].store = schedule_costs.chunks[0].fetch = 30;
  EXPECT_EQ(recurrence_ends(schedule_costs).stages[0], 180);
}

// Random chunks, transfers, second halves, copies, reductions and gathers: what repeats is left out to the same ends.
TEST(ScheduleCosts, RoundsThatRepeatAreCountedToTheSameEnds) {
  std::mt19937 random(5);
  const auto any = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  for (int i = 0; i < 3000; ++i) {
    const int pipeline = any(1, 6), virtual_stages = any(0, 2) == 0 && pipeline > 1 ? any(2, 3) : 1;
    const int rounds = any(1, 120);
    ScheduleCosts schedule_costs =
        equal_stages(pipeline, virtual_stages, virtual_stages > 1 ? rounds * pipeline : rounds, 0);
    if (virtual_stages == 1 && any(0, 3) == 0) schedule_costs.schedule = program::Schedule::kZeroBubble;
    if (virtual_stages == 2 && any(0, 1) == 0) {
      schedule_costs.schedule = any(0, 1) == 0 ? program::Schedule::kZbv : program::Schedule::kDualPipeV;
      schedule_costs.micro_batches = rounds * any(1, 3);
    }
    schedule_costs.reduces_beside = any(0, 1) == 0;
    schedule_costs.gathered_ahead = any(0, 2);
    const bool unequal = any(0, 1) == 0, copies = any(0, 3) == 0, reduces = any(0, 3) == 0, gathers = any(0, 3) == 0;
    const int transfer = any(0, 2) * any(0, 40);
    for (ScheduleCosts::Chunk& chunk : schedule_costs.chunks) {
      if (unequal) chunk.forward = any(1, 30), chunk.backward = any(1, 60);
      chunk.send_forward = chunk.send_backward = transfer;
      if (program::traits_of(schedule_costs.schedule).splits_backward) chunk.weights = any(0, 30);
      chunk.layers = any(1, 3);
      chunk.kind = any(0, 1);
      if (copies) chunk.store = chunk.fetch = any(0, 40), chunk.fetch_inner = chunk.store / 2;
      if (reduces) {
        chunk.reduce_layer = any(1, 20);
        const int more = any(0, 10);
        if (chunk.layers > 1) chunk.reduce_left = chunk.reduce_layer + more;
        chunk.reduce_layers = chunk.layers * chunk.reduce_layer;
      }
      if (gathers) chunk.gather_layer = any(1, 20), chunk.gathered = any(0, 200);
    }
    const PassEnds counted = recurrence_ends(schedule_costs), walked = recurrence_ends(schedule_costs, Rounds::kAll);
    ASSERT_EQ(counted.stages, walked.stages) << i;
    ASSERT_EQ(counted.last_backward, walked.last_backward) << i;
  }
}

// Two chunks a stage in a V, without transfers.
ScheduleCosts v_of(program::Schedule schedule, int pipeline, std::int64_t m, std::int64_t f, std::int64_t b,
                   std::int64_t w) {
  ScheduleCosts schedule_costs = equal_stages(pipeline, 2, m, 0);
  schedule_costs.schedule = schedule;
  for (ScheduleCosts::Chunk& chunk : schedule_costs.chunks) chunk.forward = f, chunk.backward = b, chunk.weights = w;
  return schedule_costs;
}

// ZB-V has no bubble where forward and halves of a backward take as long (Qi et al. 2023, section 6): stage s works
// without a break from the first micro-batch's arrival, s f, for its 6 m passes of chunks.
TEST(ScheduleCosts, ZbvOfEqualPassesHasNoBubble) {
  for (const int pipeline : {2, 4, 8}) {
    for (const std::int64_t m : {2 * pipeline - 1, 2 * pipeline, 40, 400}) {
      const PassEnds ends = recurrence_ends(v_of(program::Schedule::kZbv, pipeline, m, 10, 10, 10));
      for (int s = 0; s < pipeline; ++s) {
        EXPECT_EQ(ends.stages[static_cast<std::size_t>(s)], (s + 6 * m) * 10) << pipeline << " " << m << " " << s;
      }
    }
  }
}

// Where w <= f <= b the last stage ends (p - 1) max(b, 2 (b - w)) after its own work; by hand for p = 2, m = 3, f = 2,
// b = 3, w = 1. Stage 0 (chunks 0 and 3) and stage 1 (1 and 2), F and B with chunk and micro-batch:
//   0: F00 0-2  F01 2-4  F02 4-6  F30 6-8  B30 8-11  W30 11-12  F31 12-14 B31 14-17 W31 17-18
//   1: F10 2-4  F20 4-6  F11 6-8  F21 8-10 B20 11-14 W20 14-15  F12 15-17 B10 17-20 W10 20-21 F22 21-23 B21 23-26 …
//   0: B00 20-23 W00 23-24 F32 24-26 B32 26-29 W32 29-30;  1: W21 26-27 B11 27-30 B22 30-33 B12 33-36 W11 W22 W12 36-39
//   0: B01 30-33 W01 33-34 B02 36-39 W02 39-40
// against 2 m (f + b + w) = 36: 4 = 2 (b - w).
TEST(ScheduleCosts, ZbvOfUnequalPassesByHand) {
  EXPECT_EQ(recurrence_ends(v_of(program::Schedule::kZbv, 2, 3, 2, 3, 1)).stages, (std::vector<std::int64_t>{40, 39}));
  for (const int pipeline : {3, 4, 6}) {
    for (const auto& [f, b, w] : {std::tuple{4, 6, 4}, {6, 8, 4}, {8, 10, 2}, {10, 12, 9}}) {
      const std::vector<std::int64_t> ends =
          recurrence_ends(v_of(program::Schedule::kZbv, pipeline, 24, f, b, w)).stages;
      EXPECT_EQ(*std::max_element(ends.begin(), ends.end()),
                48 * (f + b + w) + (pipeline - 1) * std::max(b, 2 * (b - w)));
    }
  }
}

// Without overlap of a forward with a backward, DualPipeV idles while the first micro-batch reaches the last stage.
TEST(ScheduleCosts, DualPipeVOfEqualPasses) {
  const std::vector<std::int64_t> ends = recurrence_ends(v_of(program::Schedule::kDualPipeV, 4, 8, 1, 1, 1)).stages;
  EXPECT_EQ(ends, (std::vector<std::int64_t>(4, 6 * 8 + 3)));
}

// Two chunks a stage: 2 m (f + b) + (p - 1) (f + b) = 480 + 90, half the bubble for the work.
TEST(ScheduleCosts, InterleavingHalvesTheBubble) { EXPECT_EQ(lower_bound_ps(equal_stages(4, 2, 8, 0)), 570); }

// Two stages, transfers of 50. Stage 0 has two micro-batches under way; a round trip is 30 + 50 + 30 + 50 = 160 for
// both, so four micro-batches take two of them, the second backward of the last round after them: 320 + 20.
TEST(ScheduleCosts, SlowTransfersLimitAFullPipe) { EXPECT_EQ(lower_bound_ps(equal_stages(2, 1, 4, 50)), 340); }

// Sequential: every micro-batch runs up and down alone, 70 each.
TEST(ScheduleCosts, SequentialRunsOneMicroBatchAtATime) {
  ScheduleCosts schedule_costs = equal_stages(2, 1, 4, 5);
  schedule_costs.schedule = program::Schedule::kSequential;
  EXPECT_EQ(lower_bound_ps(schedule_costs), 280);
}

// One stage: 30, reduction 7, norm 2, its reduction 1, then gathers of 6 in all after the first bucket's step of 1: 7,
// against all steps and the last gather, 4 + 2.
TEST(ScheduleCosts, StepFollowsTheLastBackward) {
  ScheduleCosts schedule_costs = equal_stages(1, 1, 1, 0);
  schedule_costs.endings[0] = {7, 2, 4, 1, 6, 2};
  schedule_costs.norm_reduce = 1;
  EXPECT_EQ(lower_bound_ps(schedule_costs), 30 + 7 + 2 + 1 + 7);
}

// The norm joins the stages: stage 1 ends at 10 + 30 = 40 and reduces for 50; stage 0, at 60, waits for it with its
// step of 9.
TEST(ScheduleCosts, NormWaitsForTheSlowestStage) {
  ScheduleCosts schedule_costs = equal_stages(2, 1, 1, 0);
  schedule_costs.norm_joins_stages = true;
  schedule_costs.endings[1].reduce = 50;
  schedule_costs.endings[0].optimizer = 9;
  EXPECT_EQ(lower_bound_ps(schedule_costs), 40 + 50 + 9);
}

}  // namespace
}  // namespace trivium::simulator
