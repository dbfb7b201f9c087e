// What context and expert parallelism expose, and what they hide.
#include <gtest/gtest.h>

#include <numeric>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

using program::ContextMethod;

/// One sample of 65,536 tokens on eight A100s of one node.
program::Job long_job(int context, ContextMethod method) {
  program::Job job;
  job.model = models::load_model("gpt3-1.3b");
  job.model.max_sequence = job.training.sequence = 65'536;
  job.training.global_batch = 1;
  job.plan.context = context;
  job.plan.context_method = method;
  job.plan.attention = program::Attention::kFlash;
  job.plan.recompute = program::Recompute::kFull;
  return job;
}

double part(const Simulation& s, Part which) { return s.breakdown_s[static_cast<std::size_t>(which)]; }

/// Seconds that all ops of a kind take in one step of the only stage.
double seconds_of(const program::Program& program, const hardware::Cluster& cluster, program::OpKind kind) {
  const CostedProgram costed = cost(program, cluster);
  std::int64_t sum = 0;
  for (const program::Task& task : program.roles[0].tasks) {
    const program::Body& body = program.body_of(task);
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      if (body.ops[i].kind == kind) sum += costed.op_ps[0][static_cast<std::size_t>(task.body)][i];
    }
  }
  return static_cast<double>(sum) * 1e-12;
}

TEST(ContextExchange, TheRingTravelsBesideItsBlocks) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const Prepared ready = prepared(long_job(8, ContextMethod::kRing), cluster);
  const double shifts = seconds_of(ready.program(), cluster, program::OpKind::kRingShift);
  for (const Granularity granularity : {Granularity::kOp, Granularity::kSegment}) {
    const Simulation s = simulate(ready, {granularity, false}).value_or_throw();
    // The last shift of a backward returns gradients with nothing to overlap: about one of 23 a layer.
    EXPECT_GT(part(s, Part::kExposedContext), 0);
    EXPECT_LT(part(s, Part::kExposedContext), 0.1 * shifts);
    EXPECT_NEAR(std::accumulate(s.breakdown_s.begin(), s.breakdown_s.end(), 0.0), s.iteration_s, 1e-12 * s.iteration_s);
    EXPECT_EQ(part(s, Part::kExposedTensor), 0);
  }
}

TEST(ContextExchange, AnAllToAllIsExposedWhole) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const Prepared ready = prepared(long_job(8, ContextMethod::kAllToAll), cluster);
  const Simulation s = simulate(ready, {Granularity::kOp, false}).value_or_throw();
  EXPECT_NEAR(part(s, Part::kExposedContext), seconds_of(ready.program(), cluster, program::OpKind::kAllToAll), 1e-9);
}

// Attention is most of the work at this length, and the rest is split too: eight devices are at least six times faster.
TEST(ContextExchange, EightDevicesShareALongSequence) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const auto seconds = [&](int context, ContextMethod method) {
    const program::Job job = long_job(context, method);
    return simulate(prepared(job, cluster), {Granularity::kOp, false}).value_or_throw().iteration_s;
  };
  const double alone = seconds(1, ContextMethod::kRing);
  for (const ContextMethod method : {ContextMethod::kRing, ContextMethod::kAllToAll}) {
    EXPECT_LT(seconds(8, method), alone / 6);
    EXPECT_GT(seconds(8, method), alone / 8.5);
  }
}

TEST(ExpertExchange, RowsUnderWayAreExposed) {
  program::Job job;
  job.model = models::load_model("mixtral-8x7b");
  job.model.layers = 4;
  job.training.sequence = 4096;
  job.training.global_batch = 8;
  job.plan.data = job.plan.expert = 8;
  job.plan.attention = program::Attention::kFlash;
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const Prepared ready = prepared(job, cluster);
  const Simulation s = simulate(ready, {Granularity::kOp, false}).value_or_throw();
  const double exchanges = seconds_of(ready.program(), cluster, program::OpKind::kAllToAll);
  EXPECT_GT(exchanges, 0);
  EXPECT_NEAR(part(s, Part::kExposedExpert), exchanges, 1e-9);
  EXPECT_NEAR(std::accumulate(s.breakdown_s.begin(), s.breakdown_s.end(), 0.0), s.iteration_s, 1e-12 * s.iteration_s);
}

// A larger capacity is more rows to move and to multiply: imbalance that is planned for costs time.
TEST(ExpertExchange, RoomForImbalanceCostsTime) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const auto seconds = [&](double factor) {
    program::Job job;
    job.model = models::load_model("mixtral-8x7b");
    job.model.layers = 2;
    job.model.experts->dropless = false;
    job.model.experts->capacity_factor = factor;
    job.training.sequence = 4096;
    job.training.global_batch = 8;
    job.plan.data = job.plan.expert = 8;
    job.plan.attention = program::Attention::kFlash;
    return simulate(prepared(job, cluster), {Granularity::kOp, false}).value_or_throw().iteration_s;
  };
  EXPECT_GT(seconds(2), 1.1 * seconds(1));
}

}  // namespace
}  // namespace trivium::simulator
