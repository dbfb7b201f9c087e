// Calls of MPI, checked with file and line.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <string>

#include "runtime/communicator.h"

namespace trivium::runtime::mpi {

inline std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

inline void check_mpi(int code, const char* call, const char* file, int line) {
  if (code != MPI_SUCCESS) throw Aborted(fmt::format("{}:{}: {}: {}", file, line, call, mpi_error_text(code)));
}

}  // namespace trivium::runtime::mpi

#define TRIVIUM_CHECK_MPI(call) ::trivium::runtime::mpi::check_mpi(call, #call, __FILE__, __LINE__)
