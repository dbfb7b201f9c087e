// Copies between the device and memory that it cannot reach by itself, such as a mapped file.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/cuda/launcher.h"

namespace trivium::runtime::cuda {

/// A copy from or to memory that is not pinned holds up the host until its stream has come to it. Here it goes through
/// pinned slots: a thread of CUDA's moves a part between a slot and that memory, in the order of a stream of its own,
/// while the device moves another, and the host issues both and goes on.
class PinnedRing {
 public:
  static constexpr std::int64_t kBytes = std::int64_t{4} << 20;  ///< of a slot

  explicit PinnedRing(Launcher& lane);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  /// Up to kBytes, in the lane's order. What was stored lies there once `stream` is done.
  void fetch(std::byte* device, const std::byte* host, std::int64_t bytes);
  void store(std::byte* host, const std::byte* device, std::int64_t bytes);
  cudaStream_t stream() const { return stream_; }

 private:
  struct Slot {
    std::byte* memory = nullptr;
    cudaEvent_t full = nullptr, free = nullptr;
  };
  Slot& next() { return slots_[next_++ % slots_.size()]; }
  void move_on_host(void* to, const void* from, std::int64_t bytes);

  Launcher& lane_;
  cudaStream_t stream_ = nullptr;
  std::array<Slot, 4> slots_;
  std::size_t next_ = 0;
};

}  // namespace trivium::runtime::cuda
