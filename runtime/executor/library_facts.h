// Libraries and drivers that a backend brings along, as far as they may change what is measured.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace trivium::runtime {

/// "mpi": the library that this process has loaded, as it names itself ("Open MPI v4.1.4"). Empty where none is loaded.
std::map<std::string, std::string> mpi_facts();

/// From a line of cuda::describe_devices: "gpu" (name, architecture and memory), "cuda" (of the driver and of the
/// runtime), "nccl"; and of the system "driver" (NVIDIA's kernel module). What cannot be told is left out.
std::map<std::string, std::string> gpu_facts(const std::string& description);

/// The version in what NVIDIA's kernel module says of itself in /proc/driver/nvidia/version: "550.54.15"; empty where
/// there is none.
std::string nvidia_driver_in(std::string_view text);

}  // namespace trivium::runtime
