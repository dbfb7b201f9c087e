// Times of single ops on a GPU, through the backend as the executor uses it.
//   bench_cuda [--filter TEXT] [--json FILE]
// A time is that of a call among many that are issued one after the other, between two events of the stream; the median
// of several such batches. Calls take turns on copies of their operands that no cache holds together. TB/s are those of
// the bytes that have to be read and written, TFLOP/s of the products that are needed. Exits with 77 without a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/loader.h"
#include "tests/bench/cuda_cases.h"

namespace {

using namespace trivium;
using bench::CudaCase;
using bench::Fill;
using bench::Operand;
using program::Lane;
using program::OpKind;

constexpr int kNoGpu = 77, kBatches = 5;
constexpr std::int64_t kBeyondCaches = std::int64_t{256} << 20, kMostCopies = 16, kMostCalls = 200;
constexpr double kBatchUs = 4000;

/// Memory of the device with numbers in it.
class Filler {
 public:
  explicit Filler(runtime::Backend& device) : device_(device) {
    std::mt19937 random(1);
    std::vector<float> wide(kPool / sizeof(float)), positive;
    for (float& x : wide) x = static_cast<float>(random() >> 8) / 8388608.0F - 1.0F;
    for (const float x : wide) positive.push_back((x + 1) / 2);
    std::vector<runtime::cuda::Bf16> half;
    for (std::size_t i = 0; i < 2 * wide.size(); ++i)
      half.push_back(runtime::cuda::narrow<runtime::cuda::Bf16>(wide[i % wide.size()]));
    wide_ = pool_of(wide.data()), positive_ = pool_of(positive.data()), half_ = pool_of(half.data());
  }

  runtime::Memory make(const Operand& operand) {
    runtime::Memory memory = device_.allocate(operand.bytes);
    if (operand.fill == Fill::kZero) return memory;
    if (operand.fill == Fill::kIds) {
      const std::vector<std::int32_t> ids = bench::made_ids(operand.bytes / 4);
      device_.upload(Lane::kCompute, memory.get(), ids.data(), operand.bytes);
      return memory;
    }
    const runtime::Memory& pool = operand.fill == Fill::kHalf ? half_ : operand.fill == Fill::kWide ? wide_ : positive_;
    for (std::int64_t done = 0; done < operand.bytes; done += kPool)
      copy(memory.get() + done, pool.get(), std::min<std::int64_t>(kPool, operand.bytes - done));
    return memory;
  }

 private:
  static constexpr std::int64_t kPool = std::int64_t{8} << 20;  // bytes

  runtime::Memory pool_of(const void* from) {
    runtime::Memory memory = device_.allocate(kPool);
    device_.upload(Lane::kCompute, memory.get(), from, kPool);
    return memory;
  }
  void copy(std::byte* to, std::byte* from, std::int64_t bytes) {
    program::ChunkTemplate kind;
    kind.parameters.emplace_back().value = 0;
    kind.buffers.push_back({"half", program::Space::kParameter, program::DType::kBf16, 1, 0});
    program::Op op;
    op.kind = OpKind::kFetch, op.elements = bytes;
    runtime::KernelArguments a;
    a.op = &op, a.kind = &kind, a.in[0] = from, a.out[0] = to;
    device_.run(a, Lane::kCompute);
  }

  runtime::Backend& device_;
  runtime::Memory wide_, positive_, half_;
};

/// The case's calls, each on operands of its own.
class Calls {
 public:
  Calls(runtime::Backend& device, Filler& filler, const CudaCase& what) : device_(device), what_(what) {
    values_.learning_rate = 1e-4, values_.loss_weight = 1.0 / static_cast<double>(std::max<std::int64_t>(1, what.op.m));
    const std::int64_t copies = std::clamp<std::int64_t>(kBeyondCaches / what.footprint() + 1, 1, kMostCopies);
    for (std::int64_t i = 0; i < copies; ++i) calls_.push_back(make(filler));
    device.finish();
  }

  /// Microseconds a call takes among so many.
  double time(std::int64_t count) {
    device_.start_clock(runtime::now_ns());
    const std::int32_t from = device_.stamp(Lane::kCompute);
    for (std::int64_t i = 0; i < count; ++i) device_.run(calls_[next_++ % calls_.size()], Lane::kCompute);
    const std::int32_t to = device_.stamp(Lane::kCompute);
    device_.finish();
    const auto ns = static_cast<double>(device_.since_start_ns(to) - device_.since_start_ns(from));
    return ns * 1e-3 / static_cast<double>(count);
  }

