#include "tests/bench/gemm_peak.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/cpu/kernels.h"
#include "runtime/inproc/cores.h"

namespace trivium::bench {
namespace {

constexpr int kSize = 1024;
constexpr double kFlops = 2.0 * kSize * kSize * kSize;
constexpr int kRounds = 5;             // the fastest of them
constexpr double kRoundSeconds = 0.1;  // at least one product
constexpr std::array kCoreTypes{"Prescott",  "Core2",      "Penryn",         "Nehalem",   "Sandybridge", "Haswell",
                                "SkylakeX",  "Cooperlake", "Sapphirerapids", "Atom",      "Barcelona",   "Bobcat",
                                "Bulldozer", "Piledriver", "Steamroller",    "Excavator", "Zen"};

struct Operands {
  std::vector<float> a, b, c;
};

Operands random_operands() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Operands o;
  for (std::vector<float>* matrix : {&o.a, &o.b, &o.c}) {
    matrix->resize(std::size_t{kSize} * kSize);
    for (float& value : *matrix) value = normal(random);
  }
  return o;
}

// FLOP/s of `product` on all threads at once.
double rate(int threads, const std::function<void(Operands&)>& product) {
  double best = 0;
  int products = 1;  // in a round; thread 0 knows after the first
  std::barrier meet(threads);
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      runtime::inproc::pin_to_core(t, threads);
      Operands operands = random_operands();
      product(operands);
      for (int round = 0; round <= kRounds; ++round) {
        meet.arrive_and_wait();
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < products; ++i) product(operands);
        meet.arrive_and_wait();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (t == 0) best = std::max(best, threads * products * kFlops / seconds);
        if (t == 0 && round == 0) products = std::max(1, static_cast<int>(kRoundSeconds / seconds));
        meet.arrive_and_wait();
      }
    });
  }
  workers.clear();
  return best;
}

double own_rate(int threads) {
  program::Op op;
  op.kind = program::OpKind::kMatmul;
  op.m = op.n = op.k = kSize;
  const runtime::Kernel kernel = runtime::cpu::find_kernel(op.kind, program::DType::kFp32);
  return rate(threads, [&](Operands& o) {
    runtime::KernelArguments a;
    a.op = &op;
    a.in = {reinterpret_cast<std::byte*>(o.a.data()), reinterpret_cast<std::byte*>(o.b.data())};
    a.out = {reinterpret_cast<std::byte*>(o.c.data())};
    kernel(a);
  });
}

}  // namespace

int measure_openblas(int threads) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (library == nullptr) return 1;
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  using Corename = char* (*)();
  const auto sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  const auto corename = reinterpret_cast<Corename>(dlsym(library, "openblas_get_corename"));
  if (sgemm == nullptr || corename == nullptr) return 1;
  constexpr int kRowMajor = 101, kNoTranspose = 111;  // cblas.h
  const double flops = rate(threads, [&](Operands& o) {
    sgemm(kRowMajor, kNoTranspose, kNoTranspose, kSize, kSize, kSize, 1, o.a.data(), kSize, o.b.data(), kSize, 0,
          o.c.data(), kSize);
  });
  fmt::print("{} {}\n", flops, corename());
  return 0;
}

GemmPeak gemm_peak(int threads, const std::string& self) {
  GemmPeak best{own_rate(threads), "this backend"};
  fmt::print(stderr, "  {:<28} {:8.1f} GFLOP/s\n", best.from, best.flops_per_s * 1e-9);
  for (const char* type : kCoreTypes) {
    const std::string command =
        fmt::format("OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE={} '{}' --openblas {} 2>/dev/null", type, self, threads);
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    double flops = 0;
    std::array<char, 64> core{};
    if (pipe == nullptr || std::fscanf(pipe.get(), "%lf %63s", &flops, core.data()) != 2) continue;
    const std::string name = fmt::format("OpenBLAS {}", core.data());
    fmt::print(stderr, "  {:<28} {:8.1f} GFLOP/s (asked for {})\n", name, flops * 1e-9, type);
    if (flops > best.flops_per_s) best = {flops, name};
  }
  return best;
}

}  // namespace trivium::bench
