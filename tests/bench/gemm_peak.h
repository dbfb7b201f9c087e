// The fastest matrix products of this machine: what a training's speed is a share of.
#pragma once

#include <string>

namespace trivium::bench {

struct GemmPeak {
  double flops_per_s = 0;  ///< fp32, all threads together
  std::string from;        ///< "OpenBLAS SkylakeX", "this backend"
};

/// Products of 1,024 x 1,024 matrices, one for each of `threads` at once, by this backend's kernel and by OpenBLAS with
/// the kernels of every core type it has (each in a process of its own; those this processor cannot run are passed
/// over). The best of all. One line a candidate on stderr. `self`: the program that answers measure_openblas.
GemmPeak gemm_peak(int threads, const std::string& self);

/// In such a process: prints FLOP/s and the core type that OpenBLAS chose. Exit code 1 where there is no OpenBLAS.
int measure_openblas(int threads);

}  // namespace trivium::bench
