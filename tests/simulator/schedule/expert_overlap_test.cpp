// Exchanges with the experts that overlap with another pass: what they cost, and what stays exposed.
#include <gtest/gtest.h>

#include <random>

#include "hardware_profiles/load.h"
#include "program/verify/verify.h"
#include "simulator/predict/in_rounds.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/analytic/random_jobs.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

/// Eight layers of experts on two nodes, whose adapters carry every exchange.
program::Job mixture(bool overlap) {
  program::Job job;
  models::Model& model = job.model;
  model.name = "mixture";
  model.layers = 8;
  model.heads = model.kv_heads = 16;
  model.head_dim = 64;
  model.hidden = 1024;
  model.ffn_hidden = 2048;
  model.vocab = 1000;
  model.max_sequence = 2048;
  model.linear_bias = model.qkv_bias = false;
  model.experts = models::Experts{.count = 16, .top_k = 2, .dropless = true};
  job.training.sequence = 2048;
  job.training.global_batch = 512;
  job.plan.data = job.plan.expert = 16;
  job.plan.attention = program::Attention::kFlash;
  job.plan.overlap.expert = overlap;
  return job;
}

double spent(const Simulation& simulation, Part part) { return simulation.breakdown_s[static_cast<std::size_t>(part)]; }

TEST(ExpertOverlap, HidesExchangesBehindWhatIsComputed) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const Simulation alone = simulate(prepared(mixture(false), cluster), {}).value_or_throw(),
                   beside = simulate(prepared(mixture(true), cluster), {}).value_or_throw();
  const double exchanges = spent(alone, Part::kExposedExpert), computes = spent(alone, Part::kCompute);
  ASSERT_GT(exchanges, 0.2 * computes);
  // The host's work has less to hide behind.
  EXPECT_GE(spent(beside, Part::kCompute), computes);
  EXPECT_LT(spent(beside, Part::kCompute), 1.1 * computes);
  EXPECT_LT(spent(beside, Part::kExposedExpert), 0.6 * exchanges);
  EXPECT_LT(beside.iteration_ps, alone.iteration_ps);
  EXPECT_GE(static_cast<double>(beside.iteration_ps) * 1e-12, computes);
  EXPECT_GT(beside.peak_memory_bytes, alone.peak_memory_bytes);  // two passes at once
}

// Megatron-Core's kernels wait for four tenths of an exchange beside another pass, a tenth of that where iterations are
// captured: of what overlapping hides, so much is added to what is computed.
TEST(ExpertOverlap, SlowsTheOtherPassOfMegatron) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100:2");
  const auto computes = [&](const char* stack, bool overlap) {
    program::Job job = mixture(overlap);
    job.plan.stack = stack;
    return spent(simulate(prepared(job, cluster), {}).value_or_throw(), Part::kCompute);
  };
  const double alone = computes("megatron-bridge-flex", false), beside = computes("megatron-bridge-flex", true);
  const double exchanges = spent(
      [&] {
        program::Job job = mixture(false);
        job.plan.stack = "megatron-bridge-flex";
        return simulate(prepared(job, cluster), {}).value_or_throw();
      }(),
      Part::kExposedExpert);
  EXPECT_GT(beside, alone + 0.3 * exchanges);
  EXPECT_LT(computes("megatron-bridge-graphs", true), computes("megatron-bridge-graphs", false) + 0.3 * exchanges);
}

// Where nothing overlaps the kernels, turns make no difference.
TEST(ExpertOverlap, HidesNothingOnCores) {
  program::Job job = mixture(false);
  job.plan.precision = program::DType::kFp32;
  job.plan.attention = program::Attention::kUnfused;
  job.training.global_batch = 64;
  hardware::Cluster cluster = hardware::load_cluster("generic-cpu:1");
  cluster.groups.front().node.devices = 16;
  const auto took = [&] { return simulate(prepared(job, cluster), {}).value_or_throw().iteration_ps; };
  const std::int64_t alone = took();
  job.plan.overlap.expert = true;
  EXPECT_NEAR(static_cast<double>(took()), static_cast<double>(alone), 1e-6 * static_cast<double>(alone));
}

TEST(ExpertOverlap, OrdersOfRandomPlansVerify) {
  std::mt19937 random(43);
  for (int i = 0; i < 60; ++i) {
    const RandomJob made = random_pair_job(random);
    SCOPED_TRACE(program::summary(made.job.plan) + " " + made.cluster.name + " " + made.job.plan.stack);
    const auto ordered = order(std::get<program::Program>(program::lower(made.job)), made.cluster);
    ASSERT_TRUE(ordered.ok()) << ordered.error().message;
    EXPECT_TRUE(program::verify(ordered.value()).empty());
  }
}

// What waits for an exchange comes first in its segment, and what sends one last: segments tell the whole truth.
TEST(ExpertOverlap, OpByOpItTakesAsLongAsBySegments) {
  std::mt19937 random(53);
  int compared = 0;
  for (int i = 0; i < 120; ++i) {
    const RandomJob made = random_pair_job(random);
    const program::Plan& plan = made.job.plan;
    const bool ring = plan.context > 1 && plan.context_method == program::ContextMethod::kRing;
    if (ring || plan.overlap.tensor || program::find_stack(plan.stack)->overlaps_tensor_collectives) continue;
    SCOPED_TRACE(program::summary(plan) + " " + made.cluster.name + " " + plan.stack);
    const auto ordered = order(std::get<program::Program>(program::lower(made.job)), made.cluster);
    ASSERT_TRUE(ordered.ok()) << ordered.error().message;
    const CostedProgram costed = cost(ordered.value(), made.cluster);
    const auto by_op = list_schedule(costed, Granularity::kOp),
               by_segment = list_schedule(costed, Granularity::kSegment);
    ASSERT_TRUE(by_op.ok()) << by_op.error().message;
    ASSERT_TRUE(by_segment.ok()) << by_segment.error().message;
    EXPECT_EQ(by_op.value().makespan_ps, by_segment.value().makespan_ps);
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST(ExpertOverlap, RoundsAreCountedAsTheyWouldBeSimulated) {
  std::mt19937 random(47);
  int counted = 0;
  for (int i = 0; i < 40; ++i) {
    RandomJob made = random_pair_job(random);
    const int pipeline = made.job.plan.pipeline;
    made.job = with_micro_batches(made.job, std::int64_t{40} * 6 * pipeline);
    SCOPED_TRACE(program::summary(made.job.plan));
    SimulationOptions how;
    how.unshared = true;
    const auto few = simulate_in_rounds(made.job, made.cluster, how, false, {}).value_or_throw();
    if (!few) continue;
    ++counted;
    const Simulation all = simulate(prepared(made.job, made.cluster), how).value_or_throw();
    EXPECT_EQ(few->simulation.iteration_ps, all.iteration_ps);
    EXPECT_EQ(few->simulation.peak_memory_bytes, all.peak_memory_bytes);
    EXPECT_EQ(few->simulation.breakdown_s, all.breakdown_s);
  }
  EXPECT_GT(counted, 10);
}

}  // namespace
}  // namespace trivium::simulator
