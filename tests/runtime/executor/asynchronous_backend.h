// Lanes that really run in parallel, on cores: what a GPU's streams may do to an order that is not enforced.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/cpu/backend.h"
#include "runtime/cuda/graph_cache.h"

namespace trivium::runtime::testing {

/// A thread a lane, which does what was issued to it, in that order, some of it late. Memory is the host's, but the
/// executor must not touch it.
class AsynchronousBackend : public Backend {
 public:
  AsynchronousBackend();
  ~AsynchronousBackend() override;

  std::string_view name() const override { return "asynchronous"; }
  std::string refusal(const program::Program&, const program::Op&) const override { return ""; }
  Memory allocate(std::int64_t bytes) override { return core_.allocate(bytes); }
  Memory allocate_on_host(std::int64_t bytes) override { return core_.allocate(bytes); }
  bool shares_host_memory() const override { return false; }
  void upload(program::Lane lane, std::byte* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const std::byte* from, std::int64_t bytes) override;
  void run(const KernelArguments& a, program::Lane lane) override;
  void replay(std::uint64_t number, program::Lane lane, const std::function<void()>& issue) override;
  void forget_replays() override { graphs_.forget(); }
  void enter(program::Lane lane) override { entered_ = lane; }
  void mark(std::int32_t number, program::Lane lane) override;
  void wait(std::int32_t number, program::Lane lane) override;
  void finish() override;
  void start_clock(std::int64_t) override {}
  std::int32_t stamp(program::Lane) override { return stamps_++; }
  std::int64_t since_start_ns(std::int32_t) override { return 0; }

  program::Lane entered() const { return entered_; }
  void issue(program::Lane lane, std::function<void()> work);
  int stamps() const { return stamps_; }
  std::int64_t uploaded() const { return uploaded_; }  ///< bytes
  int replayed() const { return replayed_; }           ///< pieces of work that were launched as recorded

 private:
  using Work = std::function<void()>;
  /// As a stream that records: kernels keep the operands and values that they were issued with, and nothing is done.
  struct Recorder {
    AsynchronousBackend* backend;
    using Recorded = std::vector<Work>;
    void begin() { backend->recording_ = true; }
    Recorded end() { return backend->recording_ = false, std::exchange(backend->tape_, {}); }
    void give_up() { end(); }
    void launch(const Recorded& tape) {
      for (const Work& each : tape) backend->issue(program::Lane::kCompute, each);
      ++backend->replayed_;
    }
    std::uint64_t generation() const { return 0; }
  };
  struct Queue {
    std::deque<std::function<void()>> work;
    bool busy = false;
  };
  void serve(std::size_t lane, std::stop_token stop);

  cpu::CpuBackend core_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::array<Queue, program::kLanes> queues_;
  std::int32_t stamps_ = 0;
  std::int64_t uploaded_ = 0;
  std::vector<std::int64_t> marked_, asked_;  // by number: how often it was reached, and issued
  program::Lane entered_ = program::Lane::kCompute;
  std::exception_ptr failure_;
  cuda::GraphCache<Recorder> graphs_{Recorder{this}};
  bool recording_ = false;
  std::vector<Work> tape_;
  int replayed_ = 0;
  std::vector<std::jthread> threads_;
};

/// Issues every call to the lane that the backend entered, where a communicator of that lane does it. Data of the host
/// (not within the backend's queues) is dealt with at once.
class AsynchronousCommunicator final : public Communicator {
 public:
  /// `lanes`: this rank's ends, one set of communicators a lane, and one more for the host's own data.
  AsynchronousCommunicator(AsynchronousBackend& backend, std::vector<std::unique_ptr<Communicator>> lanes)
      : backend_(backend), lanes_(std::move(lanes)) {}
  int rank() const override { return lanes_.front()->rank(); }
  int size() const override { return lanes_.front()->size(); }
  int make_group(std::span<const int> ranks) override;
  void barrier(int group) override { host().barrier(group); }
  void all_reduce(int group, void* data, std::int64_t count, program::DType type, program::Reduction how) override;
  void reduce_scatter(int group, const void* whole, void* part, std::int64_t count, program::DType type) override;
  void all_gather(int group, const void* part, void* whole, std::int64_t count, program::DType type) override;
  void broadcast(int group, void* data, std::int64_t bytes, int root) override {
    host().broadcast(group, data, bytes, root);
  }
  void post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) override;
  void post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) override;
  void wait_send(int, std::int64_t) override {}
  void wait_recv(int, std::int64_t) override {}
  void end_batch() override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void abort(const std::string& reason) override {
    for (auto& lane : lanes_) lane->abort(reason);
  }

 private:
  Communicator& host() { return *lanes_.back(); }
  template <class Call>
  void issue(Call call);

  AsynchronousBackend& backend_;
  std::vector<std::unique_ptr<Communicator>> lanes_;
  std::vector<std::function<void(Communicator&)>> posts_, waits_;  // of the batch
};

}  // namespace trivium::runtime::testing
