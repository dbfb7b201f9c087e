#include "runtime/nccl/launch.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

namespace trivium::runtime::nccl {
namespace {

constexpr int kDefaultPort = 29517;
constexpr int kMostRanks = 1 << 20, kMostPort = 65535;

/// The names by which one launcher tells.
struct Dialect {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  int port_shift;
};

constexpr std::array<Dialect, 4> kDialects = {{
    {"trivium", "TRIVIUM_RANK", "TRIVIUM_RANKS", "TRIVIUM_LOCAL_RANK", "TRIVIUM_LOCAL_RANKS", 0},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", 1},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", 0},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", 0},
}};

edge::Error refuse(std::string why) { return {edge::ErrorKind::kUsage, std::move(why)}; }

/// The variable as a number of [low, high]; empty where it is not set.
edge::Result<std::optional<int>> number(const Environment& environment, const char* name, int low, int high) {
  const char* text = environment(name);
  if (text == nullptr) return std::optional<int>();
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, code] = std::from_chars(text, end, value);
  if (code != std::errc() || stopped != end || value < low || value > high) {
    return refuse(fmt::format("{}=\"{}\": it must be {} to {}", name, text, low, high));
  }
  return std::optional<int>(value);
}

}  // namespace

edge::Result<std::optional<Launch>> read_launch(const Environment& environment) {
  for (const Dialect& dialect : kDialects) {
    if (environment(dialect.rank) == nullptr || environment(dialect.size) == nullptr) continue;
    Launch launch;
    const auto size = number(environment, dialect.size, 1, kMostRanks);
    if (!size) return size.error();
    launch.size = *size.value();
    const auto rank = number(environment, dialect.rank, 0, launch.size - 1);
    if (!rank) return rank.error();
    launch.rank = *rank.value();
    const auto local_rank = number(environment, dialect.local_rank, 0, launch.size - 1);
    if (!local_rank) return local_rank.error();
    launch.local_rank = local_rank.value().value_or(launch.rank);
    const auto local_size = number(environment, dialect.local_size, launch.local_rank + 1, launch.size);
    if (!local_size) return local_size.error();
    launch.local_size = local_size.value().value_or(launch.size);
    const auto port = number(environment, "MASTER_PORT", 1, kMostPort - dialect.port_shift);
    if (!port) return port.error();
    launch.port = port.value() ? *port.value() + dialect.port_shift : kDefaultPort;
    if (const char* host = environment("MASTER_ADDR"); host != nullptr) {
      launch.host = host;
    } else if (launch.local_size < launch.size) {
      return refuse(
          fmt::format("{} started ranks on several hosts: set MASTER_ADDR to the host of rank 0", dialect.launcher));
    }
    return std::optional<Launch>(launch);
  }
  return std::optional<Launch>();
}

}  // namespace trivium::runtime::nccl
