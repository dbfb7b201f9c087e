// Ranges and lanes as profilers of CUDA show them, by the Program's names (NVTX, header-only: without a profiler a
// range costs a few nanoseconds).
#pragma once

#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#define TRIVIUM_HAS_NVTX
#endif

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>

#include "program/ir/op.h"

namespace trivium::runtime::cuda {

/// The op's name, and its layer within the chunk, from here to the end of the scope.
class Range {
 public:
#if defined(TRIVIUM_HAS_NVTX)
  explicit Range(const program::Op& op) {
    std::array<char, 48> text;
    const auto end = op.layer < 0 ? fmt::format_to_n(text.data(), text.size() - 1, "{}", name_of(op.kind))
                                  : fmt::format_to_n(text.data(), text.size() - 1, "{} {}", name_of(op.kind), op.layer);
    *end.out = '\0';
    nvtxRangePushA(text.data());
  }
  ~Range() { nvtxRangePop(); }
#else
  explicit Range(const program::Op&) {}
#endif
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

inline void name_lane(cudaStream_t stream, program::Lane lane) {
#if defined(TRIVIUM_HAS_NVTX)
  nvtxNameCudaStreamA(stream, name_of(lane).data());
#else
  static_cast<void>(stream), static_cast<void>(lane);
#endif
}

}  // namespace trivium::runtime::cuda
