// Where token rows lie in their samples.
#pragma once

#include "runtime/cuda/kernels/simt.h"

namespace trivium::runtime::cuda {

/// Where a rank's token rows lie in their samples (program/ir/context.h).
struct Positions {
  std::int64_t sequence = 0, local = 0;  ///< tokens of a sample, and those of them that this context rank holds
  std::int64_t offset = 0;               ///< of row 0 within the context rank's part of the micro-batch
  int rank = 0, ranks = 1;
  bool ring = true;

  TRIVIUM_DEVICE std::int64_t of_local(std::int64_t i, int holder) const {
    if (!ring || ranks == 1) return holder * local + i;
    const std::int64_t chunk = local / 2;
    return i < chunk ? holder * chunk + i : (2 * ranks - 1 - holder) * chunk + (i - chunk);
  }
  TRIVIUM_DEVICE std::int64_t of_row(std::int64_t r) const { return of_local((r + offset) % local, rank); }
  TRIVIUM_DEVICE std::int64_t sample_of_row(std::int64_t r) const { return (r + offset) / local; }
};

}  // namespace trivium::runtime::cuda
