// What a profiler of somebody else's trainer saw of one process: kernels, copies and launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/ir/op.h"

namespace trivium::calibration::imports {

enum class KernelClass { kCollective, kAttention, kProduct, kOptimizer, kPointwise };

/// One kernel on the device, or where a trace knows cores alone a stretch of an operator's own work: what it called
/// stands apart. Seconds from the trace's own beginning.
struct Kernel {
  KernelClass kind{};
  std::int32_t name = -1;         ///< in KernelTrace::names
  std::int32_t launched_by = -1;  ///< in KernelTrace::operators: the innermost one; on cores the operator itself
  bool begins = true;             ///< false: the operator goes on after what it called
  int device = 0;
  std::int64_t stream = 0;
  double start_s = 0, seconds = 0;
  /// Of a collective, where the trace tells: a collective's time holds the wait for its last member.
  std::optional<program::OpKind> collective;
  std::string other_collective;  ///< what the trainer calls one that a training's Program does not hold
  int ranks = 0;
  std::string group;  ///< as the trainer names it; may be empty
  int peer = -1;      ///< of a transfer: the other rank of the group; -1: not told
  double bytes = 0;   ///< as collective_cost counts them
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

/// What the host did: an operator of the trainer's framework, or a range that its code marked (record_function, NVTX).
struct Operator {
  std::int32_t name = -1;      ///< in KernelTrace::names
  std::int32_t parent = -1;    ///< in KernelTrace::operators, before this one: what called it on its thread
  std::int32_t shapes = -1;    ///< in KernelTrace::shapes; -1: not recorded
  bool is_range = false;       ///< marked by the trainer's code: does no work of its own
  bool is_collective = false;  ///< a range that lasts as long as one on cores: what it calls is part of it
  /// Hands its work on: to the same operator on a part of the tensor (DTensor), or to a collective that it waits for.
  /// Its own time is the host's.
  bool is_wrapper = false;
  double begin_s = 0, end_s = 0;
};

/// Sizes of the inputs that are tensors, in their order.
using Shapes = std::vector<std::vector<std::int64_t>>;

struct TimeSpan {
  double begin_s = 0, end_s = 0;
  double seconds() const { return end_s - begin_s; }
};

/// Ranks that communicate, as the trainer told its framework.
struct ProcessGroup {
  std::string name, description;
  int size = 0;
  std::vector<int> ranks;  ///< may be empty
};

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

  std::vector<std::string> names;  ///< each once
  std::vector<Operator> operators;
  std::vector<Shapes> shapes;     ///< each once
  std::vector<TimeSpan> marked;   ///< every iteration that is marked and whole
  std::string operand_type;       ///< of most products, as PyTorch calls it; may be empty
  bool on_cores = false;          ///< kernels are operators of cores
  double base_s = 0;              ///< of the trace's beginning on its host's clock; 0: not told
  std::string host;               ///< whose clock that is; may be empty
  std::optional<int> rank;        ///< of the process, where it is told
  std::optional<int> world_size;  ///< likewise, of the job
  std::vector<ProcessGroup> groups;

  const std::string& name_of(const Kernel& kernel) const { return names[static_cast<std::size_t>(kernel.name)]; }
  const std::string& name_of(const Operator& op) const { return names[static_cast<std::size_t>(op.name)]; }
};

/// What a kernel does, from its name; nothing for copies. Names: NCCL 2.4 to 2.27, cuBLAS, CUTLASS, FlashAttention 2
/// and 3, Transformer Engine, PyTorch's own and Triton's.
KernelClass class_of_kernel(const std::string& name);

/// Whether a kernel or operator is a layer's normalization. Its class is kPointwise.
bool is_normalization(const std::string& name);

/// The collective in a NCCL kernel's name or in Kineto's "Collective name"; nothing for those a training's Program does
/// not hold.
std::optional<program::OpKind> collective_named(const std::string& name);

}  // namespace trivium::calibration::imports
