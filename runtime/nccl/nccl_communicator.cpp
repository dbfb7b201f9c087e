#include "runtime/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>

#include "base/say.h"
#include "runtime/cuda/backoff.h"
#include "runtime/cuda/check.h"

namespace trivium::runtime::nccl {
namespace {

using program::DType;
using program::Reduction;
using Clock = std::chrono::steady_clock;

constexpr int kMeetingSeconds = 120;   // for all ranks to come to the start
constexpr int kPatienceSeconds = 600;  // for a step's work, unless TRIVIUM_NCCL_TIMEOUT_S says otherwise

ncclDataType_t data_type(DType type) {
  switch (type) {
    case DType::kFp64:
      return ncclFloat64;
    case DType::kFp32:
      return ncclFloat32;
    case DType::kBf16:
      return ncclBfloat16;
    case DType::kFp16:
      return ncclFloat16;
    case DType::kInt32:
      return ncclInt32;
    case DType::kUint8:
      return ncclUint8;
  }
  return ncclUint8;
}

std::chrono::seconds patience() {
  const char* text = std::getenv("TRIVIUM_NCCL_TIMEOUT_S");
  const int seconds = text == nullptr ? 0 : std::atoi(text);
  return std::chrono::seconds(seconds > 0 ? seconds : kPatienceSeconds);
}

/// Waits until what was sent has arrived, then frees. False where that takes too long.
bool end(ncclComm_t communicator) {
  constexpr auto kLongest = std::chrono::seconds(30);
  ncclResult_t state = ncclCommFinalize(communicator);
  cuda::Backoff backoff;
  for (const Clock::time_point until = Clock::now() + kLongest; state == ncclInProgress && Clock::now() < until;) {
    backoff.pause();
    if (ncclCommGetAsyncError(communicator, &state) != ncclSuccess) return false;
  }
  return state == ncclSuccess && ncclCommDestroy(communicator) == ncclSuccess;
}

/// How far a communicator has come with what was last asked of it.
ncclResult_t state_of(ncclComm_t communicator) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
  return asked != ncclSuccess ? asked : state;
}

}  // namespace

NcclCommunicator::NcclCommunicator(cuda::CudaBackend& backend, const Launch& launch)
    : backend_(backend), launch_(launch), staging_(backend), gathered_(backend), patience_(patience()) {
  std::array<ncclUniqueId, 2> ids{};
  if (launch.rank == 0) {
    for (ncclUniqueId& id : ids) accept(ncclGetUniqueId(&id));
  }
  if (const auto error = share_bytes(launch, ids.data(), sizeof ids, kMeetingSeconds)) throw Aborted(error->message);
  world_ = join(ids[0], launch.size, launch.rank);
  meeting_ = join(ids[1], launch.size, launch.rank);
  transfers_.fill(meeting_);
  backend_.while_waiting([this](Clock::time_point since) { check_health(since); });
}

NcclCommunicator::~NcclCommunicator() {
  backend_.while_waiting({});
  const std::lock_guard lock(handles_mutex_);
  while (!aborted_ && batch_depth_ == 0 && !made_.empty() && end(made_.back())) made_.pop_back();
  end_all();  // whichever did not end well, and those that were not asked
}

// Together. One that is ended alone waits for the device, on which the kernels of the others wait for ranks that do not
// come until they are told to end as well (commReclaim, NCCL 2.28.9 src/init.cc). Before NCCL 2.22 a group does not
// gather ends (v2.21.5-1, src/init.cc): there each has a thread.
void NcclCommunicator::end_all() {
  if (std::exchange(ended_, true)) return;
  if (batch_depth_ > 0) static_cast<void>(ncclGroupEnd());  // a group that is open would hold the ends back
  batch_depth_ = 0;
  if (made_.empty()) return;
  constexpr int kGathersEnds = 22200;
  int version = 0;
  static_cast<void>(ncclGetVersion(&version));
  if (version >= kGathersEnds) {
    static_cast<void>(ncclGroupStart());
    for (const ncclComm_t each : made_) static_cast<void>(ncclCommAbort(each));
    static_cast<void>(ncclGroupEnd());
  } else {
    std::vector<std::jthread> threads;
    for (const ncclComm_t each : made_) threads.emplace_back([each] { static_cast<void>(ncclCommAbort(each)); });
  }
  made_.clear();
}

template <class Asked>
ncclResult_t NcclCommunicator::held(const Asked& call) {
  {
    const std::lock_guard lock(handles_mutex_);
    if (!ended_) return call();
  }
  throw_aborted();
}

