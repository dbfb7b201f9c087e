#include "runtime/nccl/launch.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

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

base::Error refuse(std::string why) { return {base::ErrorKind::kUsage, std::move(why)}; }

/// The variable as a number of [low, high]; empty where it is not set.
base::Result<std::optional<int>> number(const Environment& environment, const char* name, int low, int high) {
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

bool take_number(std::string_view& text, int& value) {
  const auto [at, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return true;
}

/// Tasks on node `node` of Slurm's "4(x2),3": two nodes with four, one with three. Empty where the list is another.
std::optional<int> tasks_on_node(std::string_view list, int node) {
  while (!list.empty()) {
    int tasks = 0, nodes = 1;
    if (!take_number(list, tasks)) return std::nullopt;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      if (!take_number(list, nodes) || !list.starts_with(')')) return std::nullopt;
      list.remove_prefix(1);
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (list.starts_with(',')) list.remove_prefix(1);
  }
  return std::nullopt;
}

/// The first host of Slurm's "gpu[07-09,12],login": "gpu07".
std::string first_host(std::string_view list) {
  std::string host;
  bool inside = false;
  for (const char c : list) {
    if (c == ',' || c == ']' || (inside && c == '-')) break;
    if (c == '[') {
      inside = true;
    } else {
      host += c;
    }
  }
  return host;
}

/// What srun tells in words of its own: how many tasks this node has, and who is the first.
void ask_slurm(const Environment& environment, Launch& launch) {
  const char* tasks = environment("SLURM_STEP_TASKS_PER_NODE");
  if (tasks == nullptr) tasks = environment("SLURM_TASKS_PER_NODE");
  const auto node = number(environment, "SLURM_NODEID", 0, kMostRanks);
  if (tasks != nullptr && node && node.value()) {
    if (const auto here = tasks_on_node(tasks, *node.value()); here && *here > launch.local_rank) {
      launch.local_size = std::min(*here, launch.size);
    }
  }
  const char* hosts = environment("SLURM_STEP_NODELIST");
  if (hosts != nullptr && launch.local_size < launch.size) launch.host = first_host(hosts);
}

}  // namespace

base::Result<std::optional<Launch>> read_launch(const Environment& environment) {
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
    if (dialect.rank == std::string_view("SLURM_PROCID")) ask_slurm(environment, launch);
    const auto port = number(environment, "MASTER_PORT", 1, kMostPort - dialect.port_shift);
    if (!port) return port.error();
    launch.port = port.value() ? *port.value() + dialect.port_shift : kDefaultPort;
    if (const char* host = environment("MASTER_ADDR"); host != nullptr) {
      launch.host = host;
    } else if (launch.local_size < launch.size && launch.host == Launch{}.host) {
      return refuse(
          fmt::format("{} started ranks on several hosts: set MASTER_ADDR to the host of rank 0", dialect.launcher));
    }
    if (const char* token = environment("TRIVIUM_JOB_TOKEN"); token != nullptr) launch.token = token;
    return std::optional<Launch>(launch);
  }
  return std::optional<Launch>();
}

base::Result<std::string> draw_token() {
  std::array<unsigned char, 16> bits{};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) {
    return base::Error{base::ErrorKind::kRuntime, "the system gives no random numbers"};
  }
  std::string token;
  for (const unsigned char byte : bits) token += fmt::format("{:02x}", byte);
  return token;
}

std::vector<std::pair<std::string, std::string>> environment_of(const Launch& launch) {
  std::vector<std::pair<std::string, std::string>> variables{{"NCCL_LAUNCH_ORDER_IMPLICIT", "1"}};
  if (launch.size > 1 && launch.local_size == launch.size) variables.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  if (launch.local_size <= launch.devices) return variables;
  variables.insert(variables.end(), {{"NCCL_HOSTID", fmt::format("trivium-rank-{}", launch.rank)},
                                     {"NCCL_MULTI_RANK_GPU_ENABLE", "1"},
                                     {"NCCL_IB_DISABLE", "1"},
                                     {"NCCL_MNNVL_ENABLE", "0"},
                                     {"NCCL_MAX_NCHANNELS", "2"}});
  return variables;
}

}  // namespace trivium::runtime::nccl
