// How long lowering, ordering and simulating take, on jobs of the size the field plans.
#include <benchmark/benchmark.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/schedule/engine.h"

namespace {

using namespace trivium;

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

// 1T parameters on 3,072 GPUs: Narayanan et al. 2021, Table 1, last row.
program::Job gpt_1t() {
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

void lower(benchmark::State& state, program::Job (*make)()) {
  const program::Job job = make();
  for (auto _ : state) benchmark::DoNotOptimize(program::lower(job));
}

void simulate(benchmark::State& state, program::Job (*make)(), const char* where, simulator::Granularity granularity) {
  const hardware::Cluster cluster = hardware::load_cluster(where);
  const auto program = simulator::order(std::get<program::Program>(program::lower(make())), cluster).value_or_throw();
  std::size_t spans = 0;
  for (auto _ : state) {
    const auto simulated = simulator::list_schedule(simulator::cost(program, cluster), granularity).value_or_throw();
    spans = 0;
    for (const auto& stage : simulated.stages) spans += stage.size();
  }
  state.counters["spans"] = static_cast<double>(spans);
}

BENCHMARK_CAPTURE(lower, gpt3_175b, gpt3_175b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower, gpt_1t, gpt_1t)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, gpt3_175b_ops, gpt3_175b, "dgx-a100-80gb:128", simulator::Granularity::kOp)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, gpt3_175b_segments, gpt3_175b, "dgx-a100-80gb:128", simulator::Granularity::kSegment)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, gpt_1t_segments, gpt_1t, "dgx-a100-80gb:384", simulator::Granularity::kSegment)
    ->Unit(benchmark::kMillisecond);

}  // namespace
