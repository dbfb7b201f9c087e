#include "tests/runtime/executor/asynchronous_backend.h"

#include <cstring>

namespace trivium::runtime::testing {

using program::Lane;

AsynchronousBackend::AsynchronousBackend() {
  for (std::size_t lane = 0; lane < queues_.size(); ++lane) {
    threads_.emplace_back([this, lane](std::stop_token stop) { serve(lane, stop); });
  }
}

AsynchronousBackend::~AsynchronousBackend() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

// Every few pieces of work the lane falls asleep, another lane at another place, so that lanes drift apart.
void AsynchronousBackend::serve(std::size_t lane, std::stop_token stop) {
  std::uint64_t count = 7 * lane;
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      Queue& queue = queues_[lane];
      queue.busy = false;
      changed_.notify_all();
      if (!changed_.wait(lock, stop, [&] { return !queue.work.empty(); })) return;
      work = std::move(queue.work.front());
      queue.work.pop_front();
      queue.busy = true;
    }
    if (++count % 17 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
}

void AsynchronousBackend::issue(Lane lane, std::function<void()> work) {
  if (recording_) throw std::logic_error("something else than a kernel is recorded");
  const std::lock_guard lock(mutex_);
  queues_[static_cast<std::size_t>(lane)].work.push_back(std::move(work));
  changed_.notify_all();
}

void AsynchronousBackend::upload(Lane lane, std::byte* to, const void* from, std::int64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  uploaded_ += bytes;
  issue(lane, [to, copy = std::vector<std::byte>(begin, begin + bytes)] {
    if (!copy.empty()) std::memcpy(to, copy.data(), copy.size());
  });
}

void AsynchronousBackend::download(void* to, const std::byte* from, std::int64_t bytes) {
  finish();
  core_.download(to, from, bytes);
}

// The executor's values change while the work waits: a kernel launch copies them.
void AsynchronousBackend::run(const KernelArguments& a, Lane lane) {
  Work work = [this, copy = a, lane, values = *a.values]() mutable {
    copy.values = &values;
    core_.run(copy, lane);
  };
  if (!recording_) return issue(lane, std::move(work));
  if (lane != Lane::kCompute) throw std::logic_error("a kernel of another lane is recorded");
  tape_.push_back(std::move(work));
}

void AsynchronousBackend::replay(std::uint64_t number, Lane lane, const std::function<void()>& work) {
  if (lane != Lane::kCompute) throw std::logic_error("only the compute lane is recorded");
  graphs_.run(number, work);
  if (!graphs_.failure().empty()) throw std::logic_error(graphs_.failure());
}

void AsynchronousBackend::mark(std::int32_t number, Lane lane) {
  const auto at = static_cast<std::size_t>(number);
  {
    const std::lock_guard lock(mutex_);
    if (marked_.size() <= at) marked_.resize(at + 1, 0), asked_.resize(at + 1, 0);
    ++asked_[at];
  }
  issue(lane, [this, at] {
    const std::lock_guard lock(mutex_);
    ++marked_[at];
    changed_.notify_all();
  });
}

void AsynchronousBackend::wait(std::int32_t number, Lane lane) {
  const auto at = static_cast<std::size_t>(number);
  std::int64_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    if (asked_.size() <= at || asked_[at] == 0) throw std::logic_error("waits for a mark that nobody left");
    wanted = asked_[at];
  }
  issue(lane, [this, at, wanted] {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return marked_[at] >= wanted || failure_; });
  });
}

void AsynchronousBackend::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    for (const Queue& queue : queues_) {
      if (queue.busy || !queue.work.empty()) return false;
    }
    return true;
  });
  if (failure_) std::rethrow_exception(failure_);
}

int AsynchronousCommunicator::make_group(std::span<const int> ranks) {
  int group = -1;
  for (auto& lane : lanes_) group = lane->make_group(ranks);
  return group;
}

template <class Call>
void AsynchronousCommunicator::issue(Call call) {
  const Lane lane = backend_.entered();
  backend_.issue(lane, [this, lane, call] { call(*lanes_[static_cast<std::size_t>(lane)]); });
}

// The one sum of host data is the loss, after the end of the lanes; all others are of arrays or of pairs.
void AsynchronousCommunicator::all_reduce(int group, void* data, std::int64_t count, program::DType type,
                                          program::Reduction how) {
  issue([=](Communicator& lane) { lane.all_reduce(group, data, count, type, how); });
  if (count == 1 && how == program::Reduction::kSum) backend_.finish();
}

void AsynchronousCommunicator::reduce_scatter(int group, const void* whole, void* part, std::int64_t count,
                                              program::DType type) {
  issue([=](Communicator& lane) { lane.reduce_scatter(group, whole, part, count, type); });
}

void AsynchronousCommunicator::all_gather(int group, const void* part, void* whole, std::int64_t count,
                                          program::DType type) {
  issue([=](Communicator& lane) { lane.all_gather(group, part, whole, count, type); });
}

void AsynchronousCommunicator::post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) {
  posts_.emplace_back([=](Communicator& lane) { lane.post_send(to, number, data, bytes); });
  waits_.emplace_back([=](Communicator& lane) { lane.wait_send(to, number); });
}

void AsynchronousCommunicator::post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) {
  posts_.emplace_back([=](Communicator& lane) { lane.post_recv(from, number, data, bytes); });
  waits_.emplace_back([=](Communicator& lane) { lane.wait_recv(from, number); });
}

// As NCCL: the lane goes on when all transfers of the batch are done.
void AsynchronousCommunicator::end_batch() {
  issue([posts = std::move(posts_), waits = std::move(waits_)](Communicator& lane) {
    for (const auto& post : posts) post(lane);
    for (const auto& wait : waits) wait(lane);
  });
  posts_.clear();
  waits_.clear();
}

void AsynchronousCommunicator::copy(void* to, const void* from, std::int64_t bytes) {
  issue([=](Communicator&) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
}

}  // namespace trivium::runtime::testing
