// Ends a run that stands still.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "program/ir/program.h"

namespace trivium::runtime::flight {

/// A thread that reads the flight records of all ranks. Where none of them noted anything new for `deadline`, it calls
/// `give_up` once with what the records tell. Ranks look in turn, a little later each, so that one of them speaks.
/// While one of them reads or writes a checkpoint it waits ten times as long. The deadline must exceed the longest
/// kernel.
class Watchdog {
 public:
  Watchdog(std::filesystem::path folder, const program::Program& program, int rank, std::chrono::milliseconds deadline,
           std::function<void(const std::string&)> give_up);

 private:
  std::jthread thread_;
};

}  // namespace trivium::runtime::flight
