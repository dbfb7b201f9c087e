// NCCL over the fake GPU, between threads or processes of one machine: what ranks tell each other are files of a folder
// whose name is the communicator's id. Strict where NCCL leaves itself room: nothing is buffered, the first calls of a
// communicator and the first transfers between two ranks wait for the other hosts, launches of one communicator run one
// after the other whatever their streams, and who ends a communicator waits for all that is under way on its device.
// FAKE_NCCL_FAILS: the how manieth communicator of a process comes to nothing. FAKE_NCCL_VERSION: of another release.
#include <fcntl.h>
#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/cuda/kernels/numbers.h"
#include "tests/runtime/fake_gpu/machine.h"
#include "tests/runtime/fake_gpu/nccl_messages.h"

namespace fs = std::filesystem;
using trivium::fake_gpu::get;
using trivium::fake_gpu::Header;
using trivium::fake_gpu::is_there;
using trivium::fake_gpu::Machine;
using trivium::fake_gpu::Message;
using trivium::fake_gpu::put;

namespace {

[[noreturn]] void refuse(const std::string& what) { Machine::get().refuse("NCCL: " + what); }

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclFloat64:
      return 8;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      refuse("a type it does not know");
  }
}

struct Call {
  Header header;
  bool is_transfer = false, sends = false;
  int peer = 0;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t read = 0, written = 0;  // bytes
  cudaStream_t stream = nullptr;
};

template <class T>
void add(std::byte* to, const std::byte* from, std::size_t at, bool largest) {
  T a, b;
  std::memcpy(&a, to + at * sizeof(T), sizeof a);
  std::memcpy(&b, from + at * sizeof(T), sizeof b);
  if constexpr (std::is_arithmetic_v<T>) {
    a = largest ? std::max(a, b) : static_cast<T>(a + b);
  } else {
    using trivium::runtime::cuda::widen;
    const float x = widen(a), y = widen(b);
    a = trivium::runtime::cuda::narrow<T>(largest ? std::max(x, y) : x + y);
  }
  std::memcpy(to + at * sizeof(T), &a, sizeof a);
}

void add(std::byte* to, const std::byte* from, std::size_t at, std::int32_t type, bool largest) {
  switch (type) {
    case ncclFloat64:
      return add<double>(to, from, at, largest);
    case ncclFloat32:
      return add<float>(to, from, at, largest);
    case ncclInt32:
      return add<std::int32_t>(to, from, at, largest);
    case ncclBfloat16:
      return add<trivium::runtime::cuda::Bf16>(to, from, at, largest);
    case ncclFloat16:
      return add<trivium::runtime::cuda::Fp16>(to, from, at, largest);
    default:
      refuse("a sum in a type it does not know");
  }
}

}  // namespace

/// For tests: how many communicators this process has made, and has not ended.
static int communicators_made = 0, communicators_alive = 0;

struct ncclComm : std::enable_shared_from_this<ncclComm> {
  fs::path folder;
  int device = 0;
  int ranks = 0, rank = 0;
  ncclResult_t state = ncclInProgress;
  std::function<bool()> pending;  ///< what has to come true before the state is success
  int delay = 0;                  ///< how often that is not asked though it might be
  std::uint64_t launched = 0, finished = 0, collectives = 0;
  std::map<int, std::uint64_t> sent, received;
  std::set<std::string> connected;
  bool has_met = false, finalized = false, aborted = false, fails = false;
  std::shared_ptr<ncclComm> self;

  fs::path file(const std::string& name) const { return folder / name; }
  void tell(const std::string& name) const { put(file(name), "", 0, "", 0); }

  void begin(std::function<bool()> until) {
    static std::mt19937 dice;
    constexpr unsigned kMostAsked = 4;
    state = ncclInProgress;
    pending = std::move(until);
    delay = static_cast<int>(dice() % kMostAsked);
  }

  ncclResult_t ask() {
    if (aborted) refuse("a communicator that was aborted");
    Machine::get().progress();  // of the device, which does not wait for its host
    if (pending && --delay < 0 && pending()) {
      pending = nullptr;
      state = fails ? ncclSystemError : ncclSuccess;
    }
    return state;
  }

  void leave() {
    aborted = true;
    --communicators_alive;
    if (is_there(folder)) {
      tell(fmt::format("left-{}", rank));
      int left = 0;
      while (left < ranks && is_there(file(fmt::format("left-{}", left)))) ++left;
      std::error_code ignored;
      if (left == ranks) fs::remove_all(folder, ignored);
    }
    self.reset();
  }
};

