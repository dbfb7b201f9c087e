// The one symbol of libtrivium_cuda.so: a table of what the module can do.
#pragma once

#include <cstddef>

#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/cuda/device_options.h"
#include "runtime/nccl/launch.h"

namespace trivium::runtime::cuda {

/// Texts are written to (text, size) and end in 0. Functions that make something return null and tell why in `text`.
struct CudaModule {
  /// GPUs that can be used; 0 with the reason in `text`.
  int (*count_devices)(char* text, std::size_t size);
  /// Name, compute capability and memory of a device, and the libraries' versions.
  void (*describe)(int device, char* text, std::size_t size);
  Backend* (*open)(int device, const DeviceOptions& options, char* text, std::size_t size);
  /// The ranks of `launch` joined by NCCL; `backend` came from `open` and outlives what is returned.
  Communicator* (*connect)(Backend& backend, const nccl::Launch& launch, char* text, std::size_t size);
};

using GetCudaModule = const CudaModule* (*)();
constexpr const char* kCudaModuleSymbol = "trivium_cuda_module";

}  // namespace trivium::runtime::cuda
