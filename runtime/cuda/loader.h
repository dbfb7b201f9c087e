// Finding and opening the CUDA backend, a module that is loaded only when asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/cuda/device_options.h"
#include "runtime/nccl/launch.h"

namespace trivium::runtime::cuda {

/// One line for each GPU that the module can use. Errors: kHardware when the module is missing or there is no driver or
/// no GPU; looks for libtrivium_cuda.so as connect_mpi does for its module.
base::Result<std::vector<std::string>> describe_devices();

/// The GPU as this thread's backend. Errors as above; also where an option asks for what is not there.
base::Result<std::unique_ptr<Backend>> open_device(int device, const DeviceOptions& options = {});

/// The ranks of `launch` joined by NCCL, each with a device of its own or several on one. `backend` came from
/// open_device. Errors as above, also where the module was built without NCCL.
base::Result<std::unique_ptr<Communicator>> connect_nccl(Backend& backend, const nccl::Launch& launch);

}  // namespace trivium::runtime::cuda
