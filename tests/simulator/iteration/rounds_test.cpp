// Jobs of many micro-batches, counted: the figures that simulating all of them gives, to the picosecond.
#include "simulator/iteration/rounds.h"

#include <gtest/gtest.h>

#include <random>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "simulator/predict/in_rounds.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/analytic/random_jobs.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

using program::Program;

Simulation simulated(const program::Job& job, const hardware::Cluster& cluster, const SimulationOptions& how) {
  return simulate(prepared(job, cluster), how).value_or_throw();
}

TEST(Rounds, AreCountedAsTheyWouldBeSimulated) {
  std::mt19937 random(61);
  int counted = 0, simulated_in_full = 0, shared = 0;
  for (int i = 0; i < 170; ++i) {
    RandomJob made = random_job(random);
    if (made.job.plan.schedule == program::Schedule::kGpipe) continue;
    if (program::traits_of(made.job.plan.schedule).runs != nullptr) continue;
    SteadyState rounds;
    rounds.depth = std::max(2, made.job.plan.pipeline * 2);
    rounds.unit = made.job.plan.pipeline;
    const std::int64_t many = kWorthwhile * rounds.enough() / made.job.plan.pipeline * made.job.plan.pipeline;
    made.job = with_micro_batches(made.job, many + made.job.plan.pipeline * (i % 5));
    SCOPED_TRACE(program::summary(made.job.plan));
    ASSERT_TRUE(rounds_of(made.job));
    SimulationOptions how;
    how.unshared = true;
    const auto few = simulate_in_rounds(made.job, made.cluster, how, false, {}).value_or_throw();
    ++(few ? counted : simulated_in_full);
    if (!few) continue;
    const Simulation all = simulated(made.job, made.cluster, how);
    const Simulation& figures = few->simulation;
    const Program lowered = std::get<Program>(program::lower(made.job));
    EXPECT_EQ(list_schedule_makespan_in_rounds(made.job, made.cluster, false).value_or_throw().value(),
              list_schedule_makespan(cost(lowered, made.cluster)).value_or_throw());
    EXPECT_EQ(figures.iteration_ps, all.iteration_ps);
    EXPECT_EQ(figures.peak_memory_bytes, all.peak_memory_bytes);
    EXPECT_EQ(figures.tokens_per_s, all.tokens_per_s);
    EXPECT_EQ(figures.mfu, all.mfu);
    EXPECT_EQ(figures.hfu, all.hfu);
    EXPECT_EQ(figures.unshared_s, all.unshared_s);
    ASSERT_EQ(figures.stages.size(), all.stages.size());
    for (std::size_t s = 0; s < all.stages.size(); ++s) EXPECT_EQ(figures.stages[s].breakdown, all.stages[s].breakdown);
    EXPECT_EQ(figures.breakdown_s, all.breakdown_s);
    shared += all.unshared_s.has_value() ? 1 : 0;
  }
  std::printf("%d counted, %d simulated out, %d of the counted shared links\n", counted, simulated_in_full, shared);
  EXPECT_GT(counted, 60);
  EXPECT_GT(shared, 5);
}

