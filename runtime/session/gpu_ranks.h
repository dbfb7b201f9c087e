// A rank a GPU, a process a rank: who this process is, and the start of all of them on one host.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/cuda/device_options.h"

namespace trivium::runtime::session {

/// Which GPUs the ranks of a host take, and how.
struct GpuRankOptions {
  int gpus = 0;                 ///< 0: all
  cuda::DeviceOptions device;   ///< how each is opened
  bool events_will_do = false;  ///< where records of kernels cannot be had, ops are timed by events
};

/// This process's GPU, and what joins it to the other ranks.
struct GpuRank {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;  ///< ends before the backend
  std::string timing;                          ///< "events" or "cupti": how ops are timed
};

/// Whether a launcher (torchrun, srun, mpirun, `start_ranks`) started this process as one of several.
bool started_as_rank();

/// Opens the GPU of this process's place on its host, the ranks of a host taking turns over `options.gpus` of them, and
/// meets the other ranks. Errors: Failure(kHardware) without module, driver or GPU, or without what the options ask
/// for.
GpuRank open_gpu_rank(const GpuRankOptions& options);

/// Runs this very command again as `ranks` processes of this host and waits for them. When one fails, or `stop` asks
/// for it, the others are told to end, and those that do not hear it are ended. The exit code of the first that failed,
/// else 0. Errors: as open_gpu_rank, before any is started.
int start_ranks(int ranks, const std::stop_token& stop);

}  // namespace trivium::runtime::session
