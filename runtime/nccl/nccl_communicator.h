// The communicator of one rank on a GPU.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/cuda/backend.h"
#include "runtime/nccl/launch.h"

namespace trivium::runtime::nccl {

/// Work goes to the stream of the lane that the backend entered, and is done in that stream's order; data in memory of
/// the host is staged and the call then waits. Sums are NCCL's: the same every time on the same topology, not in rank
/// order; those of pairs are in rank order. NCCL's communicators do not block; whoever waits for the device asks them
/// for errors, and gives up with Aborted when one has failed or nothing has come for a while. `abort` of another thread
/// ends what the device has under way, so that the owner's thread returns from whatever waits for the device.
class NcclCommunicator final : public Communicator {
 public:
  /// Throws Aborted.
  NcclCommunicator(cuda::CudaBackend& backend, const Launch& launch);
  ~NcclCommunicator() override;

  int rank() const override { return launch_.rank; }
  int size() const override { return launch_.size; }
  int make_group(std::span<const int> ranks) override;

  void barrier(int group) override;
  void all_reduce(int group, void* data, std::int64_t count, program::DType type, program::Reduction how) override;
  void reduce_scatter(int group, const void* whole, void* part, std::int64_t count, program::DType type) override;
  void all_gather(int group, const void* part, void* whole, std::int64_t count, program::DType type) override;
  void broadcast(int group, void* data, std::int64_t bytes, int root) override;

  void expect_transfers(std::span<const LanePeers> lanes) override;
  void post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) override;
  void post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) override;
  void wait_send(int to, std::int64_t number) override;
  void wait_recv(int from, std::int64_t number) override;
  void begin_batch() override;
  void end_batch() override;
  void copy(void* to, const void* from, std::int64_t bytes) override;

  void abort(const std::string& reason) override;

 private:
  struct Group {
    ncclComm_t communicator = nullptr;  ///< null for a group of one
    std::vector<int> ranks;
  };
  /// A buffer of a call in device memory: the caller's own, or a copy of memory of the host.
  struct Staged {
    void* device = nullptr;
    std::int64_t bytes = 0;
    bool is_copy = false;
  };

  /// A call, for the record that a failure prints.
  struct Call {
    const char* what = "";
    int group = -1;
    std::int64_t count = 0;
  };

  Group& group_of(int handle);
  ncclComm_t join(const ncclUniqueId& id, int members, int index);
  void share_id(ncclUniqueId& id, std::span<const int> ranks);
  void connect(std::span<const int> peers);
  /// Transfers of the lane that the backend entered. NCCL does what one communicator is asked for one after the other,
  /// on whichever streams: a receive that was posted early would hold up another lane's send.
  ncclComm_t transfers() const { return transfers_[static_cast<std::size_t>(backend_.entered_lane())]; }
  void send(int to, const void* data, std::size_t bytes);
  void receive(int from, void* data, std::size_t bytes);
  /// Calls NCCL while no other thread can end the communicators; throws Aborted where one has.
  template <class Asked>
  ncclResult_t held(const Asked& call);
  /// A collective of the group, until it is taken up.
  template <class Asked>
  void ask(const Group& group, const Asked& call);
  /// Fails unless the code is success or says that it is under way.
  void accept(ncclResult_t code);
  std::byte* device_room(cuda::Scratch& room, std::int64_t bytes);
  Staged stage(const void* data, std::int64_t bytes);
  void bring_back(const Staged& staged, void* host);
  void sum_pairs(Group& group, double* pairs, std::int64_t count);
  void record(const char* what, int group, std::int64_t count);
  /// Checks a call's own code, and waits until the communicator has taken up what was asked of it.
  void settle(ncclComm_t communicator, ncclResult_t code);
  /// What whoever waits for the device asks over and over; `since`: when the wait began.
  void check_health(std::chrono::steady_clock::time_point since);
  /// Ends the communicators with what they have under way, so that the device does not wait for it for ever. With
  /// `handles_mutex_` held.
  void end_all();
  [[noreturn]] void throw_aborted();
  [[noreturn]] void fail(const std::string& why);
  cudaStream_t stream() { return backend_.entered().stream(); }

  cuda::CudaBackend& backend_;
  Launch launch_;
  std::mutex handles_mutex_;                        // guards the three that follow, and every call that takes a handle
  std::vector<ncclComm_t> made_;                    // each once, also those that are not ready yet
  bool ended_ = false;                              // none of the handles is to be used any more
  int batch_depth_ = 0;                             // of the owner's thread
  ncclComm_t world_ = nullptr, meeting_ = nullptr;  // of all ranks; transfers of lanes that nobody named
  std::array<ncclComm_t, program::kLanes> transfers_{};  // by lane
  std::array<bool, program::kLanes> expected_{};         // whose communicators are there
  std::vector<Group> groups_;
  cuda::Scratch staging_, gathered_;
  std::set<std::pair<int, std::int64_t>> sends_, receives_;  // posted and not waited for
  std::array<Call, 64> calls_;                               // the latest, as a ring
  std::size_t next_call_ = 0;
  std::atomic<bool> aborted_{false};
  std::mutex reason_mutex_;
  std::string reason_;
  std::chrono::seconds patience_;
  std::chrono::steady_clock::time_point last_asked_;
  std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace trivium::runtime::nccl
