// Whole simulations against what was published, and what every figure must satisfy.
#include "simulator/predict/simulate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/cost/supported.h"
#include "simulator/schedule/engine.h"
#include "simulator/studies/uncertainty.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

program::Job gpt3_175b() {
  program::Job job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = 2048;
  job.training.global_batch = 1536;
  job.plan.tensor = 8;
  job.plan.pipeline = 16;
  job.plan.data = 8;
  job.plan.recompute = program::Recompute::kFull;
  return job;
}

Simulation simulated(const program::Job& job, const hardware::Cluster& cluster, Granularity granularity) {
  return simulate(prepared(job, cluster), {granularity, false}).value_or_throw();
}

// Narayanan et al. 2021, arXiv 2104.04473, Table 1 and §5.1: 175B (145.6B class), 1,024 A100, 138 TFLOP/s per GPU: 32
// s.
TEST(Simulation, Gpt3OnAThousandA100sTakesWhatMegatronMeasured) {
  const Simulation s = simulated(gpt3_175b(), hardware::load_cluster("dgx-a100-80gb:128"), Granularity::kOp);
  EXPECT_NEAR(s.iteration_s, 32.0, 3.2);
  EXPECT_NEAR(s.hardware_flops_per_s_per_device / 1e12, 138, 13.8);
}

TEST(Simulation, TheBreakdownOfEveryStageSumsToTheIteration) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:128");
  for (const Granularity granularity : {Granularity::kOp, Granularity::kSegment}) {
    const Simulation s = simulated(gpt3_175b(), cluster, granularity);
    for (const StageResult& stage : s.stages) {
      EXPECT_EQ(std::accumulate(stage.breakdown.begin(), stage.breakdown.end(), std::int64_t{0}), s.iteration_ps);
      for (const std::int64_t part : stage.breakdown) EXPECT_GE(part, 0);
      EXPECT_EQ(stage.breakdown[static_cast<std::size_t>(Part::kOther)], 0);
    }
    EXPECT_NEAR(std::accumulate(s.breakdown_s.begin(), s.breakdown_s.end(), 0.0), s.iteration_s, 1e-12 * s.iteration_s);
  }
}

// MFU counts 72 l h^2 (1 + s/(6h) + V/(12 l h)) a token, HFU with full recomputation 96 l h^2 (1 + s/(6h) + V/(16 l
// h)). l=96 h=12288 s=2048 V=51200: 72 * 96 * 12288^2 = 1.043660e12; 1 + .0277778 + .0036169 = 1.0313946
// -> 1.0764254e12. 96 * 96 * 12288^2 = 1.3915466e12 * (1 + .0277778 + .0027127) = 1.4339757e12. Ratio 1.33217.
TEST(Simulation, HardwareAndModelFlopsDifferByTheRecomputedForward) {
  const Simulation s = simulated(gpt3_175b(), hardware::load_cluster("dgx-a100-80gb:128"), Granularity::kSegment);
  EXPECT_NEAR(s.hfu / s.mfu, 1.33217, 1e-4);
  const IterationFlops flops = iteration_flops(gpt3_175b());
  EXPECT_NEAR(flops.model / (1536.0 * 2048.0) / 1e12, 1.0764254, 1e-4);
}

TEST(Simulation, PlansTheClusterCannotRunAreRefusedWithTheReason) {
  program::Job job = gpt3_175b();
  const auto few = unsupported_by(job, hardware::load_cluster("dgx-a100-80gb:127"));
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->reason, "the plan has 1024 ranks, the cluster 1016 devices");
  const auto old = unsupported_by(job, hardware::load_cluster("dgx1-v100-32gb:128"));
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(old->rule, "precision");
}

// Without recomputation a layer keeps s b h (10 + 24/t + 5 a s/(h t)) bytes (Korthikanti et al. 2022, eq. 2, dropout
// included) for as many micro-batches as are in flight: far beyond 80 GB here.
TEST(Simulation, WhatDoesNotFitSaysWhichStageAndWhichPart) {
  program::Job job = gpt3_175b();
  job.plan.recompute = program::Recompute::kNone;
  job.plan.micro_batch = 2;
  job.training.dropout = 0.1;
  const auto program = std::get<program::Program>(program::lower(job));
  const auto no = out_of_memory(memory_of(program, hardware::load_cluster("dgx-a100-80gb:128")));
  ASSERT_TRUE(no.has_value());
  EXPECT_EQ(no->rule, "memory");
  EXPECT_NE(no->reason.find("stage 0 needs"), std::string::npos) << no->reason;
  EXPECT_NE(no->reason.find("activations"), std::string::npos) << no->reason;
}

// Tensor groups of 6 on nodes of 8: ranks 0-5 share a node, 6-11 lie on two, 12-17 on two, 18-23 on one. Each stage has
// a replica that crosses nodes, and the slowest replica sets the pace: a layer's all-reduce costs the same on both.
TEST(Simulation, TheReplicaThatCrossesNodesSetsThePaceOfItsStage) {
  program::Job job;
  job.model = models::load_model("gpt3-125m");
  job.training.sequence = 2048;
  job.training.global_batch = 192;
  job.plan.tensor = 6;
  job.plan.pipeline = 2;
  job.plan.data = 2;
  const auto program = std::get<program::Program>(program::lower(job));
  const CostedProgram costed = cost(program, hardware::load_cluster("dgx-a100-80gb:3"));
  const auto all_reduce_of_layer_1 = [&](std::size_t stage) {
    for (const program::Task& task : program.roles[stage].tasks) {
      if (task.kind != program::TaskKind::kForward) continue;
      const program::Body& body = program.body_of(task);
      for (std::size_t i = 0; i < body.ops.size(); ++i) {
        if (body.ops[i].kind == program::OpKind::kAllReduce && body.ops[i].layer == 1) {
          return costed.op_ps[stage][static_cast<std::size_t>(task.body)][i];
        }
      }
    }
    return std::int64_t{0};
  };
  EXPECT_GT(all_reduce_of_layer_1(0), 0);
  EXPECT_EQ(all_reduce_of_layer_1(0), all_reduce_of_layer_1(1));
}

