// The event engine: every rank runs ahead on its own clock until it needs another; only what meets is an event.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "simulator/replay/instructions.h"
#include "simulator/replay/topology.h"
#include "simulator/replay/variation.h"

namespace trivium::simulator {

/// When a run of steps took place, ps.
struct RunTimes {
  std::int64_t arrival = 0;  ///< when it could have begun alone
  std::int64_t begin = 0;    ///< when all it joins were there
  std::int64_t end = 0;
};

/// An instruction that never ran, the first of its stream.
struct Blocked {
  std::int32_t actor = 0, stream = 0, instruction = 0;
  std::int32_t awaited_stream = -1;  ///< -1: it waits at its rendezvous
};

struct ReplayOutcome {
  std::int64_t makespan_ps = 0;
  std::vector<std::int64_t> finish_ps;                            ///< by actor
  std::vector<std::array<std::vector<RunTimes>, kStreams>> runs;  ///< by actor, in order; empty where not asked for
  std::vector<Blocked> blocked;                                   ///< empty: everything ran. By actor, then stream
  std::int64_t rendezvous = 0, flows = 0;  ///< how many rendezvous there were, and how many of them over shared links
  bool cancelled = false;                  ///< it was stopped: nothing above is whole, and `blocked` is empty
};

/// Stretches of a stream, from one rendezvous to the next, between two looks at the stop token: milliseconds.
constexpr int kStretchesBetweenLooks = 4096;

/// How long a step takes: the `n`-th of its stream, on a device that takes `device` times as long as its kind.
std::int64_t varied(const Step& step, const Variation& variation, const Draws& draws, std::uint64_t n, double device);

/// Simulates one step. Streams are in order, so without shared links a start is a maximum over ends that are known once
/// the runs before it are: no queue of events is needed. Communication over links that could be overbooked is simulated
/// in order of time (its end first, then its start; ties by the order in which the rendezvous came about) at max-min
/// fair rates; where none is overbooked it takes exactly its nominal time. `record`: the actors whose runs are
/// returned. Same input, same result. O(instructions) without shared links; O(actors) memory in addition to what is
/// recorded. Stops soon after `stop` is requested.
ReplayOutcome run_replay(std::span<const InstructionStreams> streams_by_role, const ReplayTopology& topology,
                         const Variation& variation, const std::vector<bool>& record, const std::stop_token& stop = {});

}  // namespace trivium::simulator
