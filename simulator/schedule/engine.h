// The event engine: simulates an ordered (or not yet ordered) Program against a clock in integer picoseconds.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "program/ir/timeline.h"
#include "simulator/cost/costed_program.h"

namespace trivium::simulator {

/// What counts as one step of a lane.
enum class Granularity {
  kOp,             ///< every op: overlap inside bodies is seen as it is
  kSegment,        ///< a whole segment at once: equal times where no lane is shared between segments, many times faster
  kRelaxedSegment  ///< a segment is as long as it keeps one lane at least: in the order of kOp, no later than kOp
};

/// One rank's span on a lane, in order of start.
struct Span {
  std::int32_t task = 0;
  std::int32_t segment = 0;
  std::int32_t op = -1;       ///< -1 at segment granularity
  program::Lane lane{};       ///< where it ran: with synchronous lanes collectives run on the compute lane
  std::int64_t start_ps = 0;  ///< arrival, where it waited for a partner
  std::int64_t begin_ps = 0;  ///< when the work itself began
  std::int64_t end_ps = 0;
  std::int64_t sequence = 0;  ///< place in the total order of all starts of all stages
};

/// What the engine saw: spans of every stage's representative rank.
struct ListSchedule {
  std::int64_t makespan_ps = 0;
  std::vector<std::vector<Span>> stages;
};

/// Simulates one step of the program. Lanes with a host order are in-order streams; without one the compute lane
/// follows the schedule and communication starts as soon as all its members are ready, first ready first, then by id;
/// of what becomes ready at one time nothing starts before all of it is known. Errors: kRuntime when it cannot proceed;
/// the message names stages, tasks and the missing partner; kInterrupted where `stop` was requested, which it checks
/// every kEndsBetweenLooks steps.
base::Result<ListSchedule> list_schedule(const CostedProgram& costed, Granularity granularity,
                                         const std::stop_token& stop = {});

/// The makespan that `list_schedule` finds at segment granularity, exactly, and nothing else of it: tasks whose
/// segments nothing depends on are simulated whole. Errors: as `list_schedule`.
base::Result<std::int64_t> list_schedule_makespan(const CostedProgram& costed);

/// A bound on the makespan of an ordered program op by op, however links are shared: the same order with segments that
/// are no longer than they keep one lane: their ops there run one after the other, and wait for collectives that others
/// of them have begun (held_by, simulator/cost/lanes.h). Errors: as `list_schedule`.
base::Result<std::int64_t> relaxed_makespan(const CostedProgram& ordered);

/// Fills `Role::order` of every stage from such a simulation by segments: segments by start, one total order over all
/// stages. The spans are those of list_schedule(), by begin; of one begin, what computes comes to lie last.
void issue_in_order_of(program::Program& program, ListSchedule& simulated);

/// Fills `Role::order` of every stage from a simulation without order: segments by start, one total order over all
/// stages. Errors: as `list_schedule`; kInterrupted also where `stop` came before the start.
base::Result<program::Program> order(program::Program program, const hardware::Cluster& cluster,
                                     const std::stop_token& stop = {});

/// What a simulation that was asked to stop returns: kInterrupted.
base::Error cancelled();

constexpr int kEndsBetweenLooks = 4096;  ///< steps that end between two looks at a stop token: a millisecond or two

}  // namespace trivium::simulator
