#include "calibration/fit/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>

#include "base/error.h"
#include "calibration/measurements/run_events.h"
#include "calibration/validate/validate.h"
#include "hardware_profiles/load.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

double error_of(const program::Job& job, const hardware::Node& truth, const hardware::Node& guess) {
  return validate_run({job, {}}, synthetic_run(job, truth), cluster_of(guess)).rows.front().error;
}

// Every term of the truth is 2.5 times the base's: one run of any shape decides that one number exactly.
TEST(Calibrate, RecoversAMachineThatIsSlowerByOneFactor) {
  const hardware::Node truth = rated_node(2.5), base = rated_node(1);
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), truth);
  const Fit fit = calibrate(base, std::span(&record, 1));
  const hardware::OpRate& rate = fit.node.device.op_rates.at("matmul");
  EXPECT_NEAR(rate.overhead.value(), 2.5e-6, 0.05e-6);
  EXPECT_NEAR(rate.seconds_per_flop, 5e-11, 0.05e-11);
  EXPECT_NEAR(rate.seconds_per_byte, 2.5e-10, 0.05e-10);
  EXPECT_NEAR(fit.node.intra.latency.value(), 25e-6, 0.5e-6);
  EXPECT_NEAR(fit.node.collective_skew.value(), 0, 1e-9);
}

// A rank that is kept from its core for milliseconds, once a step, keeps its partner waiting; hosts are no later for
// it.
TEST(Calibrate, AnInterruptionIsNoLateness) {
  program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), rated_node(1));
  const program::Program program = program_of(record);
  std::set<std::int64_t> interrupted;
  for (program::Event& event : record.timeline.events) {
    const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
    const program::Op& op = program.body_of(task).ops[static_cast<std::size_t>(event.op)];
    if (event.rank != 1 || !program::is_communication(op.kind)) continue;
    const std::int64_t late = interrupted.insert(event.step).second ? 5'000'000'000 : 3'000'000;  // ps
    event.wait_ps += late;
    event.end_ps += late;
  }
  ASSERT_GT(interrupted.size(), 1U);
  const Fit fit = calibrate(rated_node(1), std::span(&record, 1));
  EXPECT_GT(fit.node.collective_skew.value(), 1e-6);
  EXPECT_LT(fit.node.collective_skew.value(), 3e-6);
}

// Replicas meet once a step, after an iteration's computation has parted them: no layer's collective waits as long.
TEST(Calibrate, LatenessIsOfRanksThatMeetInsideLayers) {
  program::RunRecord record = synthetic_run(small_job(1, 1, 2, 2), rated_node(1));
  const program::Program program = program_of(record);
  int delayed = 0;
  for (program::Event& event : record.timeline.events) {
    const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
    const program::Op& op = program.body_of(task).ops[static_cast<std::size_t>(event.op)];
    if (!program::is_communication(op.kind)) continue;
    event.wait_ps += 5'000'000'000;
    event.end_ps += 5'000'000'000;
    ++delayed;
  }
  ASSERT_GT(delayed, 0);
  hardware::Node base = rated_node(1);
  base.collective_skew = base::Seconds(2e-6);
  const Fit fit = calibrate(base, std::span(&record, 1));
  EXPECT_EQ(fit.node.collective_skew.value(), 2e-6);
  EXPECT_THAT(fit.report, Contains(HasSubstr("collective_skew: no collectives inside layers")));
}

// After one run with tensor 2, other splits of the same machine are predicted, from a base of unmeasured cores.
TEST(Calibrate, WhatOneSplitTeachesHoldsForOthers) {
  const hardware::Node truth = rated_node(6), base = hardware::load_node("generic-cpu");
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), truth);
  const Fit fit = calibrate(base, std::span(&record, 1));
  for (const program::Job& job :
       {small_job(1, 1, 2, 2), small_job(1, 2, 1, 1), small_job(2, 1, 1, 4), small_job(1, 1, 1, 1)}) {
    EXPECT_GT(std::abs(error_of(job, truth, base)), 0.3) << summary(job.plan);
    EXPECT_NEAR(error_of(job, truth, fit.node), 0, 0.1) << summary(job.plan);
  }
}

TEST(Calibrate, MoreRunsTeachMore) {
  const hardware::Node truth = rated_node(2.5), base = hardware::load_node("generic-cpu");
  const program::RunRecord records[] = {synthetic_run(small_job(2, 1, 1, 1), truth),
                                        synthetic_run(small_job(1, 1, 2, 4), truth)};
  const Fit fit = calibrate(base, records);
  EXPECT_NEAR(error_of(small_job(1, 2, 1, 2), truth, fit.node), 0, 0.05);
}

program::Job flash_job(int tensor, int micro_batch) {
  program::Job job = small_job(tensor, 1, 1, micro_batch);
  job.plan.attention = program::Attention::kFlash;
  return job;
}

