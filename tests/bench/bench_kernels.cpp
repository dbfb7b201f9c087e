// The CPU kernels that training spends its time in, on one thread.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "program/ir/op.h"
#include "runtime/cpu/kernels.h"

namespace {

using namespace trivium;

std::vector<float> random_values(std::int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = normal(random);
  return values;
}

std::byte* bytes(std::vector<float>& v) { return reinterpret_cast<std::byte*>(v.data()); }

// y (m,n) = x (m,k) w (k,n).
void matmul(benchmark::State& state) {
  program::Op op;
  op.kind = program::OpKind::kMatmul;
  op.m = state.range(0), op.n = state.range(1), op.k = state.range(2);
  auto x = random_values(op.m * op.k), w = random_values(op.k * op.n), y = random_values(op.m * op.n);
  runtime::KernelArguments a;
  a.op = &op;
  a.in = {bytes(x), bytes(w)};
  a.out = {bytes(y)};
  const runtime::Kernel kernel = runtime::cpu::find_kernel(op.kind, program::DType::kFp32);
  for (auto _ : state) kernel(a);
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(op.m * op.n * op.k), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(matmul)
    ->Args({256, 3072, 768})
    ->Args({1024, 1024, 1024})
    ->Args({128, 512, 128})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
