// Finding and opening the MPI communicator, a module that is loaded only when asked for.
#pragma once

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "runtime/communicator.h"

namespace trivium::runtime::mpi {

/// Whether this process was started by mpirun or another MPI launcher (Open MPI, PMI, PMIx).
bool launched_by_mpi();

/// Where libtrivium_loopback.so lies (`loopback_only.cpp`): with the program (base::module_files); empty: nowhere.
std::filesystem::path loopback_library();

/// Starts MPI in this process; its ranks are the ranks. Once per process; MPI ends when the communicator is destroyed.
/// The communicator's `abort` does not return: it prints the reason and ends every process.
/// Looks for libtrivium_mpi.so with the program, then where the dynamic linker looks.
/// Errors: kHardware when the module or MPI is missing or does not start.
base::Result<std::unique_ptr<Communicator>> connect_mpi();

}  // namespace trivium::runtime::mpi