ncclComm_t NcclCommunicator::join(const ncclUniqueId& id, int members, int index) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t made = nullptr;
  const ncclResult_t code = held([&] {
    const ncclResult_t begun = ncclCommInitRankConfig(&made, members, id, index, &config);
    if (made != nullptr) made_.push_back(made);  // it ends with the others, also where it never comes about
    return begun;
  });
  settle(made, code);
  return made;
}

// Members alone meet for a group: its first gives the others an id by a transfer.
void NcclCommunicator::share_id(ncclUniqueId& id, std::span<const int> ranks) {
  std::byte* room = device_room(staging_, sizeof id);
  const bool leads = ranks.front() == rank();
  if (leads) {
    accept(ncclGetUniqueId(&id));
    backend_.upload(room, &id, sizeof id);
  }
  begin_batch();
  for (const int other : ranks) {
    if (leads && other != rank()) send(other, room, sizeof id);
  }
  if (!leads) receive(ranks.front(), room, sizeof id);
  end_batch();
  backend_.await(stream());
  TRIVIUM_CHECK_CUDA(cudaMemcpy(&id, room, sizeof id, cudaMemcpyDefault));
}

void NcclCommunicator::send(int to, const void* data, std::size_t bytes) {
  accept(held([&] { return ncclSend(data, bytes, ncclUint8, to, transfers(), stream()); }));
}

void NcclCommunicator::receive(int from, void* data, std::size_t bytes) {
  accept(held([&] { return ncclRecv(data, bytes, ncclUint8, from, transfers(), stream()); }));
}

// Groups of the same ranks are one: their members ask for them in the same order, so all find it or none does.
int NcclCommunicator::make_group(std::span<const int> ranks) {
  const auto me = std::find(ranks.begin(), ranks.end(), rank());
  const bool ascends = std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  if (me == ranks.end() || !ascends || ranks.front() < 0 || ranks.back() >= size()) {
    throw Aborted(fmt::format("a group of ranks [{}] is not ascending within 0 … {} or lacks rank {}",
                              fmt::join(ranks, ", "), size() - 1, rank()));
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (std::equal(ranks.begin(), ranks.end(), groups_[i].ranks.begin(), groups_[i].ranks.end())) {
      return static_cast<int>(i);
    }
  }
  Group group;
  group.ranks.assign(ranks.begin(), ranks.end());
  if (static_cast<int>(ranks.size()) == size()) {
    group.communicator = world_;
  } else if (ranks.size() > 1) {
    ncclUniqueId id{};
    share_id(id, ranks);
    group.communicator = join(id, static_cast<int>(ranks.size()), static_cast<int>(me - ranks.begin()));
  }
  groups_.push_back(std::move(group));
  return static_cast<int>(groups_.size()) - 1;
}

void NcclCommunicator::barrier(int handle) {
  Group& group = group_of(handle);
  if (group.communicator == nullptr) return;
  record("barrier", handle, 0);
  std::byte* word = device_room(staging_, 4);
  ask(group, [&](ncclComm_t all) { return ncclAllReduce(word, word, 1, ncclInt32, ncclMax, all, stream()); });
  backend_.await(stream());
}

void NcclCommunicator::all_reduce(int handle, void* data, std::int64_t count, DType type, Reduction how) {
  Group& group = group_of(handle);
  if (group.communicator == nullptr || count == 0) return;
  record("all_reduce", handle, count);
  const Staged staged = stage(data, count * size_of(type) * (how == Reduction::kPairSum ? 2 : 1));
  if (how == Reduction::kPairSum) {
    sum_pairs(group, static_cast<double*>(staged.device), count);
  } else {
    ask(group, [&](ncclComm_t all) {
      return ncclAllReduce(staged.device, staged.device, static_cast<std::size_t>(count), data_type(type),
                           how == Reduction::kMax ? ncclMax : ncclSum, all, stream());
    });
  }
  bring_back(staged, data);
}

void NcclCommunicator::sum_pairs(Group& group, double* pairs, std::int64_t count) {
  const auto members = static_cast<int>(group.ranks.size());
  const std::int64_t bytes = 2 * count * static_cast<std::int64_t>(sizeof(double));
  auto* gathered = reinterpret_cast<double*>(device_room(gathered_, bytes * members));
  ask(group, [&](ncclComm_t all) {
    return ncclAllGather(pairs, gathered, static_cast<std::size_t>(2 * count), ncclFloat64, all, stream());
  });
  cuda::sum_pairs(backend_.entered(), gathered, pairs, count, members);
}

