// What a GPU does: its kernels timed one by one through the backend that trains on it.
#pragma once

#include <string>

#include "hardware_profiles/hardware.h"
#include "runtime/backend.h"
#include "runtime/microbench/all_reduce_times.h"
#include "runtime/microbench/profile.h"

namespace trivium::runtime {

/// The shipped profile `like` as a node "this-gpu" of `devices` GPUs, without what it says of larger groups.
hardware::Node gpus_like(const std::string& like, int devices);

/// Times every kernel on shapes of GPTs of 0.1 to 7 billion parameters and fits a node of `devices` such GPUs, named
/// "this-gpu", and the link to the host's memory. All-reduces of the node's GPUs are taken from `all_reduces`, which
/// may be empty; links between GPUs and adapters are those of the shipped profile `like`: they are not measured.
/// `description` goes into the sources. Of `options`, `quick` and `progress` count.
hardware::Node profile_gpu(Backend& device, const std::string& description, int devices, const std::string& like,
                           const microbench::AllReduceTimes& all_reduces, const ProfileOptions& options);

}  // namespace trivium::runtime
