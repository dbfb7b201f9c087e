// Ranks as launchers tell them, and the message that rank 0 hands to all others.
#include "runtime/nccl/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

namespace trivium::runtime::nccl {
namespace {

using Variables = std::map<std::string, std::string>;

edge::Result<std::optional<Launch>> read(const Variables& variables) {
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

TEST(Launch, RefusesWhatMakesNoSense) {
  EXPECT_THAT(read({{"RANK", "4"}, {"WORLD_SIZE", "4"}}).error().message,
              testing::HasSubstr("RANK=\"4\": it must be 0 to 3"));
  EXPECT_THAT(read({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}).error().message, testing::HasSubstr("RANK=\"1x\""));
  EXPECT_THAT(
      read({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}).error().message,
      testing::HasSubstr("torchrun started ranks on several hosts: set MASTER_ADDR"));
}

Launch launch_of(int rank, int size, int port) {
  Launch launch;
  launch.rank = rank, launch.size = size, launch.port = port;
  return launch;
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

TEST(ShareBytes, TellsHowManyCame) {
  char byte = 0;
  const auto error = share_bytes(launch_of(0, 3, 29534), &byte, 1, 1);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, testing::HasSubstr("127.0.0.1:29534: 1 of 3 came"));
}

}  // namespace
}  // namespace trivium::runtime::nccl
