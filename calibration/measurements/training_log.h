// Logs of Megatron-LM, DeepSpeed, torchtitan and the script of `export --to fsdp2`: how long iterations took, and what
// memory they needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measurements/file_text.h"

namespace trivium::calibration::imports {

struct TrainingLog {
  std::string file;
  std::string trainer;              ///< "Megatron-LM", "Megatron-DeepSpeed", "DeepSpeed", "PyTorch" or "torchtitan"
  std::vector<double> iteration_s;  ///< of every logged iteration or interval, in order; the last print of each
  std::vector<double> flops_per_s;  ///< model FLOPs per device, as the trainer counts them; may be empty
  std::optional<double> peak_bytes, reserved_bytes;  ///< most over the ranks that print it
  std::optional<std::int64_t> global_batch;
  std::optional<int> tensor, pipeline, context, data;  ///< sizes where the log names them
  bool perturbed = false;                              ///< timers that synchronise were on: the run was slower for them
  bool is_truncated = false;

  /// Median after the warm-up (the first five steps, or half where there are fewer).
  double typical_iteration_s() const;
};

/// Megatron-LM d98e8a64ddf3 and older forms since 2020, Megatron-DeepSpeed 4efb479d5317, DeepSpeed edaa72212672,
/// torchtitan 0.2.2 (an interval between logged steps is one of its `iteration_s`, the mean of its steps).
/// Errors: Failure(kInput) where no iteration with its time is found.
TrainingLog read_training_log(std::string_view text, const std::string& file);

bool is_training_log(const FileText& file);

}  // namespace trivium::calibration::imports
