// Emulations on a GPU, through the module as the executor uses it. Without a GPU the tests are skipped, and say why.
#include <cstdio>

#include "runtime/cuda/loader.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/gpu_here.h"

namespace trivium::runtime::cuda {

using program::DType;

Backend& gpu() {
  static Backend* const backend = open_device(0).value_or_throw().release();  // at exit CUDA may be gone before it
  return *backend;
}

namespace {

/// The same GPU with the kernels that it has for calls without products of warpgroups.
Backend& gpu_for(bool warpgroups) {
  static Backend* const plain = open_device(0, {.warpgroups = false}).value_or_throw().release();
  return warpgroups ? gpu() : *plain;
}

class GpuHere : public testing::Environment {
 public:
  void SetUp() override {
    const auto devices = describe_devices();
    if (devices) return;
    // In the words by which ctest knows a skipped test.
    std::printf("[  SKIPPED ] %s\n", devices.error().message.c_str());
    GTEST_SKIP() << devices.error().message;
  }
};

const testing::Environment* const kGpuHere = testing::AddGlobalTestEnvironment(new GpuHere);

/// An operand in memory of the device.
struct OnDevice {
  Memory memory;
  std::byte* host = nullptr;
  std::int64_t bytes = 0;
};

OnDevice bring(Backend& device, std::byte* host, std::int64_t bytes) {
  OnDevice there{device.allocate(bytes), host, bytes};
  device.upload(program::Lane::kCompute, there.memory.get(), host, bytes);
  return there;
}

}  // namespace

std::array<std::vector<double>, 3> EmulatedCall::on_emulation(DType type) const {
  return run(type, type, [&](const KernelArguments& arguments, const Sizes& sizes) {
    Backend& device = gpu_for(warpgroups);
    // The backend reads the program's precision off the parameters.
    program::ChunkTemplate kind;
    kind.parameters.emplace_back().value = 0;
    kind.buffers.push_back({"parameter", program::Space::kParameter, type, 1, 0});
    program::Op copy = *arguments.op;
    KernelArguments there = arguments;
    there.op = &copy;
    there.kind = &kind;
    std::vector<OnDevice> brought;
    for (std::size_t i = 0; i < sizes.in.size(); ++i) {
      if (arguments.in[i] == nullptr) continue;
      brought.push_back(bring(device, arguments.in[i], sizes.in[i]));
      there.in[i] = brought.back().memory.get();
    }
    for (std::size_t i = 0; i < sizes.out.size(); ++i) {
      if (arguments.out[i] == nullptr) continue;
      if (i == 0 && in_place) {
        there.out[0] = there.in[0];
        continue;
      }
      brought.push_back(bring(device, arguments.out[i], sizes.out[i]));
      there.out[i] = brought.back().memory.get();
    }
    device.run(there, program::Lane::kCompute);
    for (const OnDevice& each : brought) device.download(each.host, each.memory.get(), each.bytes);
  });
}

}  // namespace trivium::runtime::cuda
