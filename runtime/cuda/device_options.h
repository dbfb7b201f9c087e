// How a GPU is to work.
#pragma once

namespace trivium::runtime::cuda {

struct DeviceOptions {
  bool kernel_records = false;  ///< times of ops are those of their kernels, as CUPTI records them
  bool epilogues = false;       ///< products of matrices and GELU in one, where there are such
};

}  // namespace trivium::runtime::cuda
