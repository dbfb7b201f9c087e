// The best model FLOPs utilisation that anyone measured and published on a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::hardware {

/// One measured training run. Attention that saves its scores and attention that does not are separate entries.
struct MeasuredMfu {
  std::string device;  ///< its profile's name: "a100-sxm-80gb"
  bool flash_attention = false;
  bool mixture = false;           ///< of experts
  std::string precision;          ///< of products: "16 bits", "8 bits", "4 bits"
  double mfu = 0;                 ///< share of the dense 16-bit peak
  std::string what;               ///< "a 1T model on 512 GPUs, selective recomputation"
  double error = 0;               ///< of the simulator on this very run: predicted / measured iteration - 1
  std::string source, runs, run;  ///< citation; table of validation/runs, and the case in it
};

/// The best published run of one job: a model, its batch and the devices.
struct MeasuredRun {
  std::string device, precision;  ///< as above
  std::int64_t layers = 0, hidden = 0, heads = 0, experts = 0, sequence = 0, global_batch = 0, devices = 0;
  double iteration_s = 0;
  double error = 0;               ///< as above
  std::string plan;               ///< "TP2 PP8x4 DP16 EP32"
  std::string run, runs, source;  ///< as above
  double tokens_per_s_per_device() const;
};

/// "16 bits", "8 bits" or "4 bits": what the widest products of a plan with that recipe have; `fp8`: its name.
std::string precision_class(std::string_view fp8);

/// The shipped list of runs, at the same place. Errors: as measured_mfu().
std::vector<MeasuredRun> measured_runs();

/// The shipped table (hardware_profiles/measured/mfu.json). Errors: Failure(kInput) naming the file and the place.
std::vector<MeasuredMfu> measured_mfu();

/// Of the entries the device's, or null.
const MeasuredMfu* best_measured(const std::vector<MeasuredMfu>& entries, const std::string& device,
                                 bool flash_attention, bool mixture, const std::string& precision);

}  // namespace trivium::hardware
