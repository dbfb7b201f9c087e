// How a GPU is to work.
#pragma once

namespace trivium::runtime::cuda {

struct DeviceOptions {
  bool kernel_records = false;  ///< times of ops are those of their kernels, as CUPTI records them
};

}  // namespace trivium::runtime::cuda
