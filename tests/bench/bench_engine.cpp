// The event engine at the size of the field's largest jobs: wall time from the model's file to the iteration, every
// rank.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/analytic/cost_estimator.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/engine.h"

namespace {

using namespace trivium;

// The largest resident size so far, MiB: of the process, so run with --benchmark_filter for one job's own.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// 96 layers of width 12,288 over 512 GPUs: docs/journal/benchmarks.md has what other simulators take for this job.
program::Job job_175b(std::int64_t micro_batches, int data = 8) {
  program::Job job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = 2048;
  job.training.global_batch = micro_batches * data;
  job.plan.tensor = 8;
  job.plan.pipeline = 8;
  job.plan.data = data;
  job.plan.overlap.gradient_reduction = true;
  return job;
}

program::Job job_1t() {
  program::Job job;
  job.model = models::load_model("megatron-1008.0b");
  job.training.sequence = 2048;
  job.training.global_batch = 3072;
  job.plan.tensor = 8;
  job.plan.pipeline = 64;
  job.plan.data = 6;
  job.plan.recompute = program::Recompute::kFull;
  return job;
}

struct Counts {
  std::int64_t rendezvous = 0, flows = 0, steps = 0;
};

Counts iteration(const program::Job& job, const std::string& where, const simulator::ReplayOptions& how,
                 double jitter) {
  const hardware::Cluster cluster = hardware::load_cluster(where);
  const auto program = simulator::order(std::get<program::Program>(program::lower(job)), cluster).value_or_throw();
  const simulator::CostedProgram costed = simulator::cost(program, cluster);
  const simulator::ReplayProgram cast = simulator::compile_replay(costed, how).value_or_throw();
  simulator::Variation variation;
  variation.jitter = jitter;
  variation.seed = 1;
  const auto simulated = simulator::replay(costed, cast, variation, simulator::Keep::kNothing).value_or_throw();
  benchmark::DoNotOptimize(simulated.makespan_ps);
  Counts counts{simulated.rendezvous, simulated.flows, 0};
  for (const std::int32_t role : cast.topology.role) {
    for (const auto& stream : cast.streams_by_role[static_cast<std::size_t>(role)].streams) {
      for (const simulator::Instruction& in : stream) counts.steps += in.steps;
    }
  }
  return counts;
}

void report(benchmark::State& state, const Counts& counts) {
  state.counters["steps"] = static_cast<double>(counts.steps);
  state.counters["rendezvous"] = static_cast<double>(counts.rendezvous);
  state.counters["flows"] = static_cast<double>(counts.flows);
  state.counters["peak_MiB"] = peak_mib();
}

constexpr simulator::ReplayOptions kOps{simulator::Granularity::kOp, simulator::Ranks::kEvery, true};
constexpr simulator::ReplayOptions kTasks{simulator::Granularity::kSegment, simulator::Ranks::kEvery, false};

void every_rank_ops(benchmark::State& state, std::int64_t micro_batches, double jitter) {
  Counts counts;
  for (auto _ : state) counts = iteration(job_175b(micro_batches), "dgx-a100-80gb:64", kOps, jitter);
  report(state, counts);
}

// The same iteration by one rank for every stage, links shared as classes of links.
void folded_ops_shared_links(benchmark::State& state) {
  constexpr simulator::ReplayOptions kFoldedOps{simulator::Granularity::kOp, simulator::Ranks::kFolded, true};
  Counts counts;
  for (auto _ : state) counts = iteration(job_175b(16), "dgx-a100-80gb:64", kFoldedOps, 0);
  report(state, counts);
}

void every_rank_tasks(benchmark::State& state) {
  Counts counts;
  for (auto _ : state) counts = iteration(job_1t(), "dgx-a100-80gb:384", kTasks, 0);
  report(state, counts);
}

// One rank for every stage: communication starts when all are ready, so no order has to be found first.
void folded_tasks(benchmark::State& state) {
  for (auto _ : state) {
    const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:384");
    const auto program = std::get<program::Program>(program::lower(job_1t()));
    const auto simulated = simulator::list_schedule_makespan(simulator::cost(program, cluster));
    benchmark::DoNotOptimize(simulated.value());
  }
  state.counters["peak_MiB"] = peak_mib();
}

// 64 to 16,384 GPUs: as many replicas of the 64-GPU job as it takes, jitter and shared links on.
void cost_curve(benchmark::State& state) {
  const auto gpus = state.range(0);
  Counts counts;
  for (auto _ : state) {
    counts =
        iteration(job_175b(16, static_cast<int>(gpus / 64)), "dgx-a100-80gb:" + std::to_string(gpus / 8), kOps, .05);
  }
  report(state, counts);
  state.counters["s_per_1k_GPUs"] = benchmark::Counter(
      static_cast<double>(gpus) / 1024, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// One evaluation of the closed-form bound, as the search makes them: plans that share a layer share an estimator.
void analytic(benchmark::State& state) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:64");
  const program::Job job = job_175b(16);
  simulator::CostEstimator estimator(job, cluster);
  for (auto _ : state) benchmark::DoNotOptimize(simulator::lower_bound_ps(estimator.schedule_costs(job.plan)));
}

BENCHMARK(analytic)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(every_rank_ops, 175b_512_gpus_16_micro_batches, 16, 0.0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(every_rank_ops, 175b_512_gpus_16_micro_batches_jitter, 16, 0.05)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(every_rank_ops, 175b_512_gpus_64_micro_batches_jitter, 64, 0.05)->Unit(benchmark::kMillisecond);
BENCHMARK(folded_ops_shared_links)->Name("folded_ops_shared_links/175b_512_gpus")->Unit(benchmark::kMillisecond);
BENCHMARK(every_rank_tasks)->Name("every_rank_tasks/1t_3072_gpus")->Unit(benchmark::kMillisecond);
BENCHMARK(folded_tasks)->Name("folded_tasks/1t_3072_gpus")->Unit(benchmark::kMillisecond);
BENCHMARK(cost_curve)->RangeMultiplier(4)->Range(64, 16384)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
