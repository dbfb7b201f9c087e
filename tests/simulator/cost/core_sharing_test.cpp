#include "simulator/cost/core_sharing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/cost/costed_program.h"

namespace trivium::simulator {
namespace {

program::Program data_parallel(int ranks) {
  program::Job job;
  job.model = models::load_model("gpt-tiny");
  job.training.sequence = 32;
  job.training.global_batch = 8;
  job.plan.data = ranks;
  job.plan.precision = program::DType::kFp32;
  return std::get<program::Program>(program::lower(job));
}

hardware::Node two_cores() {
  hardware::Node node = hardware::load_node("generic-cpu");
  node.devices = 2;
  return node;
}

TEST(CoreSharing, GrowsWithEveryDoublingOfRanksPerCore) {
  hardware::Node node = two_cores();
  EXPECT_DOUBLE_EQ(core_sharing(data_parallel(4), node), 1);  // nothing was measured
  node.core_sharing = {{1, 0.04}};
  EXPECT_DOUBLE_EQ(core_sharing(data_parallel(2), node), 1);
  EXPECT_DOUBLE_EQ(core_sharing(data_parallel(4), node), 1.04);
  EXPECT_DOUBLE_EQ(core_sharing(data_parallel(8), node), 1.08);
}

TEST(CoreSharing, LiesBetweenTheSizesThatWereMeasured) {
  const program::Program program = data_parallel(4);
  const std::int64_t per_core = 2 * program.roles.front().total_bytes();
  hardware::Node node = two_cores();
  node.core_sharing = {{per_core / 4, 0.02}, {4 * per_core, 0.1}};
  EXPECT_NEAR(core_sharing(program, node), 1.06, 1e-6);  // halfway over the logarithm
  node.core_sharing = {{4 * per_core, 0.1}, {8 * per_core, 0.2}};
  EXPECT_DOUBLE_EQ(core_sharing(program, node), 1.1);
  node.core_sharing = {{per_core / 8, 0.1}, {per_core / 4, 0.2}};
  EXPECT_DOUBLE_EQ(core_sharing(program, node), 1.2);
}

// What ranks exchange is measured while they take turns: it costs what it did.
TEST(CoreSharing, SlowsDownWhatComputes) {
  const program::Program program = data_parallel(4);
  hardware::Cluster cluster = hardware::load_cluster("generic-cpu");
  cluster.groups.front().node = two_cores();
  const CostedProgram before = cost(program, cluster);
  cluster.groups.front().node.core_sharing = {{1, 0.5}};
  const CostedProgram after = cost(program, cluster);
  int computing = 0, communicating = 0;
  for (std::size_t body = 0; body < program.bodies.size(); ++body) {
    const auto& was = before.op_ps.front()[body];
    for (std::size_t i = 0; i < was.size(); ++i) {
      const bool communicates = program::is_communication(program.bodies[body].ops[i].kind);
      EXPECT_EQ(after.op_ps.front()[body][i], communicates ? was[i] : std::llround(1.5 * static_cast<double>(was[i])));
      ++(communicates ? communicating : computing);
    }
  }
  EXPECT_GT(computing, 0);
  EXPECT_GT(communicating, 0);
}

}  // namespace
}  // namespace trivium::simulator
