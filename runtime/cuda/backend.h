// One GPU as a backend: lanes are streams, marks are events.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/backend.h"
#include "runtime/cuda/cupti.h"
#include "runtime/cuda/device_options.h"
#include "runtime/cuda/epilogues.h"
#include "runtime/cuda/gemm_engine.h"
#include "runtime/cuda/graph_cache.h"
#include "runtime/cuda/graph_recorder.h"
#include "runtime/cuda/kernel_clock.h"
#include "runtime/cuda/launcher.h"
#include "runtime/cuda/pinned_ring.h"
#include "runtime/cuda/refusal.h"

namespace trivium::runtime::cuda {

bool is_on_device(const void* memory);

/// Streams and events of one device, which is the calling thread's device from then on. Kernels run asynchronously, so
/// their failures surface in a later call, at the latest in `finish`.
class CudaBackend final : public Backend, public Idling {
 public:
  /// Throws Aborted where the device cannot be used.
  explicit CudaBackend(int device, const DeviceOptions& options = {});
  ~CudaBackend() override;

  std::string_view name() const override { return "CUDA"; }
  std::string refusal(const program::Program& program, const program::Op& op) const override;

  std::string slow_path(const program::Program& program) const override;

  Memory allocate(std::int64_t bytes) override;
  Memory allocate_on_host(std::int64_t bytes) override;
  std::int64_t own_bytes() const override;
  bool shares_host_memory() const override { return false; }
  void upload(program::Lane lane, std::byte* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const std::byte* from, std::int64_t bytes) override;

  void prepare(const program::Program& program) override;
  void run(const KernelArguments& a, program::Lane lane) override;
  void replay(std::uint64_t number, program::Lane lane, const std::function<void()>& issue) override;
  void forget_replays() override;
  void enter(program::Lane lane) override;
  void mark(std::int32_t number, program::Lane lane) override;
  void wait(std::int32_t number, program::Lane lane) override;
  void finish() override;

  void start_clock(std::int64_t shared_ns) override;
  std::int32_t stamp(program::Lane lane) override;
  std::int64_t since_start_ns(std::int32_t stamp) override;
  Interval interval_ns(std::int32_t from, std::int32_t to) override;

  /// For the communicator: the lane it works for, and what is asked while the host waits for the device.
  Launcher& entered() { return launcher(entered_); }
  program::Lane entered_lane() const { return entered_; }
  void upload(std::byte* to, const void* from, std::int64_t bytes) { upload(entered_, to, from, bytes); }
  /// It is given the time when the wait began.
  using WhileWaiting = std::function<void(std::chrono::steady_clock::time_point since)>;
  void while_waiting(WhileWaiting call) { while_waiting_ = std::move(call); }
  /// Waits for one stream; throws what `while_waiting` throws.
  void await(cudaStream_t stream);
  void await_idle() override { finish(); }

 private:
  /// Pinned memory through which small copies go, so that the host need not wait for the device.
  struct Staging {
    static constexpr std::int64_t kBytes = std::int64_t{1} << 20;
    std::byte* memory = nullptr;
    cudaEvent_t free = nullptr;
  };
  /// Events in a lane's stream, by which the host knows how far behind the device is.
  struct RunAhead {
    std::int64_t issued = 0;  ///< of the lane, at the latest of the events
    std::array<cudaEvent_t, 2> events{};
    std::size_t next = 0;
  };
  Launcher& launcher(program::Lane lane) { return *lanes_[static_cast<std::size_t>(lane)]; }
  /// Waits where too much of the lane's work is unfinished. With a full queue a launch waits inside the driver, which
  /// does not check whether the other ranks are still alive.
  void keep_up(program::Lane lane);
  cudaEvent_t mark_event(std::int32_t number);
  /// kFetch and kStore of memory that the device cannot reach.
  bool copy_through_ring(const KernelArguments& a, program::Lane lane);
  void run_part(EpiloguePart part, const KernelArguments& a, program::Lane lane);
  /// Asks until the answer is another than "not yet".
  template <class Ask>
  void await_answer(const Ask& ask);

  int device_;  // the first member: the others are made on it
  DeviceOptions options_;
  DeviceWords words_;
  GemmEngine products_{options_, device_, *this};
  std::array<cudaStream_t, program::kLanes> streams_{};
  std::array<std::unique_ptr<Launcher>, program::kLanes> lanes_;
  std::array<std::optional<GraphCache<GraphRecorder>>, program::kLanes> graphs_;
  program::Lane entered_ = program::Lane::kCompute;
  Epilogues epilogues_;
  KernelArguments put_off_;  // a product that is done with its activation
  std::vector<cudaEvent_t> marks_, stamps_;
  std::size_t used_stamps_ = 0;
  std::array<RunAhead, program::kLanes> ahead_;
  cudaEvent_t start_ = nullptr;
  std::int64_t late_ns_ = 0;  // by which this rank starts after the shared start
  std::optional<KernelClock<Cupti>> kernel_clock_;
  std::array<Staging, 8> staging_;
  std::size_t next_staging_ = 0;
  std::array<std::unique_ptr<PinnedRing>, program::kLanes> rings_;  // by lane, where something was offloaded to disk
  WhileWaiting while_waiting_;
};

}  // namespace trivium::runtime::cuda
