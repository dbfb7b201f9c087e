// Every rank simulated by the engine: equal to one rank a stage where all ranks of a stage do the same, and what
// differs where they do not.
#include "simulator/replay/replay.h"

#include <gtest/gtest.h>

#include <random>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "simulator/analytic/cost_estimator.h"
#include "simulator/schedule/engine.h"
#include "tests/simulator/analytic/random_jobs.h"

namespace trivium::simulator {
namespace {

using program::Program;

std::int64_t makespan(const CostedProgram& costed, const ReplayOptions& options, const Variation& variation = {}) {
  const ReplayProgram made = compile_replay(costed, options).value_or_throw();
  return replay(costed, made, variation, Keep::kNothing).value_or_throw().makespan_ps;
}

// Whole segments take as long as their ops where no lane that a segment leaves busy is one that the next needs: not
// with collectives of the tensor group or shifts of a ring that overlap the compute lane.
TEST(Replay, EveryRankTakesAsLongAsOneRankOfEachStage) {
  std::mt19937 random(17);
  int compared = 0;
  for (int i = 0; i < 1000; ++i) {
    const RandomJob made = random_job(random);
    SCOPED_TRACE(program::summary(made.job.plan));
    auto lowered = program::lower(made.job);
    if (!std::holds_alternative<Program>(lowered)) continue;
    const auto ordered = order(std::get<Program>(std::move(lowered)), made.cluster);
    ASSERT_TRUE(ordered.ok()) << ordered.error().message;
    const CostedProgram costed = cost(ordered.value(), made.cluster);
    std::vector<std::int64_t> times;
    for (const Granularity granularity : {Granularity::kOp, Granularity::kSegment}) {
      const std::int64_t folded = makespan(costed, {granularity, Ranks::kFolded, false});
      EXPECT_EQ(folded, list_schedule(costed, granularity).value_or_throw().makespan_ps);
      EXPECT_EQ(makespan(costed, {granularity, Ranks::kEvery, false}), folded);
      times.push_back(folded);
    }
    const program::Plan& plan = made.job.plan;
    if (plan.overlap.tensor || (plan.context > 1 && plan.context_method == program::ContextMethod::kRing)) continue;
    EXPECT_EQ(times[0], times[1]);
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

// Exchanges with experts have a lane of their own where they overlap with another pass.
TEST(Replay, EveryRankTakesAsLongAsOneRankOfEachStageWherePassesRunInPairs) {
  std::mt19937 random(59);
  for (int i = 0; i < 60; ++i) {
    const RandomJob made = random_pair_job(random);
    SCOPED_TRACE(program::summary(made.job.plan) + " " + made.cluster.name + " " + made.job.plan.stack);
    const auto ordered = order(std::get<Program>(program::lower(made.job)), made.cluster);
    ASSERT_TRUE(ordered.ok()) << ordered.error().message;
    const CostedProgram costed = cost(ordered.value(), made.cluster);
    EXPECT_TRUE(program::verify(ordered.value()).empty());
    for (const Granularity granularity : {Granularity::kOp, Granularity::kSegment}) {
      const auto scheduled = list_schedule(costed, granularity);
      ASSERT_TRUE(scheduled.ok()) << scheduled.error().message;
    }
    for (const Granularity granularity : {Granularity::kOp, Granularity::kSegment}) {
      const std::int64_t folded = makespan(costed, {granularity, Ranks::kFolded, false});
      EXPECT_EQ(folded, list_schedule(costed, granularity).value_or_throw().makespan_ps);
      EXPECT_EQ(makespan(costed, {granularity, Ranks::kEvery, false}), folded);
    }
    const std::int64_t one = makespan(costed, {Granularity::kOp, Ranks::kFolded, true});
    const std::int64_t every = makespan(costed, {Granularity::kOp, Ranks::kEvery, true});
    EXPECT_NEAR(static_cast<double>(one), static_cast<double>(every), 1e-9 * static_cast<double>(every));
  }
}

// Replicas of different micro-batches: one rank stands for those of a stage and a size, and meets the others' where all
// replicas do.
TEST(Replay, EveryRankTakesAsLongAsOneRankOfEachStageAndSizeOfMicroBatch) {
  std::mt19937 random(43);
  int compared = 0, close = 0;
  for (int i = 0; i < 600; ++i) {
    RandomJob made = random_job(random);
    program::Plan& plan = made.job.plan;
    if (plan.data == 1 || plan.expert > 1 || plan.shard_group > 0) continue;
    const std::int64_t micro_batches = program::micro_batches(plan, made.job.training.global_batch);
    for (int d = 0; d < plan.data; ++d) plan.replica_micro_batch.push_back(d < (plan.data + 1) / 2 ? 3 : 1);
    made.job.training.global_batch = micro_batches * program::samples_of_pass(plan);
    SCOPED_TRACE(program::summary(plan));
    auto lowered = program::lower(made.job);
    if (!std::holds_alternative<Program>(lowered)) continue;
    const auto ordered = order(std::get<Program>(std::move(lowered)), made.cluster);
    ASSERT_TRUE(ordered.ok()) << ordered.error().message;
    EXPECT_TRUE(program::verify(ordered.value()).empty());
    const CostedProgram costed = cost(ordered.value(), made.cluster);
    for (const Granularity granularity : {Granularity::kOp, Granularity::kSegment}) {
      const std::int64_t folded = makespan(costed, {granularity, Ranks::kFolded, false});
      EXPECT_EQ(folded, list_schedule(costed, granularity).value_or_throw().makespan_ps);
      EXPECT_EQ(makespan(costed, {granularity, Ranks::kEvery, false}), folded);
    }
    ++compared;
    // What bounds as many replicas that are all of one kind bounds these: searches count on it.
    if (!made.cluster.homogeneous()) continue;
    const std::int64_t together = list_schedule(costed, Granularity::kSegment).value_or_throw().makespan_ps;
    for (const int size : {3, 1}) {
      program::Job alike = made.job;
      alike.plan.replica_micro_batch.clear();
      alike.plan.micro_batch = size;
      alike.training.global_batch = micro_batches * plan.data * size;
      if (program::check(alike)) continue;
      const ScheduleCosts schedule_costs = CostEstimator(alike, made.cluster).schedule_costs(alike.plan);
      const std::int64_t bound = lower_bound_ps(schedule_costs, recurrence_ends(schedule_costs));
      EXPECT_LE(bound, together);
      close += bound > together - together / 10 ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(close, 50);
}

// With shared links one rank stands for all of its stage that sit alike, and sees what they see. Rates are
// sums in another order: equal but for rounding.
TEST(Replay, OneRankOfThoseThatSitAlikeSharesLinksAsEveryRankDoes) {
  std::mt19937 random(31);
  int fewer = 0, apart = 0, slower = 0;
  for (int i = 0; i < 1600; ++i) {
    const RandomJob made = random_job(random);
    SCOPED_TRACE(program::summary(made.job.plan));
    const Program program = order(std::get<Program>(program::lower(made.job)), made.cluster).value_or_throw();
    const CostedProgram costed = cost(program, made.cluster);
    const ReplayProgram folded = compile_replay(costed, {Granularity::kOp, Ranks::kFolded, true}).value_or_throw();
    fewer += folded.topology.actors() < program.mesh.size() ? 1 : 0;
    apart += folded.topology.actors() > static_cast<std::int32_t>(program.roles.size()) ? 1 : 0;
    const std::int64_t one = replay(costed, folded, {}, Keep::kNothing).value_or_throw().makespan_ps;
    const std::int64_t every = makespan(costed, {Granularity::kOp, Ranks::kEvery, true});
    EXPECT_NEAR(static_cast<double>(one), static_cast<double>(every), 1e-9 * static_cast<double>(every));
    slower += one > makespan(costed, {Granularity::kOp, Ranks::kFolded, false}) ? 1 : 0;
  }
  EXPECT_GT(fewer, 500);
  EXPECT_GT(apart, 280);
  EXPECT_GT(slower, 80);
}

// Every rank, jitter and shared links: no stream is busy longer than the iteration, and no iteration is longer than all
// work of one stage's rank after the other's, each at its longest.
TEST(Replay, TheIterationLiesBetweenTheBusiestStreamAndTheSerialSum) {
  std::mt19937 random(29);
  for (int i = 0; i < 60; ++i) {
    const RandomJob made = random_job(random);
    SCOPED_TRACE(program::summary(made.job.plan));
    const Program program = order(std::get<Program>(program::lower(made.job)), made.cluster).value_or_throw();
    const CostedProgram costed = cost(program, made.cluster);
    const ReplayProgram every = compile_replay(costed, {Granularity::kOp, Ranks::kEvery, true}).value_or_throw();
    Variation variation;
    variation.jitter = .3;
    variation.seed = static_cast<std::uint64_t>(i);
    const Replay simulated = replay(costed, every, variation, Keep::kEverything).value_or_throw();
    std::int64_t serial = 0;
    for (const RankSpans& rank : simulated.ranks) {
      std::array<std::int64_t, program::kLanes> busy{};
      for (const Span& span : rank.spans) {
        busy[static_cast<std::size_t>(span.lane)] += span.end_ps - span.begin_ps;
        serial += span.end_ps - span.begin_ps;
      }
      for (const std::int64_t lane : busy) EXPECT_LE(lane, simulated.makespan_ps);
    }
    EXPECT_LE(simulated.makespan_ps, serial);
  }
}

program::Job job_of(int tensor, int pipeline, int data) {
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

Program ordered(const program::Job& job, const hardware::Cluster& cluster) {
  return order(std::get<Program>(program::lower(job)), cluster).value_or_throw();
}

constexpr ReplayOptions kAlone{Granularity::kOp, Ranks::kEvery, false}, kShared{Granularity::kOp, Ranks::kEvery, true};

// A whole node for every stage and replica. With stages alone, or replicas alone, only siblings meet on the adapters,
// and their parts are counted in what each takes: nothing is counted twice.
TEST(Replay, WhereOnlySiblingsShareTheAdaptersSharingChangesNothing) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:4");
  for (const auto& [tensor, pipeline, data] :
       std::vector<std::array<int, 3>>{{8, 4, 1}, {8, 1, 4}, {4, 1, 8}, {2, 1, 16}}) {
    const Program program = ordered(job_of(tensor, pipeline, data), cluster);
    const CostedProgram costed = cost(program, cluster);
    EXPECT_EQ(makespan(costed, kShared), makespan(costed, kAlone)) << tensor << pipeline << data;
  }
}

// The first stage's last backwards send while earlier buckets are reduced: both leave through the same adapters.
TEST(Replay, TransfersAndReductionsThatOverlapSlowEachOtherDown) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:4");
  const Program program = ordered(job_of(8, 2, 2), cluster);
  const CostedProgram costed = cost(program, cluster);
  const ReplayProgram shared = compile_replay(costed, kShared).value_or_throw();
  EXPECT_FALSE(shared.topology.capacity.empty());
  const Replay simulated = replay(costed, shared, {}, Keep::kNothing).value_or_throw();
  EXPECT_GT(simulated.flows, 0);
  const std::int64_t alone = makespan(costed, kAlone);
  EXPECT_GT(simulated.makespan_ps, alone);
  EXPECT_LT(simulated.makespan_ps, 2 * alone);
  EXPECT_EQ(simulated.makespan_ps, makespan(costed, kShared));
}

/// Two nodes at two sites, whose link carries so much and takes no time.
hardware::Cluster two_sites(double bytes_per_second) {
  hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1+dgx-a100-80gb:1");
  cluster.groups.back().site = 1;
  cluster.links.push_back({0, 1, {base::BytesPerSecond(bytes_per_second), base::Seconds(0), 1}, "test"});
  return cluster;
}

// What only siblings send over the link has its part in what each takes; a link that all together cannot fill is as
// none.
TEST(Replay, WhereOnlySiblingsShareALinkBetweenSitesSharingChangesNothing) {
  for (const auto& [tensor, pipeline, data] : std::vector<std::array<int, 3>>{{8, 2, 1}, {4, 1, 4}, {2, 1, 8}}) {
    const hardware::Cluster cluster = two_sites(5e9);
    const Program program = ordered(job_of(tensor, pipeline, data), cluster);
    const CostedProgram costed = cost(program, cluster);
    EXPECT_EQ(makespan(costed, kShared), makespan(costed, kAlone)) << tensor << pipeline << data;
    hardware::Cluster without = cluster, wide = two_sites(1e15);
    without.links.clear();
    EXPECT_EQ(makespan(cost(program, wide), kShared), makespan(cost(program, without), kShared));
    EXPECT_LT(makespan(cost(program, wide), kShared), makespan(costed, kShared));
  }
}

// Two stages of eight ranks, each half at either site: the reductions of both stages, which overlap, cross one link.
TEST(Replay, FlowsOfDifferentStagesShareALinkBetweenSites) {
  const hardware::Cluster cluster = two_sites(2e9);
  program::Job job = job_of(4, 2, 2);
  job.plan.placement = "tensor-pipeline-context-data";
  const Program program = ordered(job, cluster);
  const CostedProgram costed = cost(program, cluster);
  const ReplayProgram shared = compile_replay(costed, kShared).value_or_throw();
  ASSERT_EQ(shared.topology.between.size(), 1u);
  EXPECT_EQ(shared.topology.capacity[static_cast<std::size_t>(shared.topology.between.front().link)], 2e9);
  const Replay simulated = replay(costed, shared, {}, Keep::kNothing).value_or_throw();
  const std::int64_t alone = makespan(costed, kAlone);
  EXPECT_GT(simulated.makespan_ps, alone);
  EXPECT_LT(simulated.makespan_ps, 2 * alone);
  // One rank for every stage sees what all see.
  const ReplayProgram folded = compile_replay(costed, {Granularity::kOp, Ranks::kFolded, true}).value_or_throw();
  EXPECT_EQ(folded.topology.actors(), 2);
  const std::int64_t one = replay(costed, folded, {}, Keep::kNothing).value_or_throw().makespan_ps;
  EXPECT_NEAR(static_cast<double>(one), static_cast<double>(simulated.makespan_ps), 1e-9 * static_cast<double>(one));
}

// All eight of a node send through one uplink that carries an eighth of what the adapters do.
TEST(Replay, AnOversubscribedTreeSlowsWhatLeavesTheLeaf) {
  hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const Program program = ordered(job_of(8, 2, 1), cluster);
  const CostedProgram costed = cost(program, cluster);
  const std::int64_t free = makespan(costed, kShared);
  cluster.groups.front().node.leaf_nodes = 1;
  cluster.groups.front().node.oversubscription = 8;
  EXPECT_GT(makespan(costed, kShared), free);
  cluster.groups.front().node.leaf_nodes = 2;  // both nodes under one switch: nothing crosses an uplink
  EXPECT_EQ(makespan(costed, kShared), free);
}

TEST(Replay, JitterAndStragglersAreSeededAndOnlyEverCostTime) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:4");
  const Program program = ordered(job_of(4, 2, 4), cluster);
  const CostedProgram costed = cost(program, cluster);
  const std::int64_t nominal = makespan(costed, kAlone);
  Variation variation;
  variation.jitter = .05;
  variation.seed = 3;
  const std::int64_t jittered = makespan(costed, kAlone, variation);
  EXPECT_EQ(makespan(costed, kAlone, variation), jittered);
  EXPECT_GT(jittered, nominal);  // every rendezvous waits for the slowest
  EXPECT_LT(jittered, nominal + nominal / 20);
  Variation slow;
  slow.device.assign(32, 1.0);
  slow.device[17] = 1.3;
  EXPECT_GT(makespan(costed, kAlone, slow), nominal);
  EXPECT_LT(makespan(costed, kAlone, slow), nominal + nominal * 3 / 10);
  Variation link;
  link.link.assign(32, 1.0);
  link.link[17] = 2;
  EXPECT_GT(makespan(costed, kAlone, link), nominal);
}

TEST(Replay, KeepsTheSpansOfTheRanksAskedFor) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const Program program = ordered(job_of(2, 2, 2), cluster);
  const CostedProgram costed = cost(program, cluster);
  const ReplayProgram every = compile_replay(costed, kShared).value_or_throw();
  Variation variation;
  variation.jitter = .1;
  const Replay some = replay(costed, every, variation, Keep::kRepresentatives).value_or_throw();
  const Replay all = replay(costed, every, variation, Keep::kEverything).value_or_throw();
  ASSERT_EQ(some.ranks.size(), 2U);
  ASSERT_EQ(all.ranks.size(), 8U);
  for (const RankSpans& rank : all.ranks) {
    const program::Role& role = program.role_of(rank.rank);
    std::size_t ops = 0;
    for (const program::Task& task : role.tasks) ops += program.body_of(task).ops.size();
    EXPECT_EQ(rank.spans.size(), ops);
    std::array<std::int64_t, program::kLanes> free{};
    for (const Span& span : rank.spans) {
      EXPECT_LE(free[static_cast<std::size_t>(span.lane)], span.start_ps);
      EXPECT_LE(span.start_ps, span.begin_ps);
      EXPECT_LE(span.end_ps, all.makespan_ps);
      free[static_cast<std::size_t>(span.lane)] = span.end_ps;
    }
  }
}

TEST(Replay, AMissingPartnerIsNamedWithRanksAndInstructions) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  Program program = ordered(job_of(2, 2, 1), cluster);
  for (program::Task& task : program.roles[1].tasks) {
    if (task.kind == program::TaskKind::kRecv && task.micro_batch == 1) task.transfer += 1000;
  }
  const CostedProgram costed = cost(program, cluster);
  const ReplayProgram made = compile_replay(costed, kAlone).value_or_throw();
  const auto simulated = replay(costed, made, {}, Keep::kNothing);
  ASSERT_FALSE(simulated.ok());
  EXPECT_EQ(static_cast<int>(simulated.error().kind), 1);  // what trivium exits with
  const std::string& why = simulated.error().message;
  EXPECT_NE(why.find("the simulation cannot proceed: 4 of 4 ranks are stuck: rank 0 at task "), std::string::npos)
      << why;
  EXPECT_NE(why.find("(send chunk 0 micro-batch 1, transfer 1) waits for rank 2 at task "), std::string::npos) << why;
  EXPECT_NE(why.find("(recv chunk 0 micro-batch 1, transfer 1001) waits for rank 0 at task "), std::string::npos)
      << why;
}

TEST(Replay, ARankThatNeverJoinsACollectiveIsNamed) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  Program program = ordered(job_of(1, 2, 1), cluster);
  program::Role& last = program.roles[1];
  const auto is_reduction = [&](const program::Issue& issue) {
    return last.tasks[static_cast<std::size_t>(issue.task)].kind == program::TaskKind::kNormReduce;
  };
  std::erase_if(last.order, is_reduction);
  for (program::Task& task : last.tasks) {
    std::erase_if(task.after, [&](const program::Dependency& d) {
      return last.tasks[static_cast<std::size_t>(d.task)].kind == program::TaskKind::kNormReduce;
    });
  }
  const CostedProgram costed = cost(program, cluster);
  const ReplayProgram made = compile_replay(costed, kAlone).value_or_throw();
  const auto simulated = replay(costed, made, {}, Keep::kNothing);
  ASSERT_FALSE(simulated.ok());
  EXPECT_NE(
      simulated.error().message.find("waits for 1 of 2 members: rank 1, which has nothing left to do on that lane"),
      std::string::npos)
      << simulated.error().message;
}

}  // namespace
}  // namespace trivium::simulator
