// The events of a real run, each with the op that it executed.
#pragma once

#include <stop_token>
#include <vector>

#include "program/record/run_record.h"

namespace trivium::calibration {

/// One measured op. Time spent waiting for partners is kept apart: a collective's own time is that of the member which
/// took the least time after the last one's arrival; what the others took beyond that counts as waiting, to be woken or
/// for interrupted hosts.
struct OpEvent {
  int step = 0, rank = 0;
  const program::Op* op = nullptr;
  double seconds = 0;  ///< without waiting
  double wait = 0;
  bool awaited = true;  ///< of a receive: the rank stood still for it, so that its end is the transfer's
  const program::Task* task = nullptr;  ///< whose op it is
};

/// Ends of transfers overlap concurrent work: their span says when they were posted, not what they cost.
bool is_transfer(const program::Op& op);

/// Events of a record, with the ops of `program`, which must outlive them. The first step of a run warms caches and is
/// left out where there are others. Errors: Failure(kInput) where an event names no op of the program,
/// Failure(kInterrupted) where `stop` was requested.
std::vector<OpEvent> op_events(const program::Program& program, const program::RunRecord& record,
                               const std::stop_token& stop = {});

/// What a run is judged by: the median of its steps, the first left out where there are others (it warms caches).
/// Errors: Failure(kInput) for a record without steps.
double measured_iteration(const program::RunRecord& record);

/// Seconds between the end of an op and the start of the next on its rank, where no transfer ran in between: the median
/// over all, what the executor itself takes per op.
double host_gap(const program::Program& program, const program::RunRecord& record);

/// The Program of a record's job, unordered: indices of tasks and ops do not depend on the order. Errors:
/// Failure(kInput) where the job cannot be lowered.
program::Program program_of(const program::RunRecord& record);

}  // namespace trivium::calibration
