// Schedules that repeat themselves: how few micro-batches show it, and whether they do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "program/lower/lower.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {

/// Micro-batches of a pipeline in its steady state. In it every stage does the same for one micro-batch as for the one
/// `period` before, `depth` of them are under way at once, and when it begins and ends depends on those alone.
struct SteadyState {
  std::int64_t micro_batches = 0;  ///< of the job
  std::int64_t depth = 1;  ///< micro-batches between their first forward and their last backward at once, at most
  std::int64_t unit = 1;   ///< that the schedule takes in groups: a period is a multiple of it

  /// Micro-batches that show whether they repeat themselves: some until they do, some that repeat others, and the last,
  /// after which no forward comes.
  std::int64_t enough() const;
};

/// How many times as many micro-batches as enough() there must be. For figures few are simulated twice, and once more
/// where the period is long; for the time alone once.
constexpr std::int64_t kWorthwhile = 3, kWorthwhileOnce = 2;

/// The longest period that is looked for, in units.
constexpr std::int64_t kMostUnits = 4;

/// Nothing where the job has not `worthwhile` times as many micro-batches as it takes, or the schedule has no steady
/// state.
std::optional<SteadyState> rounds_of(const program::Job& job, std::int64_t worthwhile = kWorthwhile);

/// The job with fewer micro-batches (of the same size).
program::Job with_micro_batches(program::Job job, std::int64_t micro_batches);

/// The time (ps) after which all that a rank did for the micro-batches [first, last) came again for those `period`
/// later: every span on every lane, as long and as far apart, with nothing else among them. Nothing where it did not.
/// Where this holds over twice the depth, all that was under way at one moment came again, so what follows does, as
/// long as there are micro-batches.
std::optional<std::int64_t> comes_again(const program::Role& role, const std::vector<Span>& spans, std::int64_t first,
                                        std::int64_t last, std::int64_t period);

}  // namespace trivium::simulator
