// Issues an op's kernels and products to a stream of the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "program/ir/op.h"
#include "runtime/cuda/gemm.h"
#include "runtime/kernel.h"

namespace trivium::runtime::cuda {

class GemmEngine;

/// Who can wait until nothing is under way on the device, and notices meanwhile when that will never be.
class Idling {
 public:
  virtual void await_idle() = 0;  ///< throws Aborted

 protected:
  ~Idling() = default;
};

/// Device memory that grows and is not copied when it does.
class Scratch {
 public:
  explicit Scratch(Idling& device) : device_(device) {}
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  /// At least so many bytes. Growing waits for the device: the old memory may be in use. CUDA's own waits, e.g. in
  /// cudaFree, do not check whether the other ranks are alive; after this wait they return at once.
  std::byte* at_least(std::int64_t bytes);
  std::int64_t bytes() const { return bytes_; }
  std::uint64_t moves() const { return moves_; }  ///< how often it has grown

 private:
  Idling& device_;
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  std::uint64_t moves_ = 0;
};

/// The kernels that the module has, for all who launch them to be able to load them first. CUDA loads a kernel where it
/// is first used or asked about, and may wait for the device inside meanwhile (CUDA Programming Guide, Lazy Loading):
/// within a step that is a wait for other ranks in which nobody looks after them.
class KernelList {
 public:
  static KernelList& get();
  /// Before main, by every kernel that a Launcher can run. True, so that it can be what initialises a constant.
  bool add(const void* kernel);
  /// All of them, on the calling thread's device.
  void load() const;

 private:
  std::vector<const void*> kernels_;
};

/// What of the kernels' words (kernels/simt.h) the device has.
struct DeviceWords {
  bool tiles = false;                             ///< matrix() and multiply(): from sm_80 on
  bool codes = false;                             ///< products of operands in 8 bits: from sm_89 on
  ScaledProducts scaled = ScaledProducts::kNone;  ///< others of them
  bool warpgroups = false;  ///< multiply_group() and what belongs to it: sm_90, in a module that was built for it
};

/// One lane of the device: what ops_*.h are given.
class Launcher {
 public:
  Launcher(cudaStream_t stream, GemmEngine& products, DeviceWords words, Idling& device)
      : stream_(stream), products_(products), words_(words), scratch_(device), workspace_(device) {}

  template <class Kernel>
  void run(const Kernel& kernel, std::int64_t blocks, int threads, int shared_bytes = 0);  // launcher.cuh
  void gemm(const Gemm& gemm);
  bool try_gemm(const Gemm& gemm);
  void zero(void* to, std::int64_t bytes);
  void copy(void* to, const void* from, std::int64_t bytes);
  std::byte* scratch(std::int64_t bytes) { return scratch_.at_least(bytes); }

  bool has_tiles() const { return words_.tiles; }
  bool has_warpgroups() const { return words_.warpgroups; }
  ScaledProducts scaled_products() const { return words_.scaled; }
  /// Said once in a process.
  void note(std::string_view words);

  cudaStream_t stream() const { return stream_; }
  /// Another number when scratch memory has moved.
  std::uint64_t generation() const { return scratch_.moves() + workspace_.moves(); }
  std::int64_t scratch_bytes() const { return scratch_.bytes() + workspace_.bytes(); }

  /// What the stream was given, in places of its queue: kernels, copies, events.
  void count(std::int64_t launches) { issued_ += launches; }
  std::int64_t issued() const { return issued_; }
  /// While a graph is recorded nothing is launched, and no event can be asked.
  void records(bool yes) { records_ = yes; }
  bool records() const { return records_; }

 private:
  cudaStream_t stream_;
  GemmEngine& products_;
  DeviceWords words_;
  Scratch scratch_, workspace_;
  std::int64_t issued_ = 0;
  bool records_ = false;
};

using DeviceOperation = void (*)(Launcher&, const KernelArguments&);

/// The op's function for activations of type T, or null. Each is compiled in a file of its own (*.cu).
template <class T>
DeviceOperation find_row_operation(const program::Op& op);
template <class T>
DeviceOperation find_attention_operation(const program::Op& op);
template <class T>
DeviceOperation find_state_operation(const program::Op& op);
DeviceOperation find_wire_operation(const program::Op& op);
DeviceOperation find_operation(const program::Op& op, program::DType precision);

/// Operations of ops_epilogue.h.
using DevicePairOperation = void (*)(Launcher&, const KernelArguments&, const KernelArguments&);
struct EpilogueOperations {
  DevicePairOperation pair;
  DeviceOperation gradient_alone;
};
template <class T>
EpilogueOperations find_epilogue_operations(const program::Op& activation);
/// In 16 bits.
EpilogueOperations find_epilogue_operations(const program::Op& activation, program::DType precision);

/// pairs (count, 2) = sum over members of gathered (members, count, 2), in their order.
void sum_pairs(Launcher& launcher, const double* gathered, double* pairs, std::int64_t count, int members);

}  // namespace trivium::runtime::cuda