void NcclCommunicator::reduce_scatter(int handle, const void* whole, void* part, std::int64_t count, DType type) {
  Group& group = group_of(handle);
  if (group.communicator == nullptr) return copy(part, whole, count * size_of(type));
  record("reduce_scatter", handle, count);
  const auto each = static_cast<std::size_t>(count) / group.ranks.size();
  ask(group,
      [&](ncclComm_t all) { return ncclReduceScatter(whole, part, each, data_type(type), ncclSum, all, stream()); });
}

void NcclCommunicator::all_gather(int handle, const void* part, void* whole, std::int64_t count, DType type) {
  Group& group = group_of(handle);
  if (group.communicator == nullptr) return copy(whole, part, count * size_of(type));
  record("all_gather", handle, count);
  const auto each = static_cast<std::size_t>(count) / group.ranks.size();
  ask(group, [&](ncclComm_t all) { return ncclAllGather(part, whole, each, data_type(type), all, stream()); });
}

void NcclCommunicator::broadcast(int handle, void* data, std::int64_t bytes, int root) {
  Group& group = group_of(handle);
  if (group.communicator == nullptr || bytes == 0) return;
  record("broadcast", handle, bytes);
  const auto place = std::find(group.ranks.begin(), group.ranks.end(), root) - group.ranks.begin();
  const Staged staged = stage(data, bytes);
  ask(group, [&](ncclComm_t all) {
    return ncclBroadcast(staged.device, staged.device, static_cast<std::size_t>(bytes), ncclUint8,
                         static_cast<int>(place), all, stream());
  });
  bring_back(staged, data);
}

// The first lane's transfers are those by which groups meet.
void NcclCommunicator::expect_transfers(std::span<const LanePeers> lanes) {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  for (const auto& [lane, peers] : lanes) {
    const auto at = static_cast<std::size_t>(lane);
    const bool is_first = std::find(expected_.begin(), expected_.end(), true) == expected_.end();
    if (!std::exchange(expected_[at], true) && !is_first) {
      ncclUniqueId id{};
      share_id(id, all);
      transfers_[at] = join(id, size(), rank());
    }
    backend_.enter(lane);
    connect(peers);
  }
  backend_.enter(program::Lane::kCompute);
}

// NCCL connects two ranks when they first exchange something, and both hosts wait for each other then. Within a batch
// of several transfers that could be a ring of waiting hosts; here everyone comes to it at once.
void NcclCommunicator::connect(std::span<const int> peers) {
  if (peers.empty()) return;
  std::byte* room = device_room(staging_, static_cast<std::int64_t>(peers.size()) + 1);
  begin_batch();
  for (std::size_t i = 0; i < peers.size(); ++i) {
    send(peers[i], room, 1);
    receive(peers[i], room + 1 + i, 1);
  }
  end_batch();
  backend_.await(stream());
}

void NcclCommunicator::begin_batch() {
  if (aborted_) throw_aborted();
  accept(held([&] { return batch_depth_++ == 0 ? ncclGroupStart() : ncclSuccess; }));
}

void NcclCommunicator::end_batch() {
  settle(transfers(), held([&] { return --batch_depth_ == 0 ? ncclGroupEnd() : ncclSuccess; }));
}

void NcclCommunicator::post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) {
  if (!sends_.emplace(to, number).second) fail(fmt::format("transfer {} to rank {} is already posted", number, to));
  record("send", to, number);
  begin_batch();
  send(to, data, static_cast<std::size_t>(bytes));
  end_batch();
}

void NcclCommunicator::post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) {
  if (!receives_.emplace(from, number).second) {
    fail(fmt::format("transfer {} from rank {} is already posted", number, from));
  }
  record("receive", from, number);
  begin_batch();
  receive(from, data, static_cast<std::size_t>(bytes));
  end_batch();
}

// The lane that posted is in order, and others wait for its marks: what is left is that nothing is waited for twice.
void NcclCommunicator::wait_send(int to, std::int64_t number) {
  if (sends_.erase({to, number}) == 0) fail(fmt::format("transfer {} to rank {} was never posted", number, to));
}

void NcclCommunicator::wait_recv(int from, std::int64_t number) {
  if (receives_.erase({from, number}) == 0)
    fail(fmt::format("transfer {} from rank {} was never posted", number, from));
}

