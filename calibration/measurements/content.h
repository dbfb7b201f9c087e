// What kind of measurement a file holds, told by its content, never by its name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace trivium::calibration::imports {

enum class Content {
  kRunRecord,      ///< `trivium.run/1`
  kPlan,           ///< `trivium.plan/1` or a plan result
  kProfile,        ///< `trivium.hardware/1`
  kChromeTrace,    ///< PyTorch's profiler, or `trivium run --trace`
  kNsight,         ///< SQLite export of Nsight Systems
  kNcclTests,      ///< text or JSON
  kTopology,       ///< `nvidia-smi topo -m`
  kTrainingLog,    ///< Megatron-LM, DeepSpeed
  kPublishedRuns,  ///< table with the columns of validation/README.md
};

/// `text` is unpacked already. Errors: Failure(kInput) naming what is read, for a file that is none of them, or empty.
Content content_of(std::string_view text, const std::string& file);

}  // namespace trivium::calibration::imports
