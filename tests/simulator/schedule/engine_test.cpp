// The engine against closed forms that hold exactly when every stage costs the same.
#include "simulator/schedule/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "simulator/predict/simulate.h"

namespace trivium::simulator {
namespace {

using program::Plan;
using program::Program;
using program::Schedule;

program::Job job_of(const Plan& plan, std::int64_t global_batch) {
  program::Job job;
  job.model = models::load_model("gpt-tiny");
  job.model.layers = 16;
  job.training.sequence = 64;
  job.training.global_batch = global_batch;
  job.plan = plan;
  job.plan.precision = program::DType::kFp32;
  return job;
}

Plan pipeline(int stages, int virtual_stages, Schedule schedule) {
  Plan plan;
  plan.pipeline = stages;
  plan.virtual_stages = virtual_stages;
  plan.schedule = schedule;
  return plan;
}

// Every forward takes `forward`, every backward `backward`, every transfer `transfer`, all else nothing.
CostedProgram with_durations(const Program& program, std::int64_t forward, std::int64_t backward,
                             std::int64_t transfer) {
  CostedProgram costed;
  costed.program = &program;
  for (std::size_t stage = 0; stage < program.roles.size(); ++stage) {
    auto& bodies = costed.op_ps.emplace_back(program.bodies.size());
    for (const program::Task& task : program.roles[stage].tasks) {
      auto& times = bodies[static_cast<std::size_t>(task.body)];
      times.assign(program.body_of(task).ops.size(), 0);
      switch (task.kind) {
        case program::TaskKind::kForward:
          times.front() = forward;
          break;
        case program::TaskKind::kBackward:
          times.front() = backward;
          break;
        case program::TaskKind::kSend:
        case program::TaskKind::kRecv:
          times.front() = transfer;
          break;
        default:
          break;
      }
    }
  }
  return costed;
}

std::int64_t makespan(const Plan& plan, std::int64_t micro_batches, std::int64_t forward, std::int64_t backward,
                      std::int64_t transfer) {
  const Program program = std::get<Program>(program::lower(job_of(plan, micro_batches)));
  auto simulated = list_schedule(with_durations(program, forward, backward, transfer), Granularity::kOp);
  return std::move(simulated).value_or_throw().makespan_ps;
}

// Each stage is busy m(F+B); the first stage idles while the pipeline fills and drains, (p-1)(F+B). p=4, m=8, F=10,
// B=20: (8+3)*30 = 330, whatever of the two flushing schedules.
TEST(Engine, FlushingSchedulesHaveTheBubbleOfOneLessThanTheStages) {
  EXPECT_EQ(makespan(pipeline(4, 1, Schedule::k1f1b), 8, 10, 20, 0), 330);
  EXPECT_EQ(makespan(pipeline(4, 1, Schedule::kGpipe), 8, 10, 20, 0), 330);
}

// Nothing overlaps: m p (F+B) = 8*4*30.
TEST(Engine, TheSequentialScheduleRunsOneStageAtATime) {
  EXPECT_EQ(makespan(pipeline(4, 1, Schedule::kSequential), 8, 10, 20, 0), 960);
}

// With v chunks of F/v and B/v the bubble shrinks to (p-1)(F+B)/v. p=4, v=2, m=8, chunk times 10 and 20:
// 8*2*30 + 3*30 = 570 (Narayanan et al. 2021, §2.2.2).
TEST(Engine, InterleavingDividesTheBubbleByTheVirtualStages) {
  EXPECT_EQ(makespan(pipeline(4, 2, Schedule::kInterleaved), 8, 10, 20, 0), 570);
  EXPECT_EQ(makespan(pipeline(2, 4, Schedule::kInterleaved), 4, 10, 20, 0), 4 * 4 * 30 + 30);
}

// The same for any number of stages, micro-batches and chunks, and any times: m v (F+B) of work and a bubble of
// (p-1)(F+B), by chunk; as a share of the work (p-1)/m, and (p-1)/(m v).
TEST(Engine, BubblesAreExactForAllEqualStages) {
  std::mt19937 random(23);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < 60; ++i) {
    const int p = 1 << between(0, 3), m = between(1, 12);
    const std::int64_t f = between(1, 1000), b = between(1, 1000);
    EXPECT_EQ(makespan(pipeline(p, 1, Schedule::k1f1b), m, f, b, 0), (m + p - 1) * (f + b)) << p << " " << m;
    EXPECT_EQ(makespan(pipeline(p, 1, Schedule::kGpipe), m, f, b, 0), (m + p - 1) * (f + b)) << p << " " << m;
    EXPECT_EQ(makespan(pipeline(p, 1, Schedule::kSequential), m, f, b, 0), m * p * (f + b)) << p << " " << m;
    const int stages = 1 << between(1, 2), chunks = 1 << between(1, 2), rounds = between(1, 3);
    EXPECT_EQ(makespan(pipeline(stages, chunks, Schedule::kInterleaved), stages * rounds, f, b, 0),
              (stages * rounds * chunks + stages - 1) * (f + b))
        << stages << " " << chunks << " " << rounds;
  }
}

// One micro-batch through two stages: F t F B t B = 10+3+10+20+3+20.
TEST(Engine, ATransferDelaysWhatWaitsForIt) { EXPECT_EQ(makespan(pipeline(2, 1, Schedule::k1f1b), 1, 10, 20, 3), 66); }

TEST(Engine, AMissingPartnerIsNamed) {
  Program program = std::get<Program>(program::lower(job_of(pipeline(2, 1, Schedule::k1f1b), 2)));
  for (program::Task& task : program.roles[1].tasks) {
    if (task.kind == program::TaskKind::kRecv && task.micro_batch == 1) task.transfer += 1000;
  }
  const auto simulated = list_schedule(with_durations(program, 10, 20, 1), Granularity::kOp);
  ASSERT_FALSE(simulated.ok());
  EXPECT_NE(simulated.error().message.find("stage 1 waits at task"), std::string::npos) << simulated.error().message;
  EXPECT_NE(simulated.error().message.find("has 1 of 2 members"), std::string::npos) << simulated.error().message;
}

Plan random_plan(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int> values) {
    return *(values.begin() + std::uniform_int_distribution<int>(0, static_cast<int>(values.size()) - 1)(random));
  };
  Plan plan;
  plan.tensor = pick({1, 2, 4});
  plan.pipeline = pick({1, 2, 4, 8});
  plan.virtual_stages = plan.pipeline > 1 ? pick({1, 1, 2}) : 1;
  plan.schedule = plan.virtual_stages > 1
                      ? Schedule::kInterleaved
                      : std::array{Schedule::k1f1b, Schedule::kGpipe,
                                   Schedule::kSequential}[static_cast<std::size_t>(pick({0, 1, 2}))];
  plan.data = pick({1, 2, 4});
  plan.zero_stage = plan.data > 1 ? pick({0, 1}) : 0;
  plan.sequence_parallel = plan.tensor > 1 && pick({0, 1}) == 1;
  plan.recompute = std::array{program::Recompute::kNone, program::Recompute::kSelective,
                              program::Recompute::kFull}[static_cast<std::size_t>(pick({0, 1, 2}))];
  plan.overlap.gradient_reduction = pick({0, 1}) == 1;
  return plan;
}

