// What the executor asks of the machine that runs the kernels: memory, kernels, lanes and their order, a clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/kernel.h"

namespace trivium::runtime {

/// Nanoseconds from a shared start.
struct Interval {
  std::int64_t start_ns = 0, end_ns = 0;
};

/// Memory of a backend, given back to it.
using Memory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

/// One rank's device, used by that rank's thread only. On cores work is done when a call returns. On a GPU a call
/// issues work to a lane, which is an in-order queue: work of one lane is ordered, lanes wait for each other's marks.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  ///< "CPU", "CUDA"
  /// Why it has no kernel for an op of the program (not a communication), or empty.
  virtual std::string refusal(const program::Program& program, const program::Op& op) const = 0;
  /// What of the program it runs by kernels that are far slower than they might be, for the user to know; or empty.
  virtual std::string slow_path(const program::Program&) const { return ""; }

  /// Zeroed and aligned to 64 bytes at least. Throws std::bad_alloc.
  virtual Memory allocate(std::int64_t bytes) = 0;
  /// Likewise in memory of the host, from where the device copies fast.
  virtual Memory allocate_on_host(std::int64_t bytes) = 0;
  /// Bytes that it holds for itself in addition to what was allocated: workspaces of kernels. They only grow.
  virtual std::int64_t own_bytes() const { return 0; }
  /// Whether the host reads and writes the memory of `allocate` itself.
  virtual bool shares_host_memory() const = 0;
  /// Copies from host memory in the order of the lane; `from` may be reused at once. Either end of a copy may also be
  /// memory of allocate_on_host.
  virtual void upload(program::Lane lane, std::byte* to, const void* from, std::int64_t bytes) = 0;
  /// Copies to host memory, after everything issued so far.
  virtual void download(void* to, const std::byte* from, std::int64_t bytes) = 0;

  /// The program whose ops are run from here on; it outlives that.
  virtual void prepare(const program::Program&) {}
  /// Runs, or issues, the kernel of `a.op`, whose operands lie in memory of this backend.
  virtual void run(const KernelArguments& a, program::Lane lane) = 0;
  /// Calls `issue`, which runs kernels on the lane and does nothing else with the backend, and may do so less often
  /// than it is called: `number` stands for the same kernels on the same operands and values until forget_replays().
  virtual void replay(std::uint64_t /*number*/, program::Lane /*lane*/, const std::function<void()>& issue) { issue(); }
  /// From here on numbers stand for other work.
  virtual void forget_replays() {}

  /// Communication that is called for from here on belongs to the lane: with lanes, "blocks" in communicator.h means
  /// that the lane does.
  virtual void enter(program::Lane lane) = 0;
  /// Notes how far a lane has come; numbers count from 0 and may be used again once all waited.
  virtual void mark(std::int32_t number, program::Lane lane) = 0;
  /// Work issued to the lane from here on waits for the mark.
  virtual void wait(std::int32_t number, program::Lane lane) = 0;
  /// Returns when all lanes are done. Throws Aborted when they never will be.
  virtual void finish() = 0;

  /// Begins a step's clock, which all ranks of a machine share: `shared_ns` is rank 0's now_ns().
  virtual void start_clock(std::int64_t shared_ns) = 0;
  /// Notes the time at which the lane gets here. The number is good until the next start_clock.
  virtual std::int32_t stamp(program::Lane lane) = 0;
  /// Nanoseconds from the shared start to a stamp, once the lanes have finished.
  virtual std::int64_t since_start_ns(std::int32_t stamp) = 0;
  /// When the work that was issued between two stamps ran, once the lanes have finished: from stamp to stamp, unless
  /// the backend has seen the work itself.
  virtual Interval interval_ns(std::int32_t from, std::int32_t to) {
    return {since_start_ns(from), since_start_ns(to)};
  }
};

/// The machine's monotonic clock.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace trivium::runtime
