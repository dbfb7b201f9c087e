// What happens between the steps of a training: a place for checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "program/ir/program.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/executor/arenas.h"
#include "runtime/executor/loss_scale.h"

namespace trivium::runtime {

/// The progress of a training, in addition to its tensors.
struct Progress {
  std::int64_t step = 0;  ///< steps done; the next one has this number
  LossScale scale;
};

/// One rank's end of it. All ranks call the same members in the same order, so both may communicate.
class StepCheckpointer {
 public:
  virtual ~StepCheckpointer() = default;
  /// Before the first step of a training, not where the batch grows later; may fill the rank's memory. `fresh`: where a
  /// training begins. Where this one goes on.
  virtual Progress begin(const Progress& fresh) = 0;
  /// Called after a step; `last`: no further one follows now.
  virtual void after_step(const Progress& done, bool last) = 0;
};

/// The arenas lie in memory of the backend.
using CheckpointerFactory =
    std::function<std::unique_ptr<StepCheckpointer>(const program::Program&, Communicator&, Arenas&, Backend&)>;

}  // namespace trivium::runtime
