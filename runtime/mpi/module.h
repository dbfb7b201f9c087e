// The one symbol of libtrivium_mpi.so.
#pragma once

#include <cstddef>

#include "runtime/communicator.h"

namespace trivium::runtime::mpi {

/// Starts MPI. A new communicator that the caller deletes, or null with the reason in `message` (`size` bytes, ends in
/// 0).
using ConnectMpi = Communicator* (*)(char* message, std::size_t size);
constexpr const char* kConnectMpiSymbol = "trivium_mpi_connect";

}  // namespace trivium::runtime::mpi
