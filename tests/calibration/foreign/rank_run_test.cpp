#include "calibration/foreign/rank_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/foreign/rank_times.h"
#include "tests/calibration/foreign/made_trace.h"

namespace trivium::calibration::foreign {
namespace {

using imports::KernelTrace;

RankRun run_of(const KernelTrace& trace, int rank) {
  RankRun run{rank, &trace, match_kernels(trace, {}), {}, 0};
  run.steps = whole_steps(trace, run.matches);
  return run;
}

/// An iteration of 100 us from `t`: a norm that ends at `computes`, then a collective until 80.
MadeTrace& iteration(MadeTrace& trace, int number, double t, double computes) {
  trace.step(number, t, t + 100);
  trace.op("aten::native_layer_norm", t, t + 1).kernel("layer_norm_kernel", t, t + computes);
  return trace.collective("allreduce", t + computes, t + 80);
}

TEST(WholeSteps, AreAllThatAreMarked) {
  MadeTrace trace;
  for (int i = 0; i < 4; ++i) iteration(trace, i, 100.0 * i, 30);
  const KernelTrace read = trace.read();
  const auto steps = whole_steps(read, match_kernels(read, {}));
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_NEAR(steps[0].begin_s, 0, 1e-12);
  EXPECT_NEAR(steps[3].end_s, 400e-6, 1e-12);
}

// Optimizers end at 50, 150 and 250 us: two whole iterations between them.
TEST(WholeSteps, EndWithTheOptimizerWhereNoneIsMarked) {
  MadeTrace trace;
  for (int i = 0; i < 3; ++i) {
    trace.op("aten::mm", 100 * i, 100 * i + 1).kernel("gemm", 100 * i, 100 * i + 30);
    trace.op("aten::_fused_adamw_", 100 * i + 2, 100 * i + 3).kernel("adam_kernel", 100 * i + 40, 100 * i + 45);
    trace.kernel("adam_kernel", 100 * i + 45, 100 * i + 50);
  }
  const KernelTrace read = trace.read();
  const auto steps = whole_steps(read, match_kernels(read, {}));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_NEAR(steps[0].begin_s, 50e-6, 1e-12);
  EXPECT_NEAR(steps[1].end_s, 250e-6, 1e-12);
}

TEST(WholeSteps, AreReturnsOfTheRarestKernelWhereNothingElseTells) {
  MadeTrace trace;
  for (int i = 0; i < 3; ++i) {
    trace.op("aten::silu", 100 * i, 100 * i + 1)
        .kernel("silu", 100 * i, 100 * i + 5)
        .kernel("silu", 100 * i + 9, 100 * i + 12);
    trace.kernel("seldom", 100 * i + 20, 100 * i + 30);
  }
  const KernelTrace read = trace.read();
  const auto steps = whole_steps(read, match_kernels(read, {}));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_NEAR(steps[0].begin_s, 20e-6, 1e-12);
}

// Experts are not chosen evenly: what a rank gives in an exchange is not what another one gives.
TEST(Alignment, UnevenExchangesMeet) {
  MadeTrace first(0, 2), second(1, 2);
  for (int i = 0; i < 2; ++i) {
    first.step(i, 100.0 * i, 100.0 * i + 100).collective("all_to_allv", 100.0 * i + 30, 100.0 * i + 80, 1 << 20);
    second.step(i, 100.0 * i, 100.0 * i + 100).collective("all_to_allv", 100.0 * i + 60, 100.0 * i + 80, 1 << 18);
  }
  const KernelTrace one = first.read(), two = second.read();
  std::vector<RankRun> runs{run_of(one, 0), run_of(two, 1)};
  ASSERT_EQ(rendezvous_of(runs).size(), 2U);
  EXPECT_NEAR(times_of(runs)[0].waits_s.at(1), 30e-6, 1e-9);
}

// Rank 1's clock is 5 s ahead. Its norm takes 60 us, rank 0's 30: so rank 0 waits from 30 to 60, both move 60 to 80.
TEST(Alignment, CollectivesEndTogetherOnAllClocks) {
  MadeTrace first(0, 2), second(1, 2);
  for (int i = 0; i < 2; ++i) {
    iteration(first, i, 100.0 * i, 30);
    iteration(second, i, 5e6 + 100.0 * i, 60);
  }
  const KernelTrace one = first.read(), two = second.read();
  std::vector<RankRun> runs{run_of(one, 0), run_of(two, 1)};
  align(runs);
  EXPECT_DOUBLE_EQ(runs[0].shift_s, 0);
  EXPECT_NEAR(runs[1].shift_s, -5, 1e-9);
  EXPECT_EQ(rendezvous_of(runs).size(), 2U);

  const std::vector<RankTimes> times = times_of(runs);
  EXPECT_NEAR(times[0].compute_s, 30e-6, 1e-9);
  EXPECT_NEAR(times[0].waits_s.at(1), 30e-6, 1e-9);
  EXPECT_NEAR(times[0].exposed_s.at("all_reduce"), 20e-6, 1e-9);
  EXPECT_NEAR(times[0].idle_s, 20e-6, 1e-9);
  EXPECT_TRUE(times[1].waits_s.empty());
  EXPECT_NEAR(times[1].compute_s, 60e-6, 1e-9);
  for (const RankTimes& rank : times) {
    EXPECT_NEAR(rank.ops.at("all_reduce").seconds, 20e-6, 1e-9);  // without the wait
    EXPECT_DOUBLE_EQ(rank.ops.at("all_reduce").count, 1);
    EXPECT_DOUBLE_EQ(rank.ops.at("all_reduce").bytes, 2 << 20);
  }
}

TEST(Alignment, OneRankWaitsForNobodyThatIsKnown) {
  MadeTrace trace(0, 2);
  iteration(trace, 0, 0, 30);
  const KernelTrace read = trace.read();
  std::vector<RankRun> runs{run_of(read, 0)};
  align(runs);
  const RankTimes times = times_of(runs).front();
  EXPECT_TRUE(times.waits_s.empty());
  EXPECT_NEAR(times.exposed_s.at("all_reduce"), 50e-6, 1e-9);
}

// Kernels hide collectives, and what two kernels do at once is one time: the parts are the iteration.
TEST(RankTimes, DivideTheIteration) {
  MadeTrace trace(0, 2);
  trace.step(0, 0, 100);
  trace.op("aten::silu", 0, 1).kernel("silu", 0, 40).kernel("silu", 20, 50);
  trace.collective("_allgather_base", 30, 70);
  trace.collective("_reduce_scatter_base", 60, 80);
  const KernelTrace read = trace.read();
  const RankTimes times = times_of({run_of(read, 0)}).front();
  EXPECT_NEAR(times.compute_s, 50e-6, 1e-12);
  EXPECT_NEAR(times.exposed_s.at("all_gather"), 20e-6, 1e-12);
  EXPECT_NEAR(times.exposed_s.at("reduce_scatter"), 10e-6, 1e-12);
  EXPECT_NEAR(times.idle_s, 20e-6, 1e-12);
  EXPECT_NEAR(times.matched_s, 70e-6, 1e-12);
  EXPECT_DOUBLE_EQ(times.gaps, 1);
}

}  // namespace
}  // namespace trivium::calibration::foreign
