// When everything happened, predicted or measured: the same type for both.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/op.h"

namespace trivium::program {

/// One op (or, where `op` is -1, one whole segment) of a task. The key is (step, rank, task, op); a predicted event and
/// its measured counterpart share it. Times are integer picoseconds from the start of the step.
struct Event {
  std::int32_t step = 0;
  std::int32_t rank = 0;
  std::int32_t task = 0;  ///< index in the rank's role
  std::int32_t op = -1;   ///< index in the task's body
  Lane lane = Lane::kCompute;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::int64_t wait_ps = 0;  ///< part of [start, end] spent waiting for a partner (communication)
};

struct Timeline {
  std::vector<Event> events;  ///< per rank in order of issue
};

}  // namespace trivium::program
