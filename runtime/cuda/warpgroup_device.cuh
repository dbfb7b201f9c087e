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

// Operands of inline assembly: words that name the first 32 or 64 of them, and what they stand for.
#define TRIVIUM_WORDS_32                                                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31}"
#define TRIVIUM_WORDS_64                                                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "  \
  "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define TRIVIUM_ACCUMULATORS_8(c, n)                                                                                   \
  "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3]), "+f"(c[n + 1][0]), "+f"(c[n + 1][1]), "+f"(c[n + 1][2]), \
      "+f"(c[n + 1][3])
#define TRIVIUM_ACCUMULATORS_32(c) \
  TRIVIUM_ACCUMULATORS_8(c, 0), TRIVIUM_ACCUMULATORS_8(c, 2), TRIVIUM_ACCUMULATORS_8(c, 4), TRIVIUM_ACCUMULATORS_8(c, 6)
#define TRIVIUM_ACCUMULATORS_64(c)                                                         \
  TRIVIUM_ACCUMULATORS_32(c), TRIVIUM_ACCUMULATORS_8(c, 8), TRIVIUM_ACCUMULATORS_8(c, 10), \
      TRIVIUM_ACCUMULATORS_8(c, 12), TRIVIUM_ACCUMULATORS_8(c, 14)
#define TRIVIUM_PRODUCT_OF_REGISTERS(shape, words, a0, a1, a2, a3, right, sums, columns, ...)                       \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " sums ", 0;\nwgmma.mma_async.sync.aligned." shape " " words \
               ", {" a0 ", " a1 ", " a2 ", " a3 "}, " right ", adds, 1, 1, " columns ";\n}"                         \
               : __VA_ARGS__                                                                                        \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.descriptor), "r"(adds ? 1 : 0),                  \
                 "n"(kColumns ? 1 : 0))
#define TRIVIUM_PRODUCT_OF_TILES(shape, words, left, right, sums, ...)                                              \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " sums ", 0;\nwgmma.mma_async.sync.aligned." shape " " words \
               ", " left ", " right ", adds, 1, 1, 0, 0;\n}"                                                        \
               : __VA_ARGS__                                                                                        \
               : "l"(a.descriptor), "l"(b.descriptor), "r"(adds ? 1 : 0))

struct WarpgroupWords {
  /// PTX ISA, "Matrix Descriptor Format": address, distance of blocks of 64 columns (read where products go along
  /// rows), and of groups of eight rows, in units of 16 bytes; a layout with 128-byte swizzle.
  struct Tile {
    std::uint64_t descriptor;
    __device__ __forceinline__ Tile after(int bytes) const {
      return {descriptor + static_cast<std::uint64_t>(bytes / 16)};
    }
  };
  __device__ __forceinline__ Tile tile(const void* place) const {
    constexpr std::uint64_t kEightRows = 1024 / 16, kColumns = 64 * 128 / 16, kSwizzle128 = 1;
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(place));
    return {(address & 0x3ffff) / 16 | kColumns << 16 | kEightRows << 32 | kSwizzle128 << 62};
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
  template <int kUnderWay, int N>
  __device__ __forceinline__ void await_products(float (&c)[N][4]) {
#if TRIVIUM_WGMMA
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kUnderWay) : "memory");
    keep_here(c);
#endif
  }

  template <bool kColumns, int N, class T>
  __device__ __forceinline__ void multiply_group(float (&c)[N][4], const std::uint32_t (&a)[4], Tile b, bool adds, T) {
    static_assert(N == 8 || N == 16);
#if TRIVIUM_WGMMA
    if constexpr (std::is_same_v<T, Bf16> && N == 8) {
      TRIVIUM_PRODUCT_OF_REGISTERS("m64n64k16.f32.bf16.bf16", TRIVIUM_WORDS_32, "%32", "%33", "%34", "%35", "%36",
                                   "%37", "%38", TRIVIUM_ACCUMULATORS_32(c));
    } else if constexpr (std::is_same_v<T, Bf16>) {
      TRIVIUM_PRODUCT_OF_REGISTERS("m64n128k16.f32.bf16.bf16", TRIVIUM_WORDS_64, "%64", "%65", "%66", "%67", "%68",
                                   "%69", "%70", TRIVIUM_ACCUMULATORS_64(c));
    } else if constexpr (N == 8) {
      TRIVIUM_PRODUCT_OF_REGISTERS("m64n64k16.f32.f16.f16", TRIVIUM_WORDS_32, "%32", "%33", "%34", "%35", "%36", "%37",
                                   "%38", TRIVIUM_ACCUMULATORS_32(c));
    } else {
      TRIVIUM_PRODUCT_OF_REGISTERS("m64n128k16.f32.f16.f16", TRIVIUM_WORDS_64, "%64", "%65", "%66", "%67", "%68", "%69",
                                   "%70", TRIVIUM_ACCUMULATORS_64(c));
    }
#endif
  }
  template <class T>
  __device__ __forceinline__ void multiply_group_shared(float (&c)[8][4], Tile a, Tile b, bool adds, T) {
#if TRIVIUM_WGMMA
    if constexpr (std::is_same_v<T, Bf16>) {
      TRIVIUM_PRODUCT_OF_TILES("m64n64k16.f32.bf16.bf16", TRIVIUM_WORDS_32, "%32", "%33", "%34",
                               TRIVIUM_ACCUMULATORS_32(c));
    } else {
      TRIVIUM_PRODUCT_OF_TILES("m64n64k16.f32.f16.f16", TRIVIUM_WORDS_32, "%32", "%33", "%34",
                               TRIVIUM_ACCUMULATORS_32(c));
    }
#endif
  }

 private:
  /// The compiler reads no accumulator before this place.
  template <int N>
  __device__ __forceinline__ void keep_here(float (&c)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
    }
  }
};

}  // namespace trivium::runtime::cuda