 private:
  std::byte* made(Filler& filler, const Operand& operand) {
    if (operand.bytes == 0) return nullptr;
    memory_.push_back(filler.make(operand));
    return memory_.back().get();
  }
  runtime::KernelArguments make(Filler& filler) {
    runtime::KernelArguments a;
    a.op = &what_.op, a.kind = &what_.kind, a.values = &values_, a.optimizer = &optimizer_;
    a.vocabulary = bench::kVocabulary;
    for (std::size_t i = 0; i < a.in.size(); ++i) a.in[i] = made(filler, what_.in[i]);
    for (std::size_t i = 0; i < a.out.size(); ++i) a.out[i] = made(filler, what_.out[i]);
    for (std::size_t i = 0; i < what_.spaces.size(); ++i) a.chunk_base[i] = made(filler, what_.spaces[i]);
    if (what_.in_place) a.out[0] = a.in[0];
    if (what_.after_forward) {
      program::Op forward = what_.op;
      forward.kind = OpKind::kAttention;
      runtime::KernelArguments before = a;
      before.op = &forward, before.in = {a.in[0]}, before.out = {a.in[1], a.in[2]};
      device_.run(before, Lane::kCompute);
    }
    return a;
  }

  runtime::Backend& device_;
  const CudaCase& what_;
  runtime::StepValues values_;
  program::Optimizer optimizer_;
  std::vector<runtime::Memory> memory_;
  std::vector<runtime::KernelArguments> calls_;
  std::size_t next_ = 0;
};

/// Microseconds of a call.
double measure(runtime::Backend& device, Filler& filler, const CudaCase& what) {
  Calls calls(device, filler, what);
  calls.time(2);  // what is loaded, and chosen, at the first call
  const double rough = std::max(1.0, calls.time(2));
  const std::int64_t count = std::clamp<std::int64_t>(static_cast<std::int64_t>(kBatchUs / rough), 1, kMostCalls);
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) times.push_back(calls.time(count));
  std::ranges::nth_element(times, times.begin() + kBatches / 2);
  return times[kBatches / 2];
}

struct Options {
  std::string filter, json;
};

Options options_of(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const bool known = words[i] == "--filter" || words[i] == "--json";
    if (!known || i + 1 == words.size()) throw std::invalid_argument("bench_cuda [--filter TEXT] [--json FILE]");
    (words[i] == "--filter" ? options.filter : options.json) = words[i + 1];
  }
  return options;
}

void run(const Options& options, const std::string& device_name) {
  const std::unique_ptr<runtime::Backend> device = runtime::cuda::open_device(0).value_or_throw();
  Filler filler(*device);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  fmt::print("{}\n{:<24}{:<36}{:>10}{:>8}{:>9}\n", device_name, "op", "shape", "us", "TB/s", "TFLOP/s");
  for (const CudaCase& each : bench::cuda_cases()) {
    if (fmt::format("{} {}", each.name, each.shape).find(options.filter) == std::string::npos) continue;
    const double us = measure(*device, filler, each);
    const double bandwidth = each.bytes * 1e-6 / us, rate = each.flops * 1e-6 / us;
    fmt::print("{:<24}{:<36}{:>10.1f}{:>8}{:>9}\n", each.name, each.shape, us,
               bandwidth > 0 ? fmt::format("{:.2f}", bandwidth) : "", rate > 0 ? fmt::format("{:.0f}", rate) : "");
    std::fflush(stdout);
    results.push_back(
        {{"op", each.name}, {"shape", each.shape}, {"microseconds", us}, {"bytes", each.bytes}, {"flops", each.flops}});
  }
  if (options.json.empty()) return;
  const nlohmann::ordered_json all{{"device", device_name}, {"dtype", "bf16"}, {"ops", results}};
  std::ofstream(options.json) << all.dump(1) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = options_of({argv + 1, argv + argc});
    const auto devices = runtime::cuda::describe_devices();
    if (!devices) {
      fmt::print(stderr, "bench_cuda: {}\n", devices.error().message);
      return kNoGpu;
    }
    run(options, devices.value().front());
  } catch (const std::exception& failure) {
    fmt::print(stderr, "bench_cuda: {}\n", failure.what());
    return 1;
  }
  return 0;
}
