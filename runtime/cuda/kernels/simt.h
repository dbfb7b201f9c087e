// The words that kernels are written in. A kernel is a struct whose call operator is one thread's work; it is compiled
// for the device by nvcc, and by any compiler for the host emulation of the tests, which run the same source on the
// host.
//
// `Thread` is what a kernel knows of its place and of its neighbours:
//   thread(), threads()   within the block; a multiple of 32         block(), blocks()
//   sync()                barrier of the block                       any(bool)  whether it holds for any of the block
//   ballot(bool)          bits by thread of the warp: for which of them it holds
//   raise(at, value)      the larger of both, neither negative, is left in global memory, whoever comes first
//   shuffle_xor(v, mask)  the value of the warp's thread whose place differs by the mask
//   shared()              the block's shared memory, 16-byte aligned
//   matrix(row, r)        four 8x8 matrices of 16-bit elements from shared memory (PTX ldmatrix.x4): the threads of the
//                         warp name the rows; matrix_transposed likewise
//   copy_ahead(to, from, valid)  16 aligned bytes from global to shared memory, zeros where not valid, some time before
//                         this thread's await_copies (PTX cp.async); `from` may be read either way
//   copy_word_ahead(to, from, valid)  4 aligned bytes likewise
//   await_copies()        all of this thread's are there; other threads see them after the next sync()
//   multiply(c, a, b, T)  c (16x8) += a (16x16) b (16x8) of type T, bf16 or fp16 (PTX mma.m16n8k16)
// and, of the four warps of a warpgroup together (PTX wgmma.m64n64k16), where the launcher has_warpgroups():
//   tile(p)               a tile as products read it (flash_warpgroup_tiles.h); after(bytes) further on
//   await_copies_for_products()  await_copies, and after the next sync() products see them too
//   begin_products()      from here on products see what was written to registers
//   multiply_group<kColumns>(c, a, b, adds, T)  c (64x64) of registers, laid out as by multiply, = or += a (64x16) of
//                         registers times 16 columns of b's 64 rows, transposed, or with kColumns times its 16 rows,
//                         then also c (64x128)
//   multiply_group_shared(c, a, b, adds, T)  likewise with 16 columns of a's 64 rows
//   end_products()        closes a batch of products
//   await_products<N>(c)  all batches but the last N are done: c may be read, and operands in memory written
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define TRIVIUM_DEVICE __device__ __forceinline__
#define TRIVIUM_UNROLL _Pragma("unroll")
#else
#define TRIVIUM_DEVICE inline
#define TRIVIUM_UNROLL
#endif

namespace trivium::runtime::cuda {

constexpr int kWarp = 32;

TRIVIUM_DEVICE int count_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __popc(bits);
#else
  return std::popcount(bits);
#endif
}

/// v of all threads of the warp joined by `op`, the same for all of them.
template <class V, class Thread, class Join>
TRIVIUM_DEVICE V over_warp(Thread& t, V v, Join join) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v = join(v, t.shuffle_xor(v, mask));
  return v;
}

/// v of all warps of the block, each of which has one, joined by `op`. `room`: of a value for each warp. Every thread
/// has read the result when the room may be written again: callers that use it twice sync in between.
template <class V, class Thread, class Join>
TRIVIUM_DEVICE V over_warps(Thread& t, V v, V* room, Join join) {
  if (t.threads() == kWarp) return v;
  if (t.thread() % kWarp == 0) room[t.thread() / kWarp] = v;
  t.sync();
  v = room[0];
  for (int warp = 1; warp < t.threads() / kWarp; ++warp) v = join(v, room[warp]);
  t.sync();
  return v;
}

/// Likewise of all threads of the block.
template <class V, class Thread, class Join>
TRIVIUM_DEVICE V over_block(Thread& t, V v, V* room, Join join) {
  return over_warps(t, over_warp(t, v, join), room, join);
}

struct Sum {
  template <class V>
  TRIVIUM_DEVICE V operator()(V a, V b) const {
    return a + b;
  }
};
struct Largest {
  TRIVIUM_DEVICE float operator()(float a, float b) const {
#if defined(__CUDA_ARCH__)
    return fmaxf(a, b);  // one instruction
#else
    return a < b ? b : a;
#endif
  }
};

constexpr std::int64_t kMostRowThreads = 256;

/// Threads for rows of `items`, each thread taking several of them if there are many.
inline int row_threads(std::int64_t items) {
  const std::int64_t even = (items + kWarp - 1) / kWarp * kWarp;
  return static_cast<int>(even < kWarp ? kWarp : even > kMostRowThreads ? kMostRowThreads : even);
}

}  // namespace trivium::runtime::cuda