void NcclCommunicator::copy(void* to, const void* from, std::int64_t bytes) {
  if (to != from) backend_.entered().copy(to, from, bytes);
}

// Whoever waits sees the flag, where it still looks at flags: what it waits for ends here.
void NcclCommunicator::abort(const std::string& reason) {
  {
    const std::lock_guard lock(reason_mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  aborted_ = true;
  const std::lock_guard lock(handles_mutex_);
  const bool owns = std::this_thread::get_id() == owner_;
  if (owns || batch_depth_ == 0) end_all();  // else the batch, which is its thread's, is closed there and all ended
}

NcclCommunicator::Group& NcclCommunicator::group_of(int handle) {
  if (aborted_) throw_aborted();
  if (handle < 0 || handle >= static_cast<int>(groups_.size())) fail(fmt::format("there is no group {}", handle));
  return groups_[static_cast<std::size_t>(handle)];
}

std::byte* NcclCommunicator::device_room(cuda::Scratch& room, std::int64_t bytes) {
  constexpr std::int64_t kAtLeast = std::int64_t{1} << 16;  // growing waits for the device
  return room.at_least(std::max(bytes, kAtLeast));
}

NcclCommunicator::Staged NcclCommunicator::stage(const void* data, std::int64_t bytes) {
  if (cuda::is_on_device(data)) return {const_cast<void*>(data), bytes, false};
  std::byte* room = device_room(staging_, bytes);
  backend_.upload(room, data, bytes);
  return {room, bytes, true};
}

void NcclCommunicator::bring_back(const Staged& staged, void* host) {
  if (!staged.is_copy) return;
  backend_.await(stream());
  TRIVIUM_CHECK_CUDA(cudaMemcpy(host, staged.device, static_cast<std::size_t>(staged.bytes), cudaMemcpyDefault));
}

void NcclCommunicator::record(const char* what, int group, std::int64_t count) {
  constexpr int kLaunches = 4;  // a kernel, and what orders it after those of other streams
  calls_[next_call_++ % calls_.size()] = {what, group, count};
  backend_.entered().count(kLaunches);
}

template <class Asked>
void NcclCommunicator::ask(const Group& group, const Asked& call) {
  settle(group.communicator, held([&] { return call(group.communicator); }));
}

void NcclCommunicator::accept(ncclResult_t code) {
  if (code != ncclSuccess && code != ncclInProgress) {
    fail(fmt::format("NCCL: {}: {}", ncclGetErrorString(code), ncclGetLastError(nullptr)));
  }
}

void NcclCommunicator::settle(ncclComm_t communicator, ncclResult_t code) {
  const Clock::time_point until = Clock::now() + patience_;
  cuda::Backoff backoff;
  while (code == ncclInProgress) {
    if (aborted_) throw_aborted();
    if (Clock::now() > until) fail("NCCL has not taken up a call; another rank has not come to it");
    backoff.pause();
    code = held([&] { return state_of(communicator); });
  }
  accept(code);
}

void NcclCommunicator::check_health(Clock::time_point since) {
  constexpr auto kBetween = std::chrono::milliseconds(10);
  if (aborted_) throw_aborted();
  const Clock::time_point now = Clock::now();
  if (now - last_asked_ < kBetween) return;
  last_asked_ = now;
  accept(held([&] {
    for (const ncclComm_t each : made_) {
      if (const ncclResult_t state = state_of(each); state != ncclSuccess && state != ncclInProgress) return state;
    }
    return ncclSuccess;
  }));
  if (now - since > patience_) {
    fail(fmt::format("nothing has come for {} s; TRIVIUM_NCCL_TIMEOUT_S sets how long to wait", patience_.count()));
  }
}

void NcclCommunicator::throw_aborted() {
  {
    const std::lock_guard lock(handles_mutex_);
    end_all();
  }
  const std::lock_guard lock(reason_mutex_);
  throw Aborted(reason_);
}

void NcclCommunicator::fail(const std::string& why) {
  const std::size_t count = std::min(next_call_, calls_.size());
  base::say("rank {}: the last {} calls of communication (call, group or peer, elements or number):\n", rank(), count);
  for (std::size_t i = next_call_ - count; i < next_call_; ++i) {
    const Call& call = calls_[i % calls_.size()];
    base::say("rank {}:   {} {} {}\n", rank(), call.what, call.group, call.count);
  }
  abort(why);
  throw Aborted(why);
}

}  // namespace trivium::runtime::nccl