namespace {

using Comm = std::shared_ptr<ncclComm>;

std::string collective_name(std::uint64_t number, int rank) { return fmt::format("collective-{}-{}", number, rank); }
std::string transfer_name(int from, int to, std::uint64_t number) {
  return fmt::format("transfer-{}-{}-{}", from, to, number);
}

/// All members' data are there: what this rank receives.
void finish_collective(const ncclComm& comm, const Call& call, const std::vector<Message>& all) {
  const std::string_view name = call.header.name;
  const std::size_t count = call.header.count, element = size_of(static_cast<ncclDataType_t>(call.header.type));
  auto* to = static_cast<std::byte*>(call.to);
  if (name == "broadcast") {
    std::memcpy(to, all[static_cast<std::size_t>(call.header.root)].data.data(), call.written);
    return;
  }
  if (name == "all-gather") {
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(to + i * count * element, all[i].data.data(), count * element);
    return;
  }
  // As around a ring: each part's sum begins at another rank and is rounded at every hop.
  const std::size_t parts = all.size(), whole = call.read / element;
  std::vector<std::byte> sums(call.read);
  for (std::size_t i = 0; i < whole; ++i) {
    const std::size_t first = i * parts / whole;
    for (std::size_t hop = 0; hop < parts; ++hop) {
      const std::byte* from = all[(first + hop) % parts].data.data();
      if (hop == 0) {
        std::memcpy(sums.data() + i * element, from + i * element, element);
      } else {
        add(sums.data(), from, i, call.header.type, call.header.how == ncclMax);
      }
    }
  }
  const std::size_t skipped = name == "reduce-scatter" ? static_cast<std::size_t>(comm.rank) * call.written : 0;
  std::memcpy(to, sums.data() + skipped, call.written);
}

/// A collective as its stream comes to it.
trivium::fake_gpu::Work collective(const Comm& comm, const Call& call, std::uint64_t launch) {
  struct Progress {
    bool told = false;
    std::vector<std::optional<Message>> heard;
  };
  const std::uint64_t number = comm->collectives++;
  const auto progress = std::make_shared<Progress>();
  progress->heard.resize(static_cast<std::size_t>(comm->ranks));
  return [=] {
    if (comm->aborted) return true;
    if (comm->finished != launch) return false;
    if (!std::exchange(progress->told, true))
      put(comm->file(collective_name(number, comm->rank)), &call.header, sizeof call.header, call.from, call.read);
    for (int member = 0; member < comm->ranks; ++member) {
      auto& heard = progress->heard[static_cast<std::size_t>(member)];
      if (!heard) heard = get(comm->file(collective_name(number, member)));
      if (!heard) return false;
      if (!(heard->header == call.header))
        refuse(fmt::format("ranks {} and {} come to {} of {} and {} of {} at the same place", comm->rank, member,
                           call.header.name, call.header.count, heard->header.name, heard->header.count));
    }
    std::vector<Message> all;
    for (auto& heard : progress->heard) all.push_back(std::move(*heard));
    finish_collective(*comm, call, all);
    // All have come here: what was told before this has been heard.
    if (number > 0) fs::remove(comm->file(collective_name(number - 1, comm->rank)));
    ++comm->finished;
    return true;
  };
}

/// Transfers of one group: all under way at once. A send is over when its data was taken.
trivium::fake_gpu::Work transfers(const Comm& comm, const std::vector<Call>& calls, std::uint64_t launch) {
  struct Transfer {
    Call call;
    fs::path file;
    bool told = false, done = false;
  };
  const auto all = std::make_shared<std::vector<Transfer>>();
  for (const Call& call : calls) {
    const std::uint64_t number = (call.sends ? comm->sent : comm->received)[call.peer]++;
    const int from = call.sends ? comm->rank : call.peer, to = call.sends ? call.peer : comm->rank;
    all->push_back({call, comm->file(transfer_name(from, to, number))});
  }
  return [=] {
    if (comm->aborted) return true;
    if (comm->finished != launch) return false;
    bool done = true;
    for (Transfer& each : *all) {
      if (each.done) continue;
      if (each.call.sends) {
        if (!std::exchange(each.told, true))
          put(each.file, &each.call.header, sizeof each.call.header, each.call.from, each.call.read);
        each.done = !is_there(each.file);
      } else if (const auto message = get(each.file)) {
        if (message->data.size() != each.call.written)
          refuse(fmt::format("rank {} sends {} bytes to rank {}, who takes {}", each.call.peer, message->data.size(),
                             comm->rank, each.call.written));
        std::memcpy(each.call.to, message->data.data(), each.call.written);
        fs::remove(each.file);
        each.done = true;
      }
      done = done && each.done;
    }
    if (done) ++comm->finished;
    return done;
  };
}

/// Whom the hosts wait for before the calls are under way.
std::vector<std::string> meetings(ncclComm& comm, const std::vector<Call>& calls) {
  std::vector<std::string> others;
  for (const Call& call : calls) {
    if (!call.is_transfer) {
      if (std::exchange(comm.has_met, true)) continue;
      comm.tell(fmt::format("first-{}", comm.rank));
      for (int member = 0; member < comm.ranks; ++member) others.push_back(fmt::format("first-{}", member));
      continue;
    }
    const int from = call.sends ? comm.rank : call.peer, to = call.sends ? call.peer : comm.rank;
    const std::string name = fmt::format("connect-{}-{}-", from, to);
    if (!comm.connected.insert(name).second) continue;
    comm.tell(name + (call.sends ? "from" : "to"));
    others.push_back(name + (call.sends ? "to" : "from"));
  }
  return others;
}

/// A group's calls of one communicator: taken up once the hosts have met, and then in the stream.
void launch(const Comm& comm, const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    if (call.stream != calls.front().stream) refuse("calls of one group in several streams");
  }
  const std::vector<std::string> others = meetings(*comm, calls);
  comm->begin([=] {
    for (const std::string& other : others) {
      if (!is_there(comm->file(other))) return false;
    }
    if (Machine::get().is_full(calls.front().stream)) return false;  // NCCL's own thread waits for room, not the caller
    std::vector<Call> exchanged;
    for (const Call& call : calls) {
      if (call.is_transfer) {
        exchanged.push_back(call);
      } else {
        Machine::get().issue(call.stream, collective(comm, call, comm->launched++));
      }
    }
    if (!exchanged.empty())
      Machine::get().issue(exchanged.front().stream, transfers(comm, exchanged, comm->launched++));
    return true;
  });
}

