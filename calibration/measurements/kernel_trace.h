// What a profiler of somebody else's trainer saw of one process: kernels, copies and launches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program/ir/op.h"

namespace trivium::calibration::imports {

enum class KernelClass { kCollective, kAttention, kProduct, kOptimizer, kPointwise };

/// One kernel on the device. Seconds from the trace's own beginning.
struct Kernel {
  KernelClass kind{};
  int device = 0;
  double start_s = 0, seconds = 0;
  /// Of a collective, where the trace tells: a collective's time holds the wait for its last member.
  std::optional<program::OpKind> collective;
  int ranks = 0;
  double bytes = 0;  ///< as collective_cost counts them
  /// Of a product, where the trace tells: batch x (m,k) · (k,n).
  double m = 0, n = 0, k = 0, batch = 1;
  int operand_bytes = 0;
};

/// A copy between host and device.
struct HostCopy {
  double bytes = 0, seconds = 0;
};

/// Whether a copy can have been measured: clocks of profilers tell nanoseconds, and no link carries a petabyte a
/// second. Others, of damaged traces, would end as speeds that are no numbers.
inline bool is_plausible(const HostCopy& copy) {
  constexpr double kShortest = 1e-9, kFastest = 1e15;
  return copy.bytes > 0 && copy.seconds >= kShortest && copy.bytes / copy.seconds <= kFastest;
}

struct KernelTrace {
  std::string file;
  std::string tool;    ///< "Kineto" or "Nsight Systems …"
  std::string device;  ///< name of the GPU; may be empty
  std::vector<Kernel> kernels;
  std::vector<HostCopy> copies;
  std::vector<double> launch_gaps_s;  ///< between the starts of neighbouring launches of one thread
  int steps = 0;                      ///< iterations that are marked as such and whole; 0: none is marked
  double steps_begin_s = 0, steps_end_s = 0;
  bool is_truncated = false;
};

/// What a kernel does, from its name; nothing for copies. Names: NCCL 2.4 to 2.27, cuBLAS, CUTLASS, FlashAttention 2
/// and 3, Transformer Engine, PyTorch's own and Triton's.
KernelClass class_of_kernel(const std::string& name);

/// The collective in a NCCL kernel's name or in Kineto's "Collective name"; nothing for those a training's Program does
/// not hold.
std::optional<program::OpKind> collective_named(const std::string& name);

}  // namespace trivium::calibration::imports
