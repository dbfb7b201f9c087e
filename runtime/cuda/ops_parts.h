// What ops over rows of tokens have in common.
#pragma once

#include "runtime/cuda/kernels/dropping.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/kernels/positions.h"

namespace trivium::runtime::cuda {

inline constexpr int kElementThreads = 256;
inline constexpr int kReduceBytes = kWarp * 8;  ///< of over_block, a double a warp

inline Positions positions_of(const KernelArguments& a, std::int64_t sequence) {
  Positions p;
  p.sequence = sequence;
  p.local = sequence / a.context_ranks;
  p.offset = a.op->token_sharded ? a.tensor_rank * a.op->m : 0;
  p.rank = a.context_rank;
  p.ranks = a.context_ranks;
  p.ring = a.context_method == program::ContextMethod::kRing;
  return p;
}

/// Calls work(keep): KeepAll, or what an op over token rows drops.
template <class Work>
void with_dropout(const KernelArguments& a, const Work& work) {
  if (!a.dropout.drops()) return work(KeepAll());
  work(DropTokens{a.dropout, positions_of(a, a.dropout.sequence)});
}

/// A kernel whose threads each take W elements.
template <class Launcher, class Kernel>
void run_elements(Launcher& l, const Kernel& kernel, std::int64_t items, int width = 1) {
  if (items > 0) l.run(kernel, blocks_for((items + width - 1) / width, kElementThreads), kElementThreads);
}

}  // namespace trivium::runtime::cuda
