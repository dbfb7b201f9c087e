// Who this process is among those that were started together, as launchers tell it in the environment.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trivium::runtime::nccl {

struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among the processes of this host
  std::string host = "127.0.0.1";      ///< of rank 0
  int port = 0;                        ///< where rank 0 waits for the others
  int devices = 1;                     ///< GPUs that the processes of this host use
  std::string token;                   ///< by which the ranks of a job know each other; empty: none was given
};

/// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

/// From TRIVIUM_RANK and its like (`trivium run --gpus N`), torchrun's RANK, Slurm's SLURM_PROCID, or Open MPI's
/// OMPI_COMM_WORLD_RANK. The host and port of rank 0 are MASTER_ADDR and MASTER_PORT; torchrun listens on that port
/// itself, so ours is the next. TRIVIUM_JOB_TOKEN is what ranks know each other by: `trivium run` draws one for the
/// ranks it starts; with other launchers it may be set to the same secret everywhere. Under srun the host is the first
/// of the step's. Empty where no launcher is seen. Errors: kUsage for values that make no sense, or with several hosts
/// and none of rank 0 named.
base::Result<std::optional<Launch>> read_launch(const Environment& environment);

/// 128 random bits as text. Errors: kRuntime where the system gives none.
base::Result<std::string> draw_token();

/// What NCCL is told in the environment before it starts, unless it is set already: the order of calls, where all ranks
/// are on this host the loopback interface to meet on, and, where this host's ranks share devices, what makes each of
/// them a host of its own that talks through the loopback interface (NCCL refuses two ranks of one host on one device:
/// until 2.29 its check compares a hash of NCCL_HOSTID, src/init.cc; from 2.30 on it asks for
/// NCCL_MULTI_RANK_GPU_ENABLE).
std::vector<std::pair<std::string, std::string>> environment_of(const Launch& launch);

/// Gives every rank the bytes of rank 0, over TCP: rank 0 listens on the launch's port until all others came, on the
/// loopback interface where all are on this host. Both sides show that they have the job's token. Connections without
/// it are left waiting in parallel, delay nobody and are reported once. Errors: kRuntime after `seconds` without the
/// ranks.
std::optional<base::Error> share_bytes(const Launch& launch, void* data, std::size_t size, int seconds);

}  // namespace trivium::runtime::nccl
