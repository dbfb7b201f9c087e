// Output of nccl-tests: how long collectives of many sizes take among the GPUs of a machine, or of several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibration/measurements/file_text.h"
#include "program/ir/op.h"

namespace trivium::calibration::imports {

/// One size. Means over iterations after a warm-up; nobody is waited for.
struct CollectiveTime {
  program::OpKind kind{};  ///< kAllReduce, kReduceScatter, kAllGather, kAllToAll or kSend
  int ranks = 0;
  int hosts = 1;       ///< 0: not told
  double bytes = 0;    ///< as collective_cost counts them: of the whole (gathered) buffer
  double seconds = 0;  ///< out of place where it was measured, else in place
};

struct CollectiveTimes {
  std::string file;
  std::string device;   ///< as the tests name it; may be empty
  std::string version;  ///< of NCCL and the tests; may be empty
  std::vector<CollectiveTime> times;
  bool is_truncated = false;  ///< ended in the middle of a line or document
};

/// Text or `-J` JSON of nccl-tests 2.0 (2019) to 2.19 (2026); several runs may follow each other. Rows of size or time
/// zero and rows with wrong results are left out, and so are collectives that a training does not use (broadcast,
/// reduce, gather, scatter, hypercube). Copies without the `#` before the tests' own lines are read as well. Where the
/// list of ranks is missing, their number is told from the bandwidths, and the hosts are not. Source: NVIDIA/nccl-tests
/// a0b82b2260cf, src/common.cu and PERFORMANCE.md. Errors: Failure(kInput) where no row is left, or where the number of
/// ranks or the collective cannot be told.
CollectiveTimes read_nccl_tests(std::string_view text, const std::string& file);

/// Traces of PyTorch's profiler name the version of NCCL as well: they are none.
bool is_nccl_tests(const FileText& file);

}  // namespace trivium::calibration::imports