thread_local int group_depth = 0;
thread_local std::map<ncclComm_t, std::vector<Call>> grouped;
thread_local std::vector<Comm> ending;  // told to end in the group that is open

/// NCCL 2.28.9 src/init.cc: commReclaim waits for the communicator's streams and gives device memory back, for which
/// cudaFree waits for all that is under way. What was told to end comes to its end.
void reclaim(const std::vector<Comm>& all) {
  for (const Comm& each : all) Machine::get().await([&] { return Machine::get().idle(each->device); });
  for (const Comm& each : all) each->leave();
}

ncclResult_t call(ncclComm_t comm, Call made) {
  Machine& machine = Machine::get();
  const std::lock_guard lock(machine.mutex);
  if (comm == nullptr) return ncclInvalidArgument;
  if (comm->aborted || comm->finalized) refuse("a call of a communicator that has ended");
  if (comm->state != ncclSuccess) refuse("a call of a communicator that has not taken up the one before");
  if (made.stream->records) refuse("a call within a graph");
  if (made.read > 0 && !machine.on_device(made.from, made.read)) refuse("data that are not within device memory");
  if (made.written > 0 && !machine.on_device(made.to, made.written)) refuse("room that is not within device memory");
  if (reinterpret_cast<std::uintptr_t>(made.read > 0 ? made.from : made.to) %
      size_of(static_cast<ncclDataType_t>(made.header.type)))
    refuse("data that are not aligned to their type");
  if (group_depth > 0) {
    grouped[comm].push_back(made);
    return ncclSuccess;
  }
  launch(comm->self, {made});
  return ncclInProgress;
}

Call collective_call(const char* name, const void* from, void* to, std::size_t count, ncclDataType_t type, int how,
                     int root, std::size_t read, std::size_t written, cudaStream_t stream) {
  Call made;
  std::strncpy(made.header.name, name, sizeof made.header.name - 1);
  made.header.count = count, made.header.type = type, made.header.how = how, made.header.root = root;
  made.from = from, made.to = to, made.read = read * size_of(type), made.written = written * size_of(type);
  made.stream = stream;
  return made;
}

