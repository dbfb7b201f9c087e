// zbv: zero bubble over two chunks a stage that lie in a V, so that the first and the last chunk are on stage 0 (ZB-V;
// Qi et al. 2023, arXiv 2401.10241, section 6; the V: Qi et al. 2024, arXiv 2405.15362; PyTorch's ScheduleZBVZeroBubble
// has this order). A backward of the last chunk can begin on stage 0 as soon as the micro-batch came back there. Stage
// s warms up with 2(p - s) - 1 forwards of its first chunk and s of both; every stage then holds 2p half-stages' worth
// of micro-batches, as much as p of whole stages. With f, b and w for the forward and the halves of a chunk's backward,
// and w <= f <= b, m >= 2p - 1, equal stages idle (p - 1) max(b, 2(b - w)); where f = b = w stage s begins s f late,
// ends s f late and never waits in between.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline std::vector<SlotRun> runs_of_zbv(const StagePlace& at, std::int64_t micro_batches) {
  const std::int64_t p = at.pipeline, s = at.stage, behind = p - 1 - s;
  const std::int64_t m = std::max(micro_batches, 2 * p - 1);
  return {
      {2 * behind + 1, "F0"},
      {s, "F1F0"},
      {p - s, "F1B1W1"},
      {m - p - behind, "F0B0W0F1B1W1", true},
      {behind, "B0W0F1B1W1"},
      {s, "B0B1"},
      {p - s, "B0W0"},
      {s, "W1"},
      {s, "W0"},
  };
}

inline constexpr ScheduleTraits kZbv{
    .schedule = Schedule::kZbv,
    .name = "zbv",
    .pytorch = "ZBVZeroBubble",
    .virtual_stages = true,
    .chunks = 2,
    .folds = true,
    .splits_backward = true,
    .searched = false,
    .warm_up = [](const StagePlace& at) { return std::int64_t{4} * at.pipeline; },
    .runs = runs_of_zbv,
    .bubble =
        [](const StagePlace& at, std::int64_t micro_batches) {
          return fmt::format("equal stages idle (p - 1) max(b, 2(b - w)) of a chunk, p - 1 = {} of {} such passes",
                             at.pipeline - 1, at.virtual_stages * micro_batches);
        },
};

}  // namespace trivium::program::schedules
