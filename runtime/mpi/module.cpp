// The factory that the loader calls.
#include "runtime/mpi/module.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>

#include "runtime/mpi/mpi_communicator.h"

extern "C" __attribute__((visibility("default"))) trivium::runtime::Communicator* trivium_mpi_connect(
    char* message, std::size_t size) {
  try {
    return std::make_unique<trivium::runtime::mpi::MpiCommunicator>().release();
  } catch (const std::exception& failure) {
    const std::string_view text = failure.what();
    const std::size_t length = std::min(text.size(), size - 1);
    std::copy_n(text.begin(), length, message);
    message[length] = '\0';
    return nullptr;
  }
}
