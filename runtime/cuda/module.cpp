// The table that the loader asks for.
#include "runtime/cuda/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "runtime/cuda/backend.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/cupti.h"
#ifdef TRIVIUM_HAS_NCCL
#include "runtime/nccl/nccl_communicator.h"
#endif

namespace trivium::runtime::cuda {
namespace {

void tell(std::string_view words, char* text, std::size_t size) {
  const std::size_t length = std::min(words.size(), size - 1);
  std::copy_n(words.begin(), length, text);
  text[length] = '\0';
}

int count_devices(char* text, std::size_t size) {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    tell("no driver", text, size);
    return 0;
  }
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  tell(code == cudaSuccess ? "no GPU" : cudaGetErrorString(code), text, size);
  return 0;
}

void describe(int device, char* text, std::size_t size) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return tell("cannot be asked", text, size);
  int driver = 0, runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  constexpr double kGib = 1 << 30;
  std::string words =
      fmt::format("{}, sm_{}{}, {:.1f} GiB, driver for CUDA {}.{}, runtime {}.{}", properties.name, properties.major,
                  properties.minor, static_cast<double>(properties.totalGlobalMem) / kGib, driver / 1000,
                  driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
#ifdef TRIVIUM_HAS_NCCL
  int version = 0;
  static_cast<void>(ncclGetVersion(&version));
  words += fmt::format(", NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
#else
  words += ", built without NCCL";
#endif
  words += Cupti::missing().empty() ? ", CUPTI" : ", no CUPTI";
  tell(words, text, size);
}

Backend* open(int device, const DeviceOptions& options, char* text, std::size_t size) {
  try {
    return std::make_unique<CudaBackend>(device, options).release();
  } catch (const std::exception& failure) {
    tell(failure.what(), text, size);
    return nullptr;
  }
}

#ifdef TRIVIUM_HAS_NCCL
Communicator* connect(Backend& backend, const nccl::Launch& launch, char* text, std::size_t size) {
  try {
    for (const auto& [name, value] : nccl::environment_of(launch)) ::setenv(name.c_str(), value.c_str(), 0);
    if (launch.size > 1) KernelList::get().load();  // NCCL does the same with its own (2.28.9, src/enqueue.cc)
    return std::make_unique<nccl::NcclCommunicator>(dynamic_cast<CudaBackend&>(backend), launch).release();
  } catch (const std::exception& failure) {
    tell(failure.what(), text, size);
    return nullptr;
  }
}
#else
Communicator* connect(Backend&, const nccl::Launch&, char* text, std::size_t size) {
  tell("the CUDA module was built without NCCL; set NCCL_HOME and build again", text, size);
  return nullptr;
}
#endif

}  // namespace
}  // namespace trivium::runtime::cuda

extern "C" __attribute__((visibility("default"))) const trivium::runtime::cuda::CudaModule* trivium_cuda_module() {
  static constexpr trivium::runtime::cuda::CudaModule kModule{
      trivium::runtime::cuda::count_devices, trivium::runtime::cuda::describe, trivium::runtime::cuda::open,
      trivium::runtime::cuda::connect};
  return &kModule;
}
