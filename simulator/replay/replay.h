// An ordered Program simulated by the engine, and what became of it in the Program's own terms.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "simulator/replay/replay_engine.h"
#include "simulator/replay/replay_program.h"
#include "simulator/replay/variation.h"

namespace trivium::simulator {

/// Whose spans are kept.
enum class Keep {
  kNothing,
  kRepresentatives,  ///< one rank for every stage
  kEverything
};

struct RankSpans {
  int rank = 0;
  std::int64_t stands_for = 1;  ///< ranks, itself among them
  std::vector<Span> spans;      ///< in order of their beginning
};

struct Replay {
  std::int64_t makespan_ps = 0;
  std::vector<RankSpans> ranks;            ///< those asked for, ascending
  std::int64_t rendezvous = 0, flows = 0;  ///< rendezvous of ranks, and those that were simulated over shared links
};

/// Receives the spans of a rank, rank after rank in ascending order, so that not all have to be kept.
using Listener = std::function<void(const RankSpans&)>;

/// Simulates one step of the compiled. Errors: kRuntime when it cannot proceed; the message names the ranks, their
/// instructions and the partners that are missing; kInterrupted where `stop` was requested. Same input, same
/// result.
base::Result<Replay> replay(const CostedProgram& costed, const ReplayProgram& compiled, const Variation& variation,
                            Keep keep, const std::stop_token& stop = {});

/// The same; nothing is kept, and `listener` hears of the actors of `record`.
base::Result<Replay> replay(const CostedProgram& costed, const ReplayProgram& compiled, const Variation& variation,
                            const std::vector<bool>& record, const Listener& listener,
                            const std::stop_token& stop = {});

}  // namespace trivium::simulator
