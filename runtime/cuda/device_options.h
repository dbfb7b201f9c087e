// How a GPU is to work.
#pragma once

#include <string>

namespace trivium::runtime::cuda {

struct DeviceOptions {
  bool kernel_records = false;  ///< times of ops are those of their kernels, as CUPTI records them
  bool warpgroups = true;       ///< Hopper's products of warpgroups, where device and module have them
  bool epilogues = false;       ///< products of matrices and GELU in one, where there are such
  /// Folder of the algorithms that products use; empty: the first that cuBLASLt names.
  std::string products = "";
  /// Folder to which algorithms are timed, for other runs; empty: none are.
  std::string times_products = "";
  int rank = 0;  ///< whose times those are
};

}  // namespace trivium::runtime::cuda
