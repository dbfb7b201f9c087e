// What happens between the steps of a training: a place for checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "program/program.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/executor/arenas.h"

namespace trivium::runtime {

/// One rank's end of it. All ranks call the same members in the same order, so both may communicate.
class StepKeeper {
 public:
  virtual ~StepKeeper() = default;
  /// Before the first step; may fill the rank's memory. The number of the step to begin with.
  virtual std::int64_t begin() = 0;
  /// Behind a step: `done` of them are done; `last`: no further one follows now.
  virtual void after_step(std::int64_t done, bool last) = 0;
};

/// The arenas lie in memory of the backend.
using KeeperFactory =
    std::function<std::unique_ptr<StepKeeper>(const program::Program&, Communicator&, Arenas&, Backend&)>;

}  // namespace trivium::runtime
