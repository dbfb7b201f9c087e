// From an op's arguments to kernels: what the functions of ops_*.h ask of the launcher that they are given.
//   run(kernel, blocks, threads, shared_bytes)   gemm(Gemm)   zero(to, bytes)   copy(to, from, bytes)
//   try_gemm(Gemm)   false, with nothing done, where no algorithm has the epilogue
//   scratch(bytes)   memory until the next op of the lane      has_tiles()   whether matrix() and multiply() work
//   has_warpgroups()   whether multiply_group() does      scaled_products()   what gemm() has of them (gemm.h)
//   note(words)   says them, once
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "runtime/cuda/gemm.h"
#include "runtime/cuda/kernels/numbers.h"
#include "runtime/kernel.h"

namespace trivium::runtime::cuda {

template <class T>
const T* input(const KernelArguments& a, int i) {
  return reinterpret_cast<const T*>(a.in[static_cast<std::size_t>(i)]);
}

template <class T>
T* output(const KernelArguments& a, int i) {
  return reinterpret_cast<T*>(a.out[static_cast<std::size_t>(i)]);
}

template <class T>
constexpr program::DType kTypeOf = program::DType::kFp32;
template <>
inline constexpr program::DType kTypeOf<Bf16> = program::DType::kBf16;
template <>
inline constexpr program::DType kTypeOf<Fp16> = program::DType::kFp16;

/// The program's precision: the type of the chunk's parameters. Ops of gradients and of statistics name types of their
/// own.
inline program::DType precision_of(const KernelArguments& a) {
  return a.kind->buffers[static_cast<std::size_t>(a.kind->parameters.front().value)].dtype;
}

/// Calls work(W as a constant) with four elements at once where rows of n allow it.
template <class Work>
void with_width(std::int64_t n, const Work& work) {
  if (n % 4 == 0) return work(std::integral_constant<int, 4>());
  work(std::integral_constant<int, 1>());
}

constexpr int kWidestBytes = 16;

/// Likewise with as many as 16 bytes hold of T, where all of `operands` lie where 16 bytes may be read.
template <class T, class Work>
void with_widest(std::int64_t n, std::initializer_list<const void*> operands, const Work& work) {
  constexpr int kWidest = kWidestBytes / static_cast<int>(sizeof(T));
  bool lie_well = n % kWidest == 0;
  for (const void* each : operands) lie_well = lie_well && reinterpret_cast<std::uintptr_t>(each) % kWidestBytes == 0;
  if (lie_well) return work(std::integral_constant<int, kWidest>());
  with_width(n, work);
}

/// Blocks for `items` of independent work.
inline std::int64_t blocks_for(std::int64_t items, int threads) {
  const std::int64_t blocks = (items + threads - 1) / threads;
  return blocks < 1 ? 1 : blocks;
}

}  // namespace trivium::runtime::cuda
