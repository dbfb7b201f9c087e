// How fast plans are found and proved: whole searches, and plans a second.
#include <benchmark/benchmark.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/search/search.h"
#include "planner/space/space.h"

namespace {

using namespace trivium;

planner::SearchRequest request_for(const char* model, const char* cluster, std::int64_t batch) {
  planner::SearchRequest request;
  request.job.model = models::load_model(model);
  request.job.training.sequence = 2048;
  request.job.training.global_batch = batch;
  request.cluster = hardware::load_cluster(cluster);
  if (!request.cluster.homogeneous()) request.job.plan.precision = program::DType::kFp16;  // what a V100 has
  request.best = 1;
  request.others = 9;
  request.gap = 0.001;
  request.constraints = planner::closed_unless_allowed({}, {});
  return request;
}

void search(benchmark::State& state, const char* model, const char* cluster, std::int64_t batch) {
  const planner::SearchRequest request = request_for(model, cluster, batch);
  planner::SearchResult result;
  for (auto _ : state) result = planner::search(request, 0, {}, {});
  using benchmark::Counter;
  const auto rate = [](std::int64_t plans) {
    return Counter(static_cast<double>(plans), Counter::kIsIterationInvariantRate);
  };
  state.counters["plans"] = static_cast<double>(result.plans_in_space);
  state.counters["covered_per_s"] = rate(result.plans_in_space);
  state.counters["simulated"] = static_cast<double>(result.plans_simulated);
  state.counters["simulated_per_s"] = rate(result.plans_simulated);
  if (!result.proved) state.SkipWithError("not proved");
}

// A fixed loop run along with the searches: how fast the machine is at the time of measuring.
void reference(benchmark::State& state) {
  for (auto _ : state) {
    std::uint64_t x = 88172645463325252ULL;
    for (int i = 0; i < 50'000'000; ++i) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    benchmark::DoNotOptimize(x);
  }
}

void count(benchmark::State& state) {
  const planner::SearchRequest request = request_for("gpt3-175b", "dgx-a100-80gb:512", 2048);
  for (auto _ : state) benchmark::DoNotOptimize(planner::Space(request).count());
}

BENCHMARK(reference)->Unit(benchmark::kMillisecond);
BENCHMARK(count)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt3_175b_64, "gpt3-175b", "dgx-a100-80gb:8", 2048)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search, gpt3_175b_512, "gpt3-175b", "dgx-a100-80gb:64", 2048)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search, gpt3_175b_4096, "gpt3-175b", "dgx-a100-80gb:512", 2048)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search, gpt3_175b_mixed, "gpt3-175b", "dgx-a100-80gb:16+dgx1-v100-32gb:16", 1536)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search, gpt_1t_3072, "megatron-1008.0b", "dgx-a100-80gb:384", 3072)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
