// The words of warpgroups on the device (kernels/simt.h): wgmma of sm_90a. On other architectures they do nothing, and
// the launcher runs no kernel that has them.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TRIVIUM_WGMMA 1
#else
#define TRIVIUM_WGMMA 0
#endif

struct WarpgroupWords {
  /// PTX ISA, "Matrix Descriptor Format": address, and the distance of groups of eight rows, in units of 16 bytes; a
  /// layout with 128-byte swizzle.
  struct Tile {
    std::uint64_t descriptor;
    __device__ __forceinline__ Tile after(int bytes) const {
      return {descriptor + static_cast<std::uint64_t>(bytes / 16)};
    }
  };
  __device__ __forceinline__ Tile tile(const void* place) const {
    constexpr std::uint64_t kEightRows = 1024 / 16, kSwizzle128 = 1;
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(place));
    return {(address & 0x3ffff) / 16 | std::uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62};
  }

  __device__ __forceinline__ void await_copies_for_products() {
#if TRIVIUM_WGMMA
    asm volatile("cp.async.wait_all;\nfence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  __device__ __forceinline__ void begin_products() {
#if TRIVIUM_WGMMA
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  }
  __device__ __forceinline__ void end_products() {
#if TRIVIUM_WGMMA
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
  }
  template <int kUnderWay>
  __device__ __forceinline__ void await_products(float (&c)[8][4]) {
#if TRIVIUM_WGMMA
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kUnderWay) : "memory");
    keep_here(c);
#endif
  }
  template <int kUnderWay, int kParts>
  __device__ __forceinline__ void await_products(float (&c)[kParts][8][4]) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) await_products<kUnderWay>(c[i]);
  }

  template <bool kColumns, class T>
  __device__ __forceinline__ void multiply_group(float (&c)[8][4], const std::uint32_t (&a)[4], Tile b, bool adds, T) {
#if TRIVIUM_WGMMA
    if constexpr (std::is_same_v<T, Bf16>) {
      asm volatile(
          "{\n.reg .pred adds;\nsetp.ne.b32 adds, %37, 0;\n"
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
          "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
          "{%32, %33, %34, %35}, %36, adds, 1, 1, %38;\n}"
          : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
            "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
            "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
            "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
            "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.descriptor), "r"(adds ? 1 : 0), "n"(kColumns ? 1 : 0));
    } else {
      asm volatile(
          "{\n.reg .pred adds;\nsetp.ne.b32 adds, %37, 0;\n"
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
          "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
          "{%32, %33, %34, %35}, %36, adds, 1, 1, %38;\n}"
          : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
            "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
            "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
            "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
            "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.descriptor), "r"(adds ? 1 : 0), "n"(kColumns ? 1 : 0));
    }
#endif
  }
  template <class T>
  __device__ __forceinline__ void multiply_group_shared(float (&c)[8][4], Tile a, Tile b, bool adds, T) {
#if TRIVIUM_WGMMA
    if constexpr (std::is_same_v<T, Bf16>) {
      asm volatile(
          "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
          "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
          "%32, %33, adds, 1, 1, 0, 0;\n}"
          : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
            "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
            "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
            "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
            "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
          : "l"(a.descriptor), "l"(b.descriptor), "r"(adds ? 1 : 0));
    } else {
      asm volatile(
          "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
          "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
          "%32, %33, adds, 1, 1, 0, 0;\n}"
          : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
            "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
            "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
            "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
            "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
          : "l"(a.descriptor), "l"(b.descriptor), "r"(adds ? 1 : 0));
    }
#endif
  }

 private:
  /// The compiler reads no accumulator before this place.
  __device__ __forceinline__ void keep_here(float (&c)[8][4]) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
    }
  }
};

}  // namespace trivium::runtime::cuda
