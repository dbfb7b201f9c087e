// CUPTI, opened when it is asked for: nothing links it.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/cuda/activity_log.h"

namespace trivium::runtime::cuda {

/// Records of kernels, copies and fills of this process, from the first `open` to its end. CUPTI knows one listener a
/// process.
class Cupti {
 public:
  /// Why it cannot be opened, or empty: built without its header, or no libcupti.so (of the toolkit's version at build
  /// time) on the linker's path, under $CUDA_HOME or under /usr/local/cuda. Starts nothing.
  static std::string missing();
  /// The listener. Throws Aborted where it is missing or the driver refuses it.
  static Cupti& open();

  /// What this thread issues from here on carries the number, until the next one.
  void tag(std::uint64_t number);
  void untag();
  std::uint64_t now_ns() const;  ///< of the records' clock
  /// All records of work that has ended are in the log then.
  void flush();
  ActivityLog& log() { return log_; }

 private:
  Cupti() = default;
  ActivityLog log_;
  bool tagged_ = false;
};

}  // namespace trivium::runtime::cuda
