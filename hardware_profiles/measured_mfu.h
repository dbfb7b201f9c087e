// The best model FLOPs utilisation that anyone measured and published on a device.
#pragma once

#include <string>
#include <vector>

namespace trivium::hardware {

/// One measured training run. Attention that saves its scores and attention that does not are separate entries.
struct MeasuredMfu {
  std::string device;  ///< its profile's name: "a100-sxm-80gb"
  bool flash_attention = false;
  double mfu = 0;                 ///< share of the dense 16-bit peak
  std::string what;               ///< "a 1T model on 512 GPUs, selective recomputation"
  double error = 0;               ///< of the simulator on this very run: predicted / measured iteration - 1
  std::string source, runs, run;  ///< citation; table of validation/runs, and the case in it
};

/// The shipped table (hardware_profiles/measured/mfu.json). Errors: Failure(kInput) naming the file and the place.
std::vector<MeasuredMfu> measured_mfu();

/// Of the entries the device's, or null.
const MeasuredMfu* best_measured(const std::vector<MeasuredMfu>& entries, const std::string& device,
                                 bool flash_attention);

}  // namespace trivium::hardware
