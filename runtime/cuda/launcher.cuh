// Launcher::run, for the files that hold kernels. Without nvcc it is whoever includes them that defines it.
#pragma once

#if defined(__CUDACC__)

#include "runtime/cuda/check.h"
#include "runtime/cuda/launcher.h"
#include "runtime/cuda/simt_device.cuh"

namespace trivium::runtime::cuda {

template <class Kernel>
const bool kIsListed = KernelList::get().add(reinterpret_cast<const void*>(entry<Kernel>));

template <class Kernel>
void Launcher::run(const Kernel& kernel, std::int64_t blocks, int threads, int shared_bytes) {
  constexpr int kWithoutAsking = 48 * 1024;  // more shared memory must be asked for, once for each kernel
  static_cast<void>(kIsListed<Kernel>);
  if (blocks <= 0) return;
  count(1);
  if (shared_bytes > kWithoutAsking) {
    TRIVIUM_CHECK_CUDA(cudaFuncSetAttribute(entry<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  }
  entry<Kernel><<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), static_cast<std::size_t>(shared_bytes),
                  stream_>>>(kernel);
  TRIVIUM_CHECK_CUDA(cudaGetLastError());
}

}  // namespace trivium::runtime::cuda

#endif
