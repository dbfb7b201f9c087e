// What the name of a GPU tells, however profiles, drivers and profilers write it.
#pragma once

#include <string_view>

namespace trivium::calibration {

struct GpuModel {
  std::string_view name;   ///< "H100"
  double nvlink_rate = 0;  ///< B/s of one NVLink, one direction
};

/// The model that a name holds ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"); null where none is known.
const GpuModel* gpu_model_in(std::string_view name);

}  // namespace trivium::calibration
