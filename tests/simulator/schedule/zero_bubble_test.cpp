// ZB-H1 against its closed form: equal stages, no transfer time.
#include <gtest/gtest.h>

#include <algorithm>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

using program::Program;
using program::Schedule;
using program::TaskKind;

/// Every forward takes f, first half b, second half w (a whole backward b + w), everything else nothing.
std::int64_t makespan(Schedule schedule, int stages, std::int64_t micro_batches, std::int64_t f, std::int64_t b,
                      std::int64_t w) {
  program::Job job;
  job.model = models::load_model("gpt-tiny");
  job.model.layers = 8;
  job.training.sequence = 64;
  job.training.global_batch = micro_batches;
  job.plan.pipeline = stages;
  job.plan.schedule = schedule;
  job.plan.precision = program::DType::kFp32;
  const Program program = std::get<Program>(program::lower(job));
  CostedProgram costed;
  costed.program = &program;
  for (const program::Role& role : program.roles) {
    auto& bodies = costed.op_ps.emplace_back(program.bodies.size());
    for (const program::Task& task : role.tasks) {
      auto& times = bodies[static_cast<std::size_t>(task.body)];
      times.assign(program.body_of(task).ops.size(), 0);
      if (task.kind == TaskKind::kForward) times.front() = f;
      if (task.kind == TaskKind::kBackward) times.front() = schedule == Schedule::kZeroBubble ? b : b + w;
      if (task.kind == TaskKind::kBackwardWeights) times.front() = w;
    }
  }
  return list_schedule(costed, Granularity::kOp).value_or_throw().makespan_ps;
}

// Qi et al. 2023, arXiv 2401.10241, table 1: ZB-H1 idles (p-1)(f+b-w), 1F1B (p-1)(f+b+w). p = 4, m = 8,
// f = b = w = 10: 240 + 30 and 240 + 90.
TEST(ZeroBubble, HasAThirdOfTheBubbleOf1f1bWhereAllThreePassesAreEqual) {
  EXPECT_EQ(makespan(Schedule::kZeroBubble, 4, 8, 10, 10, 10), 270);
  EXPECT_EQ(makespan(Schedule::k1f1b, 4, 8, 10, 10, 10), 330);
}

TEST(ZeroBubble, BubbleIsStagesLessOneTimesForwardPlusBackwardLessWeights) {
  for (const int p : {2, 4, 8}) {
    for (const int m : {8, 16}) {
      for (const auto& [f, b, w] : {std::tuple{10, 12, 8}, {10, 20, 10}, {9, 9, 9}, {30, 31, 5}}) {
        EXPECT_EQ(makespan(Schedule::kZeroBubble, p, m, f, b, w), m * (f + b + w) + (p - 1) * (f + b - w))
            << p << ' ' << m << ' ' << f << ' ' << b << ' ' << w;
      }
    }
  }
}

// On a real profile: no slower than 1F1B, ordered without deadlock, and what the host order holds verifies.
TEST(ZeroBubble, BeatsOneForwardOneBackwardOnAnA100Node) {
  program::Job job;
  job.model = models::load_model("gpt3-2.7b");
  job.training.sequence = 1024;
  job.training.global_batch = 16;
  job.plan.pipeline = 8;
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const auto iteration = [&](Schedule schedule) {
    job.plan.schedule = schedule;
    return simulate(prepared(job, cluster), {}).value_or_throw();
  };
  const Simulation split = iteration(Schedule::kZeroBubble), whole = iteration(Schedule::k1f1b);
  EXPECT_LT(split.iteration_ps, whole.iteration_ps);
  // Less than the formula's share is saved: the last stage, which also has the head, is never waited for.
  const auto bubble = static_cast<std::size_t>(Part::kBubble);
  EXPECT_LT(split.breakdown_s[bubble], 0.8 * whole.breakdown_s[bubble]);
}

}  // namespace
}  // namespace trivium::simulator
