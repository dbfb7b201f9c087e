// Ranks as launchers tell them, and the message that rank 0 hands to all others.
#include "runtime/nccl/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

namespace trivium::runtime::nccl {
namespace {

using Variables = std::map<std::string, std::string>;

base::Result<std::optional<Launch>> read(const Variables& variables) {
  return read_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, IsEmptyWithoutALauncher) {
  EXPECT_FALSE(read({}).value());
  EXPECT_FALSE(read({{"RANK", "1"}, {"MASTER_PORT", "5"}}).value());  // somebody else's variable
}

TEST(Launch, ReadsEveryLauncher) {
  const auto torchrun = read({{"RANK", "5"},
                              {"WORLD_SIZE", "16"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node7"},
                              {"MASTER_PORT", "29500"}})
                            .value();
  EXPECT_EQ(torchrun->rank, 5);
  EXPECT_EQ(torchrun->size, 16);
  EXPECT_EQ(torchrun->local_rank, 1);
  EXPECT_EQ(torchrun->local_size, 4);
  EXPECT_EQ(torchrun->host, "node7");
  EXPECT_EQ(torchrun->port, 29501);  // torchrun listens on its own
  const auto slurm = read({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "3"}}).value();
  EXPECT_EQ(slurm->rank, 3);
  EXPECT_EQ(slurm->local_size, 4);
  EXPECT_EQ(slurm->host, "127.0.0.1");
  const auto mpirun = read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).value();
  EXPECT_EQ(mpirun->size, 2);
  const auto own = read({{"TRIVIUM_RANK", "1"},
                         {"TRIVIUM_RANKS", "2"},
                         {"TRIVIUM_LOCAL_RANK", "1"},
                         {"TRIVIUM_LOCAL_RANKS", "2"},
                         {"MASTER_PORT", "4000"},
                         {"RANK", "0"},
                         {"WORLD_SIZE", "9"}})
                       .value();
  EXPECT_EQ(own->rank, 1);  // the nearest launcher counts
  EXPECT_EQ(own->port, 4000);
}

// srun -N 3 -n 11 without --ntasks-per-node: the second node has four ranks, and rank 0 is on the first host.
TEST(Launch, ReadsHowSlurmSpreadsItsTasks) {
  Variables step{{"SLURM_PROCID", "5"},
                 {"SLURM_NTASKS", "11"},
                 {"SLURM_LOCALID", "1"},
                 {"SLURM_NODEID", "1"},
                 {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
                 {"SLURM_STEP_NODELIST", "gpu[07-08,12]"}};
  EXPECT_EQ(read(step).value()->local_size, 4);
  EXPECT_EQ(read(step).value()->host, "gpu07");
  step["SLURM_NODEID"] = "2";
  EXPECT_EQ(read(step).value()->local_size, 3);
  step["MASTER_ADDR"] = "10.0.0.1";
  EXPECT_EQ(read(step).value()->host, "10.0.0.1");
  const auto one = read({{"SLURM_PROCID", "1"},
                         {"SLURM_NTASKS", "2"},
                         {"SLURM_NODEID", "0"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2"},
                         {"SLURM_STEP_NODELIST", "gpu3"}});
  EXPECT_EQ(one.value()->host, "127.0.0.1");
}

TEST(Launch, MakesHostsOfRanksThatShareAGpu) {
  Launch launch;
  launch.rank = 2, launch.size = launch.local_size = 4, launch.devices = 4;
  EXPECT_THAT(environment_of(launch), testing::ElementsAre(testing::Pair("NCCL_LAUNCH_ORDER_IMPLICIT", "1"),
                                                           testing::Pair("NCCL_SOCKET_IFNAME", "lo")));
  launch.devices = 1;  // --gpus 1, however many there are
  EXPECT_THAT(environment_of(launch), testing::IsSupersetOf({testing::Pair("NCCL_HOSTID", "trivium-rank-2"),
                                                             testing::Pair("NCCL_SOCKET_IFNAME", "lo")}));
  launch.size = 8;  // the other hosts are not reached through the loopback interface
  EXPECT_THAT(environment_of(launch), testing::Not(testing::Contains(testing::Pair("NCCL_SOCKET_IFNAME", "lo"))));
}

TEST(Launch, RefusesWhatMakesNoSense) {
  EXPECT_THAT(read({{"RANK", "4"}, {"WORLD_SIZE", "4"}}).error().message,
              testing::HasSubstr("RANK=\"4\": it must be 0 to 3"));
  EXPECT_THAT(read({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}).error().message, testing::HasSubstr("RANK=\"1x\""));
  EXPECT_THAT(
      read({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}).error().message,
      testing::HasSubstr("torchrun started ranks on several hosts: set MASTER_ADDR"));
}

Launch launch_of(int rank, int size, int port, const std::string& token = "0123456789abcdef0123456789abcdef") {
  Launch launch;
  launch.rank = rank, launch.size = launch.local_size = size, launch.port = port, launch.token = token;
  return launch;
}

TEST(Launch, DrawsAnotherTokenEveryTime) {
  const std::string one = draw_token().value(), other = draw_token().value();
  EXPECT_EQ(one.size(), 32U);
  EXPECT_NE(one, other);
  EXPECT_EQ(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TRIVIUM_JOB_TOKEN", one}}).value()->token, one);
}

TEST(ShareBytes, EveryRankGetsThoseOfRankZero) {
  constexpr int kRanks = 4, kPort = 29533;
  std::vector<std::string> got(kRanks, "nothing");
  {
    std::vector<std::jthread> threads;
    for (int rank = kRanks - 1; rank >= 0; --rank) {
      threads.emplace_back([&, rank] {
        std::string text = rank == 0 ? "unique" : "------";
        const auto error = share_bytes(launch_of(rank, kRanks, kPort), text.data(), text.size(), 20);
        got[static_cast<std::size_t>(rank)] = error ? error->message : text;
      });
    }
  }
  EXPECT_THAT(got, testing::Each("unique"));
}

// Somebody who connects and says nothing holds the others up for two seconds, not for good.
TEST(ShareBytes, DoesNotWaitForStrangers) {
  constexpr int kPort = 29535;
  std::string text = "------", given = "unique";
  std::optional<base::Error> first, second;
  {
    const std::jthread server([&] { first = share_bytes(launch_of(0, 2, kPort), given.data(), given.size(), 20); });
    const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(kPort), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::this_thread::yield();
    second = share_bytes(launch_of(1, 2, kPort), text.data(), text.size(), 15);
    ::close(stranger);
  }
  EXPECT_FALSE(first);
  EXPECT_FALSE(second) << second->message;
  EXPECT_EQ(text, "unique");
}

// A rank of another job, or somebody who poses as one.
TEST(ShareBytes, GivesNothingToWhoLacksTheToken) {
  constexpr int kPort = 29536;
  std::string stolen = "------", text = "------", given = "unique";
  std::optional<base::Error> first, second, stranger;
  testing::internal::CaptureStderr();
  {
    const std::jthread server([&] { first = share_bytes(launch_of(0, 2, kPort), given.data(), given.size(), 20); });
    for (int i = 0; i < 3; ++i) {
      stranger = share_bytes(launch_of(1, 2, kPort, std::string(32, 'x')), stolen.data(), stolen.size(), 1);
    }
    second = share_bytes(launch_of(1, 2, kPort), text.data(), text.size(), 15);
  }
  EXPECT_TRUE(stranger);
  EXPECT_EQ(stolen, "------");
  EXPECT_FALSE(first) << first->message;
  EXPECT_FALSE(second) << second->message;
  EXPECT_EQ(text, "unique");
  const std::string said = testing::internal::GetCapturedStderr();  // one line, however many came
  EXPECT_THAT(said, testing::HasSubstr("no rank of this job connected to port 29536"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

// Fifty who say nothing, each of whom has two seconds: in parallel, not one after another.
TEST(ShareBytes, ManyStrangersHoldNobodyUp) {
  constexpr int kPort = 29537, kStrangers = 50;
  std::string text = "------", given = "unique";
  std::optional<base::Error> first, second;
  std::vector<int> strangers;
  {
    const std::jthread server([&] { first = share_bytes(launch_of(0, 2, kPort), given.data(), given.size(), 30); });
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(kPort), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < kStrangers; ++i) {
      strangers.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      while (::connect(strangers.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        std::this_thread::yield();
      }
    }
    second = share_bytes(launch_of(1, 2, kPort), text.data(), text.size(), 15);
  }
  for (const int handle : strangers) ::close(handle);
  EXPECT_FALSE(first) << first->message;
  EXPECT_FALSE(second) << second->message;
  EXPECT_EQ(text, "unique");
}

TEST(ShareBytes, TellsHowManyCame) {
  char byte = 0;
  const auto error = share_bytes(launch_of(0, 3, 29534), &byte, 1, 1);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, testing::HasSubstr("127.0.0.1:29534: 1 of 3 came"));
}

}  // namespace
}  // namespace trivium::runtime::nccl
