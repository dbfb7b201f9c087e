// Layers that are lowered and costed once, and what is lowered without its passes.
#include "simulator/analytic/pass_layer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "program/lower/chunk_template.h"
#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "program/lower/settings.h"
#include "program/lower/sharding.h"
#include "simulator/cost/supported.h"
#include "tests/simulator/analytic/random_jobs.h"

namespace trivium::simulator {
namespace {

using program::Job;
using program::Program;

// Ranks of the same plan, which are numbered the other way round.
Job elsewhere(Job job) {
  job.plan.placement = job.plan.placement == "tensor-context-data-pipeline" ? "data-tensor-context-pipeline"
                                                                            : "tensor-context-data-pipeline";
  return job;
}

TEST(PassLayer, TakesInAnotherPlaceWhatItsProgramTakesThere) {
  std::mt19937 random(53);
  int compared = 0, unlike = 0;
  for (int i = 0; i < 150; ++i) {
    RandomJob made = random_job(random);
    made.job.plan.recompute_group = 1;  // of one layer, which pass_layer is for, all segments are next to each other
    const Job there = elsewhere(made.job);
    const bool alike = made.cluster.homogeneous() && !shares_cores(made.job.plan, made.cluster);
    if (!alike || program::check(there) || unsupported_by(there, made.cluster)) continue;
    const auto lowered = program::lower(made.job), lowered_there = program::lower(there);
    ASSERT_TRUE(std::holds_alternative<Program>(lowered) && std::holds_alternative<Program>(lowered_there));
    const Program &here = std::get<Program>(lowered), &other = std::get<Program>(lowered_there);
    const CostedProgram costed = cost(other, made.cluster);
    SCOPED_TRACE(program::summary(there.plan) + " on " + made.cluster.name);
    for (int stage = 0; stage < other.mesh.pipeline(); ++stage) {
      const auto kind = static_cast<std::size_t>(other.roles[static_cast<std::size_t>(stage)].chunks.front().kind);
      const CostedPassLayer layer = costed_pass_layer(here, kind, made.cluster.groups.front().node.device);
      const PassOpTimes found = times_of(layer, other, made.cluster, stage), expected = times_of(costed, stage, kind);
      for (std::size_t body = 0; body < PassLayer::kBodies; ++body) {
        if (expected[body].empty()) continue;
        EXPECT_EQ(found[body], expected[body]) << "stage " << stage << ", body " << body;
        ++compared;
      }
      unlike += found != times_of(layer, here, made.cluster, stage) ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(unlike, 20);  // a place that makes no difference would pass too
}

// Of the first stage's ranks, all but the passes.
KindCosts without_passes(const Job& job, const hardware::Cluster& cluster, const program::ChunkKey& key, bool whole) {
  const program::StackTraits& stack = *program::find_stack(job.plan.stack);
  Program program;
  program.settings = program::settings_of(job, stack);
  program.stack = stack;
  program.mesh = program::Mesh(job.plan, program::key_ranks(job));
  program.kinds.push_back(
      whole ? program::make_chunk_template(job, stack, key, 0, program.bodies)
            : program::make_parts(job, stack, key, {.state = true, .transfers = true}, program.bodies));
  program.roles.resize(1);
  const program::ChunkTemplate& kind = program.kinds.front();
  for (std::size_t body = 0; body < program.bodies.size(); ++body) {
    const auto index = static_cast<int>(body);
    if (index == kind.recv_forward || index == kind.recv_backward) continue;
    program::Task task;
    task.body = index;
    task.peer_stage = index == kind.send_forward || index == kind.send_backward ? job.plan.pipeline - 1 : -1;
    program.roles.front().tasks.push_back(task);
  }
  return kind_costs(cost(program, cluster), cluster, 0, 0, program::Sharding(job, stack).gradients);
}

TEST(ChunkTemplate, OfStateAndTransfersAloneCostsThem) {
  std::mt19937 random(59);
  int compared = 0, sent = 0, copied = 0;
  for (int i = 0; i < 150; ++i) {
    RandomJob made = random_job(random);
    made.job.plan = program::normalised(std::move(made.job.plan));
    if (!made.cluster.homogeneous() || made.job.plan.bucket_bytes > 0) continue;
    for (const bool embedding : {false, true}) {
      const program::ChunkKey key{.layers = 1, .embedding = embedding};
      const KindCosts whole = without_passes(made.job, made.cluster, key, true);
      const KindCosts parts = without_passes(made.job, made.cluster, key, false);
      SCOPED_TRACE(program::summary(made.job.plan) + " on " + made.cluster.name);
      for (const auto times :
           {&KindCosts::optimizer, &KindCosts::reduce, &KindCosts::gather, &KindCosts::replicas, &KindCosts::norm,
            &KindCosts::fetch_state, &KindCosts::store_state, &KindCosts::gather_bus, &KindCosts::reduce_bus}) {
        EXPECT_EQ((parts.*times).ends, (whole.*times).ends);
        EXPECT_EQ((parts.*times).layer, (whole.*times).layer);
      }
      for (const auto ps :
           {&KindCosts::reduce_apart, &KindCosts::first_reduce, &KindCosts::first_optimizer, &KindCosts::last_gather,
            &KindCosts::norm_reduce, &KindCosts::send_forward, &KindCosts::send_backward, &KindCosts::gather_forward,
            &KindCosts::gather_backward, &KindCosts::send_bus}) {
        EXPECT_EQ(parts.*ps, whole.*ps);
      }
      ++compared;
      sent += whole.send_forward > 0 ? 1 : 0;
      copied += whole.fetch_state.layer.front() > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(sent, 20);
  EXPECT_GT(copied, 5);
}

}  // namespace
}  // namespace trivium::simulator
