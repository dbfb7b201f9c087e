// `nvidia-smi topo -m`: how the GPUs of one node reach each other, and which network adapters it has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibration/measurements/file_text.h"

namespace trivium::calibration::imports {

/// The matrix, GPUs first. Cells as the tool writes them: X, NV#, PIX, PXB, PHB, NODE, SYS (near to far), N/A.
struct GpuTopology {
  std::string file;
  int gpus = 0;
  int adapters = 0;
  std::vector<std::vector<std::string>> cells;  ///< [gpu][gpu]

  int least_nvlinks() const;  ///< of a pair; 0 where some pair has none
  int most_nvlinks() const;
};

/// Tabs or, as in copied logs, runs of blanks; escapes in the header; any number of affinity columns. Source: captures
/// of drivers 450 to 570 and the legend the tool prints. Errors: Failure(kInput) where a row has too few cells (the
/// file was cut, or cells are glued together), the diagonal is not X, or the matrix is not symmetric.
GpuTopology read_topology(std::string_view text, const std::string& file);

/// A log of a training may hold the matrix too, and is none.
bool is_topology(const FileText& file);

}  // namespace trivium::calibration::imports