program::Job small(int tensor, int pipeline, int data) {
  program::Job job;
  job.model = models::load_model("gpt3-1.3b");
  job.training.sequence = 1024;
  job.training.global_batch = 8 * data;
  job.plan.tensor = tensor;
  job.plan.pipeline = pipeline;
  job.plan.data = data;
  job.plan.overlap.gradient_reduction = true;
  return job;
}

// One of a stage's four ranks computes twice as long: on average (3 + 2) / 4 as long, and the other three wait for it.
TEST(Simulation, TheBreakdownOfEveryRankIsTheMeanOverThem) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const Prepared job = prepared(small(4, 1, 1), cluster);
  SimulationOptions every;
  every.every_rank = true;
  const Simulation plain = simulate(job, every).value_or_throw();
  every.disturbance.slow_devices[2] = 2;
  const Simulation slow = simulate(job, every).value_or_throw();
  const auto part = [](const Simulation& s, Part which) { return s.breakdown_s[static_cast<std::size_t>(which)]; };
  EXPECT_NEAR(part(slow, Part::kCompute), 1.25 * part(plain, Part::kCompute), 1e-9);
  for (const Simulation* s : {&plain, &slow}) {
    const Breakdown& stage = s->stages[0].breakdown;
    EXPECT_EQ(std::accumulate(stage.begin(), stage.end(), std::int64_t{0}), s->iteration_ps);
    EXPECT_NEAR(std::accumulate(s->breakdown_s.begin(), s->breakdown_s.end(), 0.0), s->iteration_s, 1e-9);
  }
  EXPECT_GT(part(slow, Part::kExposedTensor) + part(slow, Part::kBubble),
            part(plain, Part::kExposedTensor) + part(plain, Part::kBubble));
}

// Transfers and concurrent reductions leave through one node's adapters: slower, and as slow as with every rank.
TEST(Simulation, SharesLinksAndFindsTheIterationWithout) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:4");
  const Prepared job = prepared(small(8, 2, 2), cluster);
  SimulationOptions folded, every, apart;
  folded.unshared = true;
  every.every_rank = true;
  apart.shared_links = false;
  const Simulation one = simulate(job, folded).value_or_throw();
  const Simulation all = simulate(job, every).value_or_throw();
  ASSERT_TRUE(one.unshared_s.has_value());
  EXPECT_LT(*one.unshared_s, one.iteration_s);
  EXPECT_NEAR(one.iteration_s, all.iteration_s, 1e-9 * all.iteration_s);
  EXPECT_DOUBLE_EQ(*one.unshared_s, simulate(job, apart).value_or_throw().iteration_s);
  EXPECT_EQ(iteration_ps(job, {}).value_or_throw(), one.iteration_ps);
  EXPECT_EQ(std::accumulate(one.stages[0].breakdown.begin(), one.stages[0].breakdown.end(), std::int64_t{0}),
            one.iteration_ps);
}

// 96 layers in 16 stages of 192 micro-batches: far more steps than lie between two looks at the token.
TEST(Stop, EndsASimulationWithoutAResult) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:128");
  const program::Program program = std::get<program::Program>(program::lower(gpt3_175b()));
  const Prepared ordered = prepared(gpt3_175b(), cluster);
  std::stop_source stop;
  const CostedProgram& costed = ordered.costed();
  EXPECT_TRUE(list_schedule(costed, Granularity::kSegment, stop.get_token()).ok());
  stop.request_stop();
  const std::stop_token now = stop.get_token();
  const auto kind_of = [](const auto& outcome) {
    return outcome.ok() ? base::ErrorKind::kRuntime : outcome.error().kind;
  };
  EXPECT_EQ(kind_of(list_schedule(costed, Granularity::kSegment, now)),
            base::ErrorKind::kInterrupted);  // by looks on the way
  EXPECT_EQ(kind_of(order(program, cluster, now)), base::ErrorKind::kInterrupted);
  EXPECT_EQ(kind_of(simulate(ordered, {Granularity::kSegment, true}, now)), base::ErrorKind::kInterrupted);
  EXPECT_EQ(kind_of(sample_iterations(costed, {}, 3, 1, now)), base::ErrorKind::kInterrupted);
  EXPECT_EQ(kind_of(sample_until(costed, {}, 3, 1, now, {})), base::ErrorKind::kInterrupted);

  // What was simulated by then is kept: on so many cores at most one sample more each.
  std::stop_source later;
  const auto some = sample_until(costed, {}, 10'000, 1, later.get_token(), [&](int simulated) {
    if (simulated == 3) later.request_stop();
  });
  ASSERT_TRUE(some.ok());
  EXPECT_GE(some.value().samples_ps.size(), 3U);
  EXPECT_LT(some.value().samples_ps.size(), 10'000U);
}

}  // namespace
}  // namespace trivium::simulator