// No rank is busy longer than the iteration, and no iteration is longer than all work of all stages one after the
// other.
TEST(Engine, TheIterationLiesBetweenTheBusiestLaneAndTheSerialSum) {
  std::mt19937 random(7);
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:32");
  for (int i = 0; i < 60; ++i) {
    const program::Job job = job_of(random_plan(random), 32);
    const Program program = std::get<Program>(program::lower(job));
    const auto simulated = list_schedule(cost(program, cluster), Granularity::kOp);
    ASSERT_TRUE(simulated.ok()) << program::summary(job.plan) << simulated.error().message;
    std::int64_t serial = 0;
    for (const auto& spans : simulated.value().stages) {
      std::array<std::int64_t, program::kLanes> busy{};
      for (const Span& span : spans) {
        busy[static_cast<std::size_t>(span.lane)] += span.end_ps - span.begin_ps;
        serial += span.end_ps - span.begin_ps;
      }
      for (const std::int64_t lane : busy) EXPECT_LE(lane, simulated.value().makespan_ps);
    }
    EXPECT_LE(simulated.value().makespan_ps, serial);
  }
}

TEST(Engine, OrderedProgramsVerifyAndRunAsFastAsUnorderedOnes) {
  std::mt19937 random(11);
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:32");
  for (int i = 0; i < 60; ++i) {
    const program::Job job = job_of(random_plan(random), 32);
    SCOPED_TRACE(program::summary(job.plan));
    const Program program = std::get<Program>(program::lower(job));
    const std::int64_t unordered =
        list_schedule(cost(program, cluster), Granularity::kSegment).value_or_throw().makespan_ps;
    const Program ordered = order(program, cluster).value_or_throw();
    EXPECT_EQ(program::verify(ordered), std::vector<std::string>{});
    const std::int64_t in_order =
        list_schedule(cost(ordered, cluster), Granularity::kSegment).value_or_throw().makespan_ps;
    EXPECT_EQ(in_order, unordered);
    const Program again = order(program, cluster).value_or_throw();
    for (std::size_t r = 0; r < ordered.roles.size(); ++r) EXPECT_EQ(ordered.roles[r].order, again.roles[r].order);
  }
}

TEST(Engine, SegmentsAndOpsGiveTheSameTimesWhereNoLaneIsShared) {
  std::mt19937 random(3);
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:32");
  for (int i = 0; i < 40; ++i) {
    const program::Job job = job_of(random_plan(random), 32);
    const Program program = order(std::get<Program>(program::lower(job)), cluster).value_or_throw();
    const CostedProgram costed = cost(program, cluster);
    EXPECT_EQ(list_schedule(costed, Granularity::kOp).value_or_throw().makespan_ps,
              list_schedule(costed, Granularity::kSegment).value_or_throw().makespan_ps)
        << program::summary(job.plan);
  }
}

}  // namespace
}  // namespace trivium::simulator