/// In place is where a rank's part lies in the whole; any other overlap is undefined.
void check_overlap(const void* part, std::size_t part_bytes, const void* whole, int members, int rank) {
  const auto* p = static_cast<const std::byte*>(part);
  const auto* w = static_cast<const std::byte*>(whole);
  const std::size_t bytes = part_bytes * static_cast<std::size_t>(members);
  if (p + part_bytes <= w || w + bytes <= p) return;
  if (p != w + static_cast<std::size_t>(rank) * part_bytes) refuse("a part that lies across the whole");
}

Call transfer_call(bool sends, const void* from, void* to, std::size_t count, ncclDataType_t type, int peer,
                   cudaStream_t stream) {
  Call made = collective_call("transfer", from, to, count, type, 0, 0, sends ? count : 0, sends ? 0 : count, stream);
  made.is_transfer = true, made.sends = sends, made.peer = peer;
  return made;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* const wish = std::getenv("FAKE_NCCL_VERSION");
  return *version = wish == nullptr ? NCCL_VERSION_CODE : std::atoi(wish), ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error of the fake NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next{0};
  *id = {};
  const fs::path folder =
      fs::temp_directory_path() /
      fmt::format("fake-nccl-{}-{}-{}", ::getpid(), next++, trivium::fake_gpu::Clock::now().time_since_epoch().count());
  if (folder.string().size() >= sizeof id->internal) refuse("a temporary folder with a long name");
  fs::create_directory(folder);
  std::strncpy(id->internal, folder.c_str(), sizeof id->internal - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::lock_guard lock(Machine::get().mutex);
  if (config->blocking != 0) refuse("a communicator that blocks");
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const auto comm = std::make_shared<ncclComm>();
  comm->self = comm;
  comm->folder = id.internal, comm->ranks = ranks, comm->rank = rank;
  comm->device = trivium::fake_gpu::current_device();
  const char* const fails = std::getenv("FAKE_NCCL_FAILS");
  comm->fails = ++communicators_made == (fails == nullptr ? 0 : std::atoi(fails));
  ++communicators_alive;
  comm->tell(fmt::format("joined-{}", rank));
  comm->begin([c = comm.get()] {
    for (int member = 0; member < c->ranks; ++member) {
      if (!is_there(c->file(fmt::format("joined-{}", member)))) return false;
    }
    return true;
  });
  *made = comm.get();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(Machine::get().mutex);
  *state = comm->ask();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock(Machine::get().mutex);
  if (comm->state != ncclSuccess) return ncclInvalidUsage;
  comm->finalized = true;
  comm->begin([comm] { return comm->finished == comm->launched; });
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(Machine::get().mutex);
  if (!comm->finalized || comm->state != ncclSuccess) refuse("a communicator that was not finalized");
  comm->leave();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(Machine::get().mutex);
  comm->aborted = true;
  comm->pending = nullptr;
  int version = 0;
  ncclGetVersion(&version);
  if (group_depth > 0 && version >= 22200) {
    ending.push_back(comm->self);
  } else {
    reclaim({comm->self});
  }
  return ncclSuccess;
}

int fake_nccl_made() { return communicators_made; }
int fake_nccl_alive() { return communicators_alive; }

ncclResult_t ncclGroupStart() { return ++group_depth, ncclSuccess; }

ncclResult_t ncclGroupEnd() {
  const std::lock_guard lock(Machine::get().mutex);
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  ncclResult_t code = ncclSuccess;
  for (const auto& [comm, calls] : std::exchange(grouped, {})) {
    launch(comm->self, calls);
    code = ncclInProgress;
  }
  reclaim(std::exchange(ending, {}));
  return code;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t how,
                           ncclComm_t comm, cudaStream_t stream) {
  if (from != to) check_overlap(from, count * size_of(type), to, 1, 0);
  return call(comm, collective_call("all-reduce", from, to, count, type, how, 0, count, count, stream));
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t how,
                               ncclComm_t comm, cudaStream_t stream) {
  check_overlap(to, count * size_of(type), from, comm->ranks, comm->rank);
  return call(comm, collective_call("reduce-scatter", from, to, count, type, how, 0,
                                    count * static_cast<std::size_t>(comm->ranks), count, stream));
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  check_overlap(from, count * size_of(type), to, comm->ranks, comm->rank);
  return call(comm, collective_call("all-gather", from, to, count, type, 0, 0, count,
                                    count * static_cast<std::size_t>(comm->ranks), stream));
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, collective_call("broadcast", from, to, count, type, 0, root, count, count, stream));
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, transfer_call(true, from, nullptr, count, type, peer, stream));
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, transfer_call(false, nullptr, to, count, type, peer, stream));
}

}  // extern "C"
