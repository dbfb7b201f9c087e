// Two ranks of one process, each with a fake GPU of its own. One of them never comes to what the other waits for, as a
// rank that is gone: the other must notice, whatever lies in its queues and whichever call it is in. A test that fails
// here mostly does so by not ending.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/cuda/loader.h"
#include "runtime/nccl/launch.h"

namespace trivium::runtime {
namespace {

using program::DType;
using program::Lane;
using program::Reduction;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Before the module is opened, as it reads them once.
const bool kSet = [] {
  ::setenv("FAKE_GPU", "late", 1);
  ::setenv("FAKE_GPU_DEVICES", "4", 1);
  ::setenv("TRIVIUM_NCCL_TIMEOUT_S", "2", 1);
  ::alarm(120);  // ends what hangs
  return true;
}();

/// A function of the fake that the module uses.
template <class Function>
Function fake(const char* name) {
  static_cast<void>(cuda::describe_devices().value_or_throw());  // opens it
  void* module = ::dlopen(TRIVIUM_FAKE_GPU, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(::dlsym(module, name));
}

int made() { return fake<int (*)()>("fake_nccl_made")(); }
int alive() { return fake<int (*)()>("fake_nccl_alive")(); }

nccl::Launch launch_of(int rank, int size) {
  nccl::Launch launch;
  launch.rank = launch.local_rank = rank;
  launch.size = launch.local_size = launch.devices = size;
  launch.port = 21000 + static_cast<int>(::getpid() % 20000);
  return launch;
}

struct Rank {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;
  std::vector<std::byte> host = std::vector<std::byte>(1 << 22);
  Memory memory;

  Rank(int rank, int size)
      : backend(cuda::open_device(rank).value_or_throw()),
        communicator(cuda::connect_nccl(*backend, launch_of(rank, size)).value_or_throw()),
        memory(backend->allocate(1 << 22)) {}
  ~Rank() {
    memory.reset();
    communicator.reset();
  }

  float* floats() { return reinterpret_cast<float*>(memory.get()); }
  int group(std::vector<int> ranks) { return communicator->make_group(ranks); }
  void sum(int group, Lane lane) {
    backend->enter(lane);
    communicator->all_reduce(group, floats(), 16, DType::kFp32, Reduction::kSum);
  }
};

/// The ranks' parts, each on a thread; the first one's outcome is thrown.
template <class... Parts>
void on_ranks(const Parts&... parts) {
  constexpr int kRanks = sizeof...(parts);
  std::vector<std::future<void>> all;
  const auto start = [&](const auto& part) {
    const int rank = static_cast<int>(all.size());
    all.push_back(std::async(std::launch::async, [&part, rank] {
      Rank self(rank, kRanks);
      part(self);
    }));
  };
  (start(parts), ...);
  for (auto& each : all) each.wait();
  all.front().get();
}

/// Hosts of ranks wait for each other where they first exchange something: after this call that is done.
int meet(Rank& self) {
  const int both = self.group({0, 1});
  self.sum(both, Lane::kCompute);
  const std::vector<int> other{1 - self.communicator->rank()};
  self.communicator->expect_transfers(
      std::vector<Communicator::LanePeers>{{Lane::kPipeline, other}, {Lane::kContext, other}});
  self.backend->enter(Lane::kCompute);
  self.backend->finish();
  return both;
}

/// What a peer does that comes to the meeting and then to nothing, until it may go.
struct Silent {
  std::shared_future<void> until;
  void operator()(Rank& self) const {
    meet(self);
    until.wait();
    self.communicator->abort("its part is over");
  }
};

/// `part` on rank 0 with a rank 1 that is silent once both have met.
template <class Part>
void beside_silence(const Part& part) {
  std::promise<void> over;
  on_ranks(
      [&](Rank& self) {
        const int both = meet(self);
        try {
          part(self, both);
        } catch (...) {
          over.set_value();
          throw;
        }
        over.set_value();
      },
      Silent{over.get_future().share()});
}

void end_two_communicators() {
  beside_silence([](Rank& self, int both) {
    // The world's sum and the transfers' receive are under way on streams of their own, and nobody comes to either.
    self.sum(both, Lane::kCompute);
    self.backend->enter(Lane::kPipeline);
    self.communicator->post_recv(1, 7, self.memory.get() + 4096, 64);
    self.communicator->abort("enough");
    self.backend->finish();
    EXPECT_THROW(self.communicator->barrier(both), Aborted);
  });
}

TEST(NoHang, CommunicatorsEndTogetherWhateverEachHasUnderWay) { end_two_communicators(); }

TEST(NoHang, CommunicatorsEndTogetherWhereNcclDoesNotGatherEnds) {
  ::setenv("FAKE_NCCL_VERSION", "22105", 1);
  end_two_communicators();
}

TEST(NoHang, ACommunicatorThatNeverCameAboutEndsWithTheOthers) {
  ::setenv("FAKE_NCCL_FAILS", "2", 1);
  const std::unique_ptr<Backend> backend = cuda::open_device(0).value_or_throw();
  const auto failed = cuda::connect_nccl(*backend, launch_of(0, 1));
  ::unsetenv("FAKE_NCCL_FAILS");
  ASSERT_FALSE(failed);
  EXPECT_EQ(made(), 2);
  EXPECT_EQ(alive(), 0);
}

TEST(NoHang, AHostThatIsFarAheadOfADeadPeerNoticesIt) {
  const auto run_ahead = [](Rank& self, int both) {
    self.sum(both, Lane::kCompute);  // after it the queue of 1,000 places fills
    for (int i = 0; i < 3000; ++i) self.backend->mark(i % 8, Lane::kCompute);
  };
  EXPECT_THAT([&] { beside_silence(run_ahead); }, ThrowsMessage<Aborted>(HasSubstr("nothing has come for 2 s")));
}

TEST(NoHang, AnotherThreadsAbortEndsWhatADriverWaitsFor) {
  const auto synchronize = fake<int (*)()>("cudaDeviceSynchronize");
  beside_silence([&](Rank& self, int both) {
    self.sum(both, Lane::kCompute);
    std::thread watchdog([&] { self.communicator->abort("no rank has moved"); });
    EXPECT_EQ(synchronize(), 0);  // as in a driver: it looks at no flag
    watchdog.join();
    EXPECT_THAT([&] { self.communicator->barrier(both); }, ThrowsMessage<Aborted>(HasSubstr("no rank has moved")));
  });
}

TEST(NoHang, AnotherThreadsAbortLeavesAnOpenBatchToItsOwner) {
  beside_silence([&](Rank& self, int both) {
    self.backend->enter(Lane::kPipeline);
    self.communicator->begin_batch();
    self.communicator->post_recv(1, 7, self.memory.get() + 4096, 64);
    std::thread([&] { self.communicator->abort("no rank has moved"); }).join();
    EXPECT_EQ(alive(),
              6);  // two ranks' world and transfers of two lanes: the call within the batch still names one of them
    EXPECT_THROW(self.communicator->end_batch(), Aborted);
    EXPECT_THROW(self.communicator->barrier(both), Aborted);
    self.backend->finish();
  });
}

// The first kernel that this device runs: to load it would be to wait for the sum before it.
TEST(NoHang, KernelsAreLoadedBeforeAnybodyCanBeWaitedFor) {
  const auto launch = [](Rank& self, int both) {
    program::ChunkTemplate kind;
    kind.buffers.emplace_back().dtype = DType::kFp32;
    kind.parameters.emplace_back().value = 0;
    program::Op op;
    op.kind = program::OpKind::kAdd, op.dtype = DType::kFp32, op.elements = 16;
    KernelArguments add;
    add.op = &op, add.kind = &kind;
    add.in[0] = self.memory.get() + 4096, add.out[0] = self.memory.get() + 8192;
    self.sum(both, Lane::kCompute);
    self.backend->run(add, Lane::kCopy);
    self.backend->finish();
  };
  EXPECT_THAT([&] { beside_silence(launch); }, ThrowsMessage<Aborted>(HasSubstr("nothing has come for 2 s")));
}

TEST(NoHang, RoomThatGrowsBehindADeadPeerIsNotWaitedForBlindly) {
  const auto grow = [](Rank& self, int both) {
    self.sum(both, Lane::kCompute);
    self.backend->enter(Lane::kTensor);
    // From memory of the host: more than there is room for, while the compute lane waits.
    self.communicator->all_reduce(both, self.host.data(), 1 << 20, DType::kFp32, Reduction::kSum);
  };
  EXPECT_THAT([&] { beside_silence(grow); }, ThrowsMessage<Aborted>(HasSubstr("nothing has come for 2 s")));
}

TEST(NoHang, AnUploadOfManyMegabytesBehindADeadPeerIsNotWaitedForBlindly) {
  const auto bring = [](Rank& self, int both) {
    self.sum(both, Lane::kCompute);
    for (int i = 0; i < 8; ++i) self.backend->upload(Lane::kCompute, self.memory.get(), self.host.data(), 1 << 22);
  };
  EXPECT_THAT([&] { beside_silence(bring); }, ThrowsMessage<Aborted>(HasSubstr("nothing has come for 2 s")));
}

TEST(NoHang, MemoryThatIsAllocatedBehindADeadPeerIsNotWaitedForBlindly) {
  const auto allocate = [](Rank& self, int both) {
    self.sum(both, Lane::kCompute);
    const Memory more = self.backend->allocate(1 << 20);
  };
  EXPECT_THAT([&] { beside_silence(allocate); }, ThrowsMessage<Aborted>(HasSubstr("nothing has come for 2 s")));
}

/// A copy from or to memory of the host as an op.
struct HostCopy {
  program::Op op;
  program::ChunkTemplate kind;
  KernelArguments a;

  HostCopy(program::OpKind what, std::byte* to, std::byte* from, std::int64_t bytes) {
    op.kind = what, op.elements = bytes;
    kind.parameters.emplace_back().value = 0;
    kind.buffers.push_back({"parameter", program::Space::kParameter, DType::kFp32, 1, 0});
    a.op = &op, a.kind = &kind;
    a.in[0] = from, a.out[0] = to;
  }
};

TEST(NoHang, OffloadToDiskHoldsNobodyUpUntilItsLaneIsThere) {
  beside_silence([](Rank& self, int both) {
    self.sum(both, Lane::kCompute);
    self.backend->mark(0, Lane::kCompute);
    self.backend->wait(0, Lane::kCopy);
    const auto bytes = static_cast<std::int64_t>(self.host.size());
    const HostCopy store(program::OpKind::kStore, self.host.data(), self.memory.get(), bytes);
    const HostCopy fetch(program::OpKind::kFetch, self.memory.get(), self.host.data(), bytes);
    self.backend->run(store.a, Lane::kCopy);
    self.backend->run(fetch.a, Lane::kCopy);
    self.communicator->abort("both were issued");
    self.backend->finish();
  });
}

TEST(NoHang, WhatGoesToDiskAndBackIsTheSame) {
  constexpr std::int64_t kBytes = 30'000'001;  // of eight slots' worth the last is short
  const std::unique_ptr<Backend> backend = cuda::open_device(0).value_or_throw();
  std::vector<std::byte> data(kBytes), disk(kBytes), back(kBytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 2654435761U >> 24);
  const Memory device = backend->allocate(kBytes);
  backend->upload(Lane::kCopy, device.get(), data.data(), kBytes);
  const HostCopy store(program::OpKind::kStore, disk.data(), device.get(), kBytes);
  const HostCopy fetch(program::OpKind::kFetch, device.get(), disk.data(), kBytes);
  backend->run(store.a, Lane::kCopy);
  backend->finish();
  EXPECT_EQ(disk, data);
  const std::vector<std::byte> nothing(kBytes);
  disk = nothing;
  backend->run(store.a, Lane::kCopy);
  backend->upload(Lane::kCopy, device.get(), nothing.data(), kBytes);
  backend->run(fetch.a, Lane::kCopy);
  backend->download(back.data(), device.get(), kBytes);
  EXPECT_EQ(disk, data);
  EXPECT_EQ(back, data);
}

TEST(NoHang, AReceiveOfOneLaneHoldsUpNoTransferOfAnother) {
  std::promise<void> exchanged;
  const auto exchange = [](Rank& self) {
    const int other = 1 - self.communicator->rank();
    self.backend->enter(Lane::kContext);
    self.communicator->begin_batch();
    self.communicator->post_recv(other, 8, self.memory.get() + 8192, 64);
    self.communicator->post_send(other, 8, self.memory.get(), 64);
    self.communicator->end_batch();
    // The ninth of these waits for the first, and so for the exchange before it.
    for (int i = 0; i < 9; ++i) self.backend->upload(Lane::kContext, self.memory.get() + 16384, self.host.data(), 16);
  };
  on_ranks(
      [&](Rank& self) {
        meet(self);
        self.backend->enter(Lane::kPipeline);
        self.communicator->post_recv(1, 7, self.memory.get() + 4096, 64);
        exchange(self);
        exchanged.set_value();
        self.backend->finish();
      },
      [&](Rank& self) {
        meet(self);
        exchange(self);
        exchanged.get_future().wait();
        self.backend->enter(Lane::kPipeline);
        self.communicator->post_send(0, 7, self.memory.get(), 64);
        self.backend->finish();
      });
}

TEST(NoHang, GroupsOfTheSameRanksShareACommunicator) {
  const auto part = [](Rank& self) {
    const std::vector<std::vector<int>> groups{{0, 1}, {0}, {0, 1, 2}};
    std::vector<int> first, again;
    for (int times = 0; times < 3; ++times) {  // as the batches of a ramp ask for them
      for (const auto& ranks : groups) {
        if (std::find(ranks.begin(), ranks.end(), self.communicator->rank()) == ranks.end()) continue;
        (times == 0 ? first : again).push_back(self.group(ranks));
      }
    }
    first.insert(first.end(), first.begin(), first.end());
    EXPECT_EQ(again, first);
  };
  on_ranks(part, part, part);
  // Of three ranks the world and the transfers, and of two of them one for both.
  EXPECT_EQ(made(), 3 * 2 + 2);
  EXPECT_EQ(alive(), 0);
}

}  // namespace
}  // namespace trivium::runtime