// The time alone is counted of fewer micro-batches, from one simulation of a few, op by op and by segments.
TEST(Rounds, TellTheTimeOfHalfAsMany) {
  std::mt19937 random(62);
  int counted = 0, relaxed = 0, turns = 0;
  for (int i = 0; i < 240; ++i) {
    RandomJob made = i % 4 == 0 ? random_pair_job(random) : random_job(random);
    const program::Plan& plan = made.job.plan;
    SteadyState rounds;
    rounds.depth = std::max(2, plan.pipeline * 2);
    rounds.unit = plan.pipeline;
    made.job = with_micro_batches(made.job, kWorthwhileOnce * rounds.enough() + plan.pipeline * (i % 3));
    SCOPED_TRACE(program::summary(plan));
    if (!rounds_to_simulate(made.job, made.cluster, kWorthwhileOnce)) continue;
    const auto ps = iteration_in_rounds(made.job, made.cluster, {}, false, {}).value_or_throw();
    const auto by_segment = list_schedule_makespan_in_rounds(made.job, made.cluster, false).value_or_throw(),
               bound = relaxed_makespan_in_rounds(made.job, made.cluster, false).value_or_throw();
    const Prepared all = prepared(made.job, made.cluster);
    if (ps) {
      EXPECT_EQ(*ps, iteration_ps(all, {}).value_or_throw());
    }
    if (by_segment && !plan.overlap.expert) {
      const Program lowered = std::get<Program>(program::lower(made.job));
      EXPECT_EQ(*by_segment, list_schedule_makespan(cost(lowered, made.cluster)).value_or_throw());
    }
    if (bound) {
      EXPECT_EQ(*bound, relaxed_makespan(all.costed()).value_or_throw());
    }
    counted += ps ? 1 : 0;
    relaxed += bound ? 1 : 0;
    turns += ps && plan.virtual_stages > 2 ? 1 : 0;
  }
  std::printf("%d counted, %d of them of three chunks a stage and more, %d relaxed\n", counted, turns, relaxed);
  EXPECT_GT(counted, 100);
  EXPECT_GT(turns, 10);
  EXPECT_GT(relaxed, 100);
}

// Neither too few micro-batches, nor a schedule without a steady state.
TEST(Rounds, AreLookedForWhereThereAreManyAlone) {
  std::mt19937 random(3);
  RandomJob made = random_job(random);
  made.job.plan.schedule = program::Schedule::k1f1b;
  made.job.plan.virtual_stages = 1;
  made.job = with_micro_batches(made.job, 2);
  EXPECT_FALSE(rounds_of(made.job));
  made.job = with_micro_batches(made.job, 10'000);
  EXPECT_TRUE(rounds_of(made.job));
  made.job.plan.schedule = program::Schedule::kGpipe;
  EXPECT_FALSE(rounds_of(made.job));
  made.job.plan.schedule = program::Schedule::kZbv;
  made.job.plan.pipeline = made.job.plan.virtual_stages = 2;
  EXPECT_FALSE(rounds_of(made.job));
}

// What may not run is not counted either: a batch that micro-batches do not divide, or of more than there may be.
TEST(Rounds, OfJobsThatMayNotRunAreNone) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  program::Job job;
  job.model = models::load_model("gpt2-124m");
  job.training.sequence = 1024;
  job.plan.data = 4;
  job.plan.micro_batch = 2;
  job.training.global_batch = 8 * 20'000;
  EXPECT_TRUE(rounds_to_simulate(job, cluster));
  job.training.global_batch = 8 * 20'000 + 1;
  EXPECT_FALSE(rounds_to_simulate(job, cluster));
  job.training.global_batch = 8 * 40'000;
  EXPECT_FALSE(rounds_to_simulate(job, cluster));
  EXPECT_FALSE(simulate_in_rounds(job, cluster, {}, false, {}).value_or_throw());
}

// Two micro-batches of 10 ps each, the third 1 ps later.
TEST(Rounds, ComeAgainOnlyWhereEverySpanDoes) {
  program::Role role;
  std::vector<Span> spans;
  for (int m = 0; m < 6; ++m) {
    program::Task task;
    task.kind = program::TaskKind::kForward;
    task.micro_batch = m;
    role.tasks.push_back(task);
    Span span;
    span.task = m;
    span.start_ps = span.begin_ps = 10 * m;
    span.end_ps = 10 * m + 9;
    spans.push_back(span);
  }
  EXPECT_EQ(comes_again(role, spans, 1, 3, 1), 10);
  EXPECT_EQ(comes_again(role, spans, 0, 4, 2), 20);
  EXPECT_FALSE(comes_again(role, spans, 1, 6, 1));  // there is no seventh
  spans[3].end_ps += 1;
  EXPECT_FALSE(comes_again(role, spans, 1, 3, 1));
  EXPECT_EQ(comes_again(role, spans, 0, 2, 1), 10);
  program::Task other;  // of no micro-batch, in addition to them
  role.tasks.push_back(other);
  spans.push_back(spans.front());
  spans.back().task = 6;
  EXPECT_FALSE(comes_again(role, spans, 0, 2, 1));
}

}  // namespace
}  // namespace trivium::simulator
