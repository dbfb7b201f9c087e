// A GPU that is not there: memory, streams, events and graphs as CUDA's runtime promises them, worked through on the
// host. What CUDA leaves open (when work starts, which stream goes first) is decided against the caller.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace trivium::fake_gpu {

using Clock = std::chrono::steady_clock;

/// A piece of a stream's work. Asked when it is the stream's turn; true when it is done, false to be asked again, as
/// where it waits for another stream or another rank.
using Work = std::function<bool()>;

/// What one cudaEventRecord notes. Waits refer to the recording that was the event's latest when they were issued.
struct Recording {
  bool done = false;
  Clock::time_point at{};
};

/// When work is done: as soon as it is issued, or only when the host asks whether it is, or now and then.
enum class Pace { kEager, kLate, kShuffled };

/// All devices of the process. Every function is called with `mutex` held.
class Machine {
 public:
  static Machine& get();

  std::mutex mutex;

  int devices() const { return devices_; }
  /// Whether kernels and products compute, or are only checked.
  bool computes() const { return computes_; }
  int compute_capability() const { return compute_capability_; }  ///< ten times the major number, and the minor

  /// Adds work to the stream, or to the graph that it records. Where the stream's queue is full the caller waits
  /// inside, as in a driver: others get at the machine meanwhile, and nobody can wake it but the work that is under
  /// way.
  void issue(cudaStream_t stream, Work work);
  bool is_full(cudaStream_t stream) const;
  /// Does some of the work that is there, of any stream. False where nothing could be done.
  bool progress();
  /// Waits until `done`; lets others at the machine in between.
  void await(const std::function<bool()>& done);
  /// Loads a kernel to the thread's device where it is not there yet, and waits until nothing is under way there: CUDA
  /// may.
  void load(const void* kernel);
  /// The time that events note: the host's, plus what work was said to take.
  Clock::time_point now() const { return Clock::now() + taken_time_; }
  void takes(Clock::duration more) { taken_time_ += more; }
  /// Whether nothing is under way on the device.
  bool idle(int device) const;

  /// Device memory, unlike zero, with a rim that `free` and `check_rims` look at. Null where it is full.
  std::byte* allocate(int device, std::size_t bytes);
  bool free(void* memory);
  std::byte* allocate_pinned(std::size_t bytes);
  bool free_pinned(void* memory);
  std::size_t bytes_left(int device) const;
  std::size_t bytes_of_device() const { return bytes_of_device_; }

  /// Whether [memory, memory + bytes) lies within one allocation of a device, or of pinned memory.
  bool on_device(const void* memory, std::size_t bytes) const;
  bool pinned(const void* memory, std::size_t bytes) const;

  /// Says on stderr what the caller did that CUDA forbids or leaves undefined, and ends the process: it would have done
  /// so, or worse, on a device.
  [[noreturn]] void refuse(const std::string& what);

  std::set<cudaStream_t> streams;

 private:
  Machine();
  struct Block {
    std::size_t bytes = 0;
    int device = 0;
  };
  void check_rim(const std::byte* memory, const Block& block);
  void open_memory(bool open);
  bool attempt(cudaStream_t stream);

  int devices_ = 1;
  bool computes_ = true, guards_ = false;
  int compute_capability_ = 90;
  Pace pace_ = Pace::kShuffled;
  std::size_t queue_ = 1000;  ///< places of a stream's
  std::set<std::pair<int, const void*>> loaded_;
  Clock::duration taken_time_{};
  std::mt19937 dice_;
  std::set<cudaStream_t> ordered_;
  std::vector<cudaStream_t> order_;  ///< of the streams, which goes first where several may
  std::size_t bytes_of_device_ = std::size_t{2} << 30;
  std::byte* arena_ = nullptr;
  std::size_t used_ = 0;
  std::map<const std::byte*, Block> blocks_, pinned_;
  std::multimap<std::size_t, std::byte*> freed_;
  std::map<int, std::size_t> taken_;
};

/// The thread's device.
int& current_device();

}  // namespace trivium::fake_gpu

/// CUDA's streams, events and graphs.
struct CUstream_st {
  int device = 0;
  std::deque<trivium::fake_gpu::Work> work;
  bool records = false, broken = false;  ///< records a graph; had something that no graph can hold
  std::thread::id recorder;
  std::vector<trivium::fake_gpu::Work> recorded;
};

struct CUevent_st {
  int device = 0;
  bool has_time = true;
  std::shared_ptr<trivium::fake_gpu::Recording> latest;
};

struct CUgraph_st {
  std::vector<trivium::fake_gpu::Work> work;
};

struct CUgraphExec_st {
  std::vector<trivium::fake_gpu::Work> work;
};
