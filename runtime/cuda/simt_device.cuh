// The kernels' words on the device (kernels/simt.h).
#pragma once

#include <cuda_runtime.h>

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/warpgroup_device.cuh"

namespace trivium::runtime::cuda {

struct DeviceThread : WarpgroupWords {
  static constexpr unsigned kAll = 0xffffffffU;
  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ __forceinline__ std::int64_t block() const { return blockIdx.x; }
  __device__ __forceinline__ std::int64_t blocks() const { return gridDim.x; }
  __device__ __forceinline__ void sync() { __syncthreads(); }
  __device__ __forceinline__ bool any(bool mine) { return __syncthreads_or(mine ? 1 : 0) != 0; }
  __device__ __forceinline__ std::uint32_t ballot(bool mine) { return __ballot_sync(kAll, mine); }
  template <class V>
  __device__ __forceinline__ V shuffle_xor(V v, int mask) {
    return __shfl_xor_sync(kAll, v, mask);
  }
  __device__ __forceinline__ void raise(float* at, float value) {  // as integers they are in the same order
    if (value > *static_cast<volatile float*>(at)) atomicMax(reinterpret_cast<int*>(at), __float_as_int(value));
  }
  __device__ __forceinline__ unsigned char* shared() {
    extern __shared__ __align__(1024) unsigned char memory[];  // as the tiles of flash_warpgroup_tiles.h lie
    return memory;
  }

  // These came with sm_80: on what came before the backend runs no kernel that has them.
  __device__ __forceinline__ void copy_ahead(void* to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(__cvta_generic_to_global(from)),
                 "r"(valid ? 16 : 0)
                 : "memory");
#endif
  }
  __device__ __forceinline__ void copy_word_ahead(void* to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(__cvta_generic_to_global(from)),
                 "r"(valid ? 4 : 0)
                 : "memory");
#endif
  }
  __device__ __forceinline__ void await_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }
  __device__ __forceinline__ void matrix(const void* row, std::uint32_t (&to)[4]) {
#if __CUDA_ARCH__ >= 800
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#endif
  }
  __device__ __forceinline__ void matrix_transposed(const void* row, std::uint32_t (&to)[4]) {
#if __CUDA_ARCH__ >= 800
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#endif
  }
  __device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                           std::uint32_t b1, Bf16) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
  }
  __device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                           std::uint32_t b1, Fp16) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
  }
};

/// Threads of a block, and how many blocks a multiprocessor is to hold at once, which bounds the registers: 256 and one
/// where a kernel does not say.
template <class Kernel>
constexpr int most_threads() {
  if constexpr (requires { Kernel::kThreads; }) return Kernel::kThreads;
  return 256;
}
/// Threads that a multiprocessor holds (CUDA Programming Guide, "Technical Specifications per Compute Capability").
constexpr int resident_threads() {
#if !defined(__CUDA_ARCH__)
  return 2048;
#elif __CUDA_ARCH__ == 750
  return 1024;
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
  return 1536;
#else
  return 2048;
#endif
}
template <class Kernel>
constexpr int blocks_at_once() {
  constexpr int kMost = resident_threads() / most_threads<Kernel>();
  if constexpr (requires { Kernel::kBlocksAtOnce; })
    return Kernel::kBlocksAtOnce < kMost ? Kernel::kBlocksAtOnce : kMost;
  return 1;
}

template <class Kernel>
__global__ void __launch_bounds__(most_threads<Kernel>(), blocks_at_once<Kernel>()) entry(const Kernel kernel) {
  DeviceThread t;
  kernel(t);
}

}  // namespace trivium::runtime::cuda
