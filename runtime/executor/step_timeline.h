// The measured events of the last steps of a training.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "program/ir/program.h"
#include "program/ir/timeline.h"
#include "runtime/communicator.h"

namespace trivium::runtime {

/// What one rank keeps of them.
class StepTimeline {
 public:
  /// `steps`: how many of the last are kept; 0: none.
  explicit StepTimeline(std::int64_t steps) : steps_(steps) {}

  /// Where the next step notes its events; null where none are kept.
  std::vector<program::Event>* next();
  void clear() { kept_.clear(); }

  /// All ranks' events, on rank 0, with what each collective and transfer spent waiting for its last member; empty on
  /// the others. Every rank of the group `world`, which holds all of them, calls it.
  program::Timeline gathered(const program::Program& program, Communicator& communicator, int world) const;

 private:
  std::int64_t steps_;
  std::deque<std::vector<program::Event>> kept_;
};

}  // namespace trivium::runtime
