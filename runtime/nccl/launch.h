// Who this process is among those that were started together, as launchers tell it in the environment.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "edge/error.h"

namespace trivium::runtime::nccl {

struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among the processes of this host
  std::string host = "127.0.0.1";      ///< of rank 0
  int port = 0;                        ///< where rank 0 waits for the others
};

/// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

/// From TRIVIUM_RANK and its like (`trivium run --gpus N`), torchrun's RANK, Slurm's SLURM_PROCID, or Open MPI's
/// OMPI_COMM_WORLD_RANK. The host and port of rank 0 are MASTER_ADDR and MASTER_PORT; torchrun listens on that port
/// itself, so ours is the next. Empty where no launcher is seen. Errors: kUsage for values that make no sense, or with
/// several hosts and no MASTER_ADDR.
edge::Result<std::optional<Launch>> read_launch(const Environment& environment);

/// Gives every rank the bytes of rank 0, over TCP: rank 0 listens on the launch's port until all others came. Errors:
/// kRuntime after `seconds` without them.
std::optional<edge::Error> share_bytes(const Launch& launch, void* data, std::size_t size, int seconds);

}  // namespace trivium::runtime::nccl