/// Flash attention whose FLOPs and bytes take twice those of unfused kernels, and a block of 64 queries 20 us more.
hardware::Node with_flash_rates() {
  hardware::Node node = rated_node(1);
  for (const char* pass : {"", "_backward"}) {
    hardware::OpRate& rate = node.device.op_rates[std::string("flash_attention") + pass];
    rate = {base::Seconds(1e-6), 4e-11, 2e-10, 2e-5};
  }
  return node;
}

// Samples of 64 tokens are a block each; 4 heads, of one to eight samples, on one rank or two.
TEST(Calibrate, LearnsEachKernelOfAttentionFromItsOwnRuns) {
  const hardware::Node truth = with_flash_rates(), base = rated_node(1);
  const program::RunRecord records[] = {synthetic_run(flash_job(1, 1), truth), synthetic_run(flash_job(2, 4), truth),
                                        synthetic_run(flash_job(1, 8), truth),
                                        synthetic_run(small_job(1, 1, 1, 2), truth)};
  ASSERT_GT(std::abs(error_of(flash_job(1, 4), truth, base)), 0.1);
  const Fit fit = calibrate(base, records);
  EXPECT_NEAR(error_of(flash_job(1, 4), truth, fit.node), 0, 0.03);
  EXPECT_NEAR(error_of(small_job(1, 1, 1, 4), truth, fit.node), 0, 0.03);
  EXPECT_NEAR(fit.node.device.op_rates.at("attention").seconds_per_flop, 2e-11, 0.1e-11);
  EXPECT_THAT(fit.report, Contains(HasSubstr("flash_attention_backward: 3 shapes")));
  const hardware::Node read = hardware::node_from_json(hardware::to_json(fit.node), "fit");
  EXPECT_EQ(read.device.op_rates.at("flash_attention").seconds_per_block,
            fit.node.device.op_rates.at("flash_attention").seconds_per_block);
}

// Whatever runs say nothing of stays as it is in the base, and is not invented where the base has nothing.
TEST(Calibrate, SaysWhichKernelOfAttentionWasInNoRun) {
  const program::RunRecord record = synthetic_run(small_job(1, 1, 1, 2), rated_node(1));
  const Fit of_both = calibrate(with_flash_rates(), std::span(&record, 1));
  EXPECT_THAT(of_both.report, Contains("flash_attention: in no run, kept from the base"));
  EXPECT_EQ(of_both.node.device.op_rates.at("flash_attention").seconds_per_block, 2e-5);
  EXPECT_FALSE(calibrate(rated_node(1), std::span(&record, 1)).node.device.op_rates.contains("flash_attention"));
}

TEST(Calibrate, LeavesTheBaseAloneAndSaysWhereNumbersComeFrom) {
  const hardware::Node base = rated_node(1);
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), rated_node(2));
  const Fit fit = calibrate(base, std::span(&record, 1));
  EXPECT_DOUBLE_EQ(base.device.op_rates.at("matmul").overhead.value(), 1e-6);
  EXPECT_THAT(fit.node.sources.at("/device/op_rates/matmul"), HasSubstr(record.program_hash));
  EXPECT_THAT(fit.node.sources.at("/intra/latency"), HasSubstr("TP2"));
  EXPECT_THAT(fit.report, Contains("rotary: in no run, kept from the base"));
  EXPECT_DOUBLE_EQ(fit.node.device.op_rates.at("rotary").overhead.value(), 1e-6);
  // What is written is a valid profile.
  const hardware::Node read = hardware::node_from_json(hardware::to_json(fit.node), "fit");
  EXPECT_EQ(read.device.op_rates.size(), fit.node.device.op_rates.size());
}

TEST(Calibrate, OneInterruptedStepDoesNotCount) {
  const hardware::Node truth = rated_node(1);
  program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), truth);
  for (program::Event& event : record.timeline.events) {
    if (event.step == 2) event.end_ps += 1'000'000'000;  // 1 ms
  }
  // Steps 1 and 2 are left; the same on both ranks: medians fall between them unless a third quiet step is there.
  std::vector<program::Event> again;
  for (program::Event event : record.timeline.events) {
    if (event.step != 1) continue;
    event.step = 3;
    again.push_back(event);
  }
  record.timeline.events.insert(record.timeline.events.end(), again.begin(), again.end());
  const Fit fit = calibrate(truth, std::span(&record, 1));
  EXPECT_NEAR(fit.node.device.op_rates.at("matmul").seconds_per_flop, 2e-11, 0.02e-11);
}

TEST(Calibrate, RefusesRecordsThatTeachNothing) {
  const hardware::Node base = rated_node(1);
  EXPECT_THROW(calibrate(base, Measurements{}), base::Failure);
  program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), base);
  program::RunRecord strange = record;
  strange.timeline.events.back().op = 9999;
  EXPECT_THROW(calibrate(base, std::span(&strange, 1)), base::Failure);
  record.timeline.events.clear();
  EXPECT_THROW(calibrate(base, std::span(&record, 1)), base::Failure);
}

}  // namespace
}  // namespace trivium::calibration
